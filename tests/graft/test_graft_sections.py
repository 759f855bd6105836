"""Objects whose `.sframe` sections are set: numbered anew, in their groups, compact, and what linkers take."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import walkback
from corpus import CASES
from elfbuilder import ElfBuilder
from grafting import PC64, elflint, linker_folder, output_of, section_of_object
from peers import peer, run
from walkback.base.arch import ByteOrder
from walkback.base.errors import ElfError, GraftError
from walkback.elf import SECTION_RELOCATION, ElfFile, layout, relocations_for
from walkback.graft import ObjectSection, add_to_object, drop, set_sections
from walkback.graft.record import Record, find_record
from walkback.sections import install

SOURCE = Path(__file__).resolve().parent / "objects.c"
INLINE = """
inline int answer (int n) { return n * 2; }
static int (*volatile chosen) (int) = answer;
int MAIN (int argc, char **argv) { return chosen (argc) + answer (argc) == 0; }
"""
IN_FRONT = """
    .section .sframe,"a",@progbits
    .quad 0
    .text
first: .cfi_startproc
    nop
    .cfi_endproc
    .section .text.second,"ax",@progbits
second: .cfi_startproc
    push %rbp
    .cfi_adjust_cfa_offset 8
    ret
    .cfi_endproc
"""


def groups_of(elf: ElfFile) -> dict[int, int]:
    """The group that each section is in."""
    order = "<u4" if elf.byteorder == "little" else ">u4"
    groups = elf.sections_of_type(layout.SHT_GROUP)
    return {int(member): group for group in groups for member in np.frombuffer(elf.section_data(group), order)[1:]}


def one_for_each(elf: ElfFile, *, link_order: bool = False) -> list[ObjectSection]:
    """A section for every text section, in the group of that."""
    groups = groups_of(elf)
    code = (elf.sections["flags"] & layout.SHF_EXECINSTR != 0) & (elf.sections["size"] > 0)
    found = []
    for index in np.flatnonzero(code).tolist():
        contents, relocations = section_of_object(elf, [index])
        order = index if link_order else None
        found.append(ObjectSection(contents, relocations, group=groups.get(index), link_order=order))
    return found


def with_sections(data: bytes, sections: list[ObjectSection]) -> ElfFile:
    return ElfFile(b"".join(set_sections(ElfFile(data, "a.o"), sections)), "a.o")


def small(section: int, **options: Any) -> ObjectSection:
    return ObjectSection(bytes(64), np.array([(28, 5, 24, section)], SECTION_RELOCATION), **options)


def target(elf: ElfFile, number: int = 0) -> tuple[str, int]:
    """What section and place the first relocation of a new section means."""
    relocations = relocations_for(elf, elf.sections_named(".sframe")[number])
    [(section, value)] = relocations.targets(elf).tolist()
    return elf.section_name(section), value + int(relocations.table["addend"][0])


@pytest.fixture(params=["", "-ffunction-sections -g"])
def compiled_object(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "objects.o"
    subprocess.run(["gcc", "-O2", *request.param.split(), "-c", SOURCE, "-o", path], check=True)
    return path


class TestNumbers:
    def test_add_follows_sections_that_stood_behind_the_former_one(self, tmp_path: Path) -> None:
        (tmp_path / "a.s").write_text(IN_FRONT)
        subprocess.run(["as", tmp_path / "a.s", "-o", tmp_path / "a.o"], check=True)
        with ElfFile(tmp_path / "a.o") as elf:
            assert elf.sections_named(".sframe")[0] < elf.sections_named(".text.second")[0]
        install.add(tmp_path / "a.o")
        with ElfFile(tmp_path / "a.o") as elf:
            [index] = elf.sections_named(".sframe")
            named = relocations_for(elf, index).targets(elf)["section"].tolist()
            assert [elf.section_name(section) for section in named] == [".text", ".text.second"]
        assert len(list(walkback.sframe.read(str(tmp_path / "a.o")))) == 1

    def builder(self) -> ElfBuilder:
        builder = ElfBuilder()
        builder.section(".sframe", bytes(64), kind=layout.SHT_GNU_SFRAME, flags=2)
        symtab = builder.symtab()
        builder.symbol(symtab, "local", 16, section=4, binding=0)
        builder.sections[symtab].fields["sh_info"] = 2
        builder.section(".text", bytes(32), flags=6)
        builder.section(".group", b"\1\0\0\0\4\0\0\0", kind=layout.SHT_GROUP, link=symtab, info=1, entsize=4)
        builder.section(".sframe", bytes(64), flags=2)
        builder.section(".text.b", bytes(32), flags=6)
        return builder

    def test_all_numbers_are_those_of_the_file_that_is_given(self) -> None:
        elf = with_sections(bytes(self.builder().build()), [small(7, group=5, link_order=7), small(4)])
        names = elf.section_names()
        former = (".strtab", ".symtab", ".text", ".group", ".text.b", ".shstrtab")
        assert names[1:] == [*former, *[".sframe", ".rela.sframe"] * 2]
        assert target(elf) == (".text.b", 5)
        assert target(elf, 1) == (".text", 5)
        first, second = elf.sections[[7, 9]]
        assert int(first["flags"]) == layout.SHF_ALLOC | layout.SHF_GROUP | layout.SHF_LINK_ORDER
        assert (int(first["link"]), int(second["link"]), int(second["flags"])) == (5, 0, layout.SHF_ALLOC)
        assert groups_of(elf) == {3: 4, 7: 4, 8: 4}
        assert elf.sections["flags"][8] == layout.SHF_GROUP | layout.SHF_INFO_LINK

    def test_an_old_version_is_of_an_old_type(self) -> None:
        elf = with_sections(bytes(self.builder().build()), [small(4, kind=layout.SHT_PROGBITS)])
        assert elf.sections["type"][elf.sections_named(".sframe")].tolist() == [layout.SHT_PROGBITS]

    @pytest.mark.parametrize(
        ("section", "text"),
        [
            (small(0), "there is no section 0 for a relocation"),
            (small(1), "there is no section 1 for a relocation"),
            (small(99), "there is no section 99 for a relocation"),
            (small(4, group=4), "section 3 is no section group"),
            (small(4, group=99), "there is no section 99"),
            (small(4, link_order=6), "there is no section 6"),
        ],
    )
    def test_what_is_not_there_is_refused(self, section: ObjectSection, text: str) -> None:
        with pytest.raises(GraftError, match=rf"^a\.o: {text}$"):
            with_sections(bytes(self.builder().build()), [section])


def test_a_record_of_another_object_is_not_believed() -> None:
    """Whoever forges its checksum must not lead to sections that are not there."""
    former = bytes(TestNumbers().builder().build())
    grafted = add_to_object(ElfFile(former, ""), bytes(64), small(4).relocations)
    elf = ElfFile(b"".join(grafted.parts), "a.o")
    record = find_record(elf)
    few = ElfBuilder()
    few.section(".text", bytes(32), flags=6)
    image = bytes(few.build())
    forged = Record(record.start, record.size, ((0, image.ljust(record.size, b"\0")),), record.numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["walkback.graft.drop"], "find_record", lambda _: forged)
        with pytest.raises(GraftError, match=r"^a\.o: the record of `add` in this object belongs to another file$"):
            set_sections(elf, [small(3)])


def with_many_sections(count: int) -> float:
    """The seconds of processor time that it takes to give an object so many sections, and to take them away."""
    builder = ElfBuilder()
    symtab = builder.symtab()
    for number in range(count):
        text = builder.section(f".text{number}", b"\xc3", flags=0x206)
        rela = builder.relocations(text, symtab, [(0, 2, number + 1, 0)])
        words = np.array([1, text, rela], "<u4").tobytes()
        group = {"kind": layout.SHT_GROUP, "link": symtab, "info": number + 1, "entsize": 4}
        builder.section(f".group{number}", words, **group)
        builder.symbol(symtab, "", 0, section=text)
    builder.sections[symtab].fields["sh_info"] = 1
    data = bytes(builder.build())
    sections = [small(3 + 3 * number, group=5 + 3 * number) for number in range(count)]
    start = time.process_time()
    elf = with_sections(data, sections)
    without = with_sections(bytes(elf.data), [])
    taken = time.process_time() - start
    assert target(elf, count - 1) == (f".text{count - 1}", 5)
    assert len(groups_of(elf)) == 4 * count
    assert bytes(without.data) != data
    return taken


class TestLayout:
    def test_nothing_is_left_of_what_was_there(self, compiled_object: Path) -> None:
        data = compiled_object.read_bytes()
        once = with_sections(data, one_for_each(ElfFile(data, "")))
        again = with_sections(bytes(once.data), one_for_each(once))
        assert bytes(again.data) == bytes(once.data)
        grafted = add_to_object(ElfFile(data, ""), *section_of_object(ElfFile(data, ""), [1]))
        added = ElfFile(b"".join(grafted.parts), "")
        assert bytes(with_sections(bytes(added.data), one_for_each(added)).data) == bytes(once.data)

    def test_sections_stand_in_the_order_of_their_numbers(self, compiled_object: Path) -> None:
        data = compiled_object.read_bytes()
        elf = with_sections(data, one_for_each(ElfFile(data, "")))
        position = 64
        stored = elf.sections[(elf.sections["type"] != layout.SHT_NOBITS) & (elf.sections["type"] != 0)]
        for start, size, alignment in stored[["offset", "size", "addralign"]].tolist():
            assert start == -(-position // max(alignment, 1)) * max(alignment, 1)
            position = start + size
        assert len(elf.data) == -(-position // 8) * 8 + 64 * len(elf.sections)

    def test_all_else_says_what_it_said(self, compiled_object: Path) -> None:
        data = compiled_object.read_bytes()
        old, new = ElfFile(data, ""), with_sections(data, one_for_each(ElfFile(data, "")))
        names = old.section_names()
        assert new.section_names()[: len(names)] == names
        fields = ["type", "flags", "link", "info", "addralign", "entsize"]
        assert old.sections[fields].tolist() == new.sections[fields][: len(names)].tolist()
        for index, name in enumerate(names):
            assert name == ".shstrtab" or old.section_data(index) == new.section_data(index)

    def test_without_sections_it_only_loses_those_that_it_had(self, compiled_object: Path) -> None:
        data = compiled_object.read_bytes()
        full = with_sections(data, one_for_each(ElfFile(data, "")))
        empty = with_sections(bytes(full.data), [])
        assert empty.section_names() == ElfFile(data, "").section_names()
        assert len(empty.data) <= len(data) + 64

    @pytest.mark.whole
    def test_the_time_for_many_sections_grows_no_faster_than_they_do(self) -> None:
        few, many = with_many_sections(2500), with_many_sections(20000)
        assert many < 20 * few

    def test_a_claimed_alignment_is_refused(self) -> None:
        builder = ElfBuilder()
        builder.symtab()
        builder.section(".data", bytes(8), flags=3, addralign=1 << 60)
        with pytest.raises(GraftError, match="ask for more room"):
            with_sections(bytes(builder.build()), [])

    def test_what_cannot_be_laid_out_is_refused(self) -> None:
        builder = ElfBuilder()
        builder.section(".data", bytes(8), flags=3)
        builder.segment(layout.PT_LOAD, ".data")
        with pytest.raises(GraftError, match="program headers"):
            with_sections(bytes(builder.build()), [])
        program = ElfBuilder(kind=2)
        program.symtab()
        with pytest.raises(GraftError, match="not a relocatable object"):
            with_sections(bytes(program.build()), [])
        with pytest.raises(ElfError, match=r"^a\.o: offset 0x10000000000: section 3 reaches beyond the end"):
            with_sections(self.far_section(), [])

    def far_section(self) -> bytes:
        builder = ElfBuilder()
        builder.symtab()
        builder.section(".data", bytes(8), flags=3)
        return bytes(builder.build().section(3, "sh_offset", 1 << 40))


class TestExtendedNumbers:
    LIMIT = layout.SHN_LORESERVE

    def many(self, count: int, byteorder: ByteOrder = "little") -> ElfBuilder:
        """So many sections in all; the last but one is text, and has only a global symbol."""
        builder = ElfBuilder(byteorder, 62 if byteorder == "little" else 22)
        symtab = builder.symtab()
        for _ in range(count - 5):
            builder.section(".data", b"", flags=3)
        builder.section(".text", bytes(32), flags=6)
        builder.sections[symtab].fields["sh_info"] = 1
        return builder

    @pytest.mark.whole
    @pytest.mark.parametrize("byteorder", ["little", "big"])
    def test_the_first_symbol_with_such_a_number_brings_their_table(self, byteorder: ByteOrder) -> None:
        builder = self.many(self.LIMIT + 2, byteorder)
        builder.symbol(2, "undefined", 0)
        elf = with_sections(bytes(builder.build()), [small(self.LIMIT)])
        assert len(elf.sections) == self.LIMIT + 5
        [index] = elf.sections_of_type(layout.SHT_SYMTAB_SHNDX)
        assert (elf.section_name(index), index) == (".symtab_shndx", self.LIMIT + 2)
        assert elf.symbols(2)["section"].tolist() == [0, self.LIMIT, 0]
        assert target(elf) == (".text", 5)
        again = with_sections(bytes(elf.data), [small(self.LIMIT)])
        assert again.sections_of_type(layout.SHT_SYMTAB_SHNDX) == [index]
        assert target(again) == (".text", 5)

    @pytest.mark.peers
    @pytest.mark.parametrize("count", [layout.SHN_LORESERVE - 1, layout.SHN_LORESERVE + 2])
    def test_readers_follow(self, count: int, tmp_path: Path) -> None:
        path = tmp_path / "a.o"
        path.write_bytes(bytes(with_sections(bytes(self.many(count).build()), [small(count - 2)]).data))
        shown = run("readelf-new", "-rsSW", path)
        assert (shown.stderr, b"R_X86_64_PC64" in shown.stdout) == (b"", True)
        shown = run("llvm-readobj", "-r", "--symbols", path)
        assert b"R_X86_64_PC64 .text 0x5" in shown.stdout
        assert not [line for line in elflint(path) if ".symtab" in line or "sframe" in line]

    @pytest.mark.whole
    def test_the_limit_is_crossed_both_ways(self) -> None:
        data = bytes(self.many(self.LIMIT - 1).build())
        more = with_sections(data, [small(self.LIMIT - 3)])
        assert len(more.sections) == self.LIMIT + 1
        assert more.sections["size"][0] == self.LIMIT + 1
        less = with_sections(bytes(more.data), [])
        assert len(less.sections) == self.LIMIT - 1
        assert less.sections["size"][0] == less.sections["link"][0] == 0
        assert less.section_name(self.LIMIT - 3) == ".text"

    def test_symbols_below_the_limit_need_no_table_any_more(self) -> None:
        builder = ElfBuilder()
        builder.section(".sframe", bytes(64), kind=layout.SHT_GNU_SFRAME, flags=2)
        symtab = builder.symtab()
        for _ in range(self.LIMIT - 4):
            builder.section(".data", b"", flags=3)
        builder.section(".text", bytes(32), flags=6)
        builder.symbol(symtab, "text", 0, section=(self.LIMIT,))
        elf = with_sections(bytes(builder.build()), [])
        assert elf.symbols(2)["section"].tolist() == [0, self.LIMIT - 1]
        assert elf.entries(2, layout.SYMBOL)["shndx"].tolist() == [0, self.LIMIT - 1]

    def test_what_was_added_is_taken_out_again(self) -> None:
        data = bytes(self.many(self.LIMIT + 2).build())
        section = small(self.LIMIT)
        grafted = add_to_object(ElfFile(data, ""), section.contents, section.relocations)
        elf = ElfFile(b"".join(grafted.parts), "")
        assert target(elf) == (".text", 5)
        assert b"".join(drop(elf)) == data


@pytest.mark.peers
class TestTools:
    def linked(self, path: Path, linker: str) -> Path:
        command: list[str | Path] = ["gcc", f"-B{linker_folder(path.parent, linker)}", path, "-o", path.with_suffix("")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "sframe" not in done.stderr.lower()
        return path.with_suffix("")

    @pytest.mark.parametrize("linker", ["ld-new", "ld.lld"])
    def test_linkers_take_them_and_the_program_runs(self, linker: str, compiled_object: Path) -> None:
        data, path = compiled_object.read_bytes(), compiled_object.with_name("set.o")
        new = with_sections(data, one_for_each(ElfFile(data, ""), link_order=True))
        path.write_bytes(bytes(new.data))
        assert elflint(path) == elflint(compiled_object)
        assert run("readelf-new", "--sframe", "-rSW", path).stderr == b""
        assert run("llvm-readobj", "-r", "--symbols", "--sections", path).stderr == b""
        assert output_of(self.linked(path, linker)) == "101\n"

    @pytest.mark.parametrize("machine", ["", "aarch64-", "s390x-"])
    def test_of_groups_with_one_name_the_linker_takes_one(self, machine: str, tmp_path: Path) -> None:
        for name in ("one", "two"):
            source, path = tmp_path / f"{name}.cc", tmp_path / f"{name}.o"
            source.write_text(INLINE.replace("MAIN", "main" if name == "one" else name))
            compiler = peer(f"{machine}g++") if machine else "g++"
            subprocess.run([compiler, "-O1", "-S", source, "-o", source.with_suffix(".s")], check=True)
            run(f"{machine}as-2.40", source.with_suffix(".s"), "-o", path, check=True)
            former = elflint(path)
            with ElfFile(path) as elf:
                assert elf.machine in PC64
                data = b"".join(set_sections(elf, one_for_each(elf, link_order=True)))
            path.write_bytes(data)
            assert elflint(path) == former
        program, again = tmp_path / "program", tmp_path / "again.o"
        objects = [tmp_path / "one.o", tmp_path / "two.o"]
        done = run(f"{machine}ld-new", "-r", *objects, "-o", again)
        assert (done.returncode, done.stderr) == (0, b"")
        for inputs in (objects, [again]):
            done = run(f"{machine}ld-new", "-e", "main", *inputs, "-o", program)
            assert (done.returncode, done.stderr) == (0, b"")
            [linked] = walkback.sframe.read(str(program))
            # The two programs, and `answer` once.
            assert len(walkback.sframe.decode(linked.data).functions) == 3

    def test_names_of_sections_and_symbols_may_share_a_table(self, tmp_path: Path) -> None:
        """As LLVM's assembler has it."""
        source, path = tmp_path / "a.s", tmp_path / "a.o"
        source.write_text((CASES / "amd64-comdat-a.s").read_text())
        run("llvm-mc", "-filetype=obj", "-triple=x86_64-linux-gnu", source, "-o", path, check=True)
        data = path.read_bytes()
        new = with_sections(data, one_for_each(ElfFile(data, "")))
        path.write_bytes(bytes(new.data))
        [symtab] = new.sections_of_type(layout.SHT_SYMTAB)
        assert new.section_name(int(new.sections["link"][symtab])) == ".strtab"
        assert run("llvm-readobj", "-r", "--symbols", "--sections", path).stderr == b""
        assert run("ld-new", "-r", path, "-o", tmp_path / "again.o").stderr == b""
        symbols = (run("nm-new", one).stdout for one in (path, tmp_path / "again.o"))
        assert len(set(symbols)) == 1

    @pytest.mark.parametrize("tool", ["strip-2.40", "strip-new", "objcopy-2.44", "llvm-objcopy"])
    def test_tools_that_rewrite_objects_take_them(self, tool: str, compiled_object: Path, tmp_path: Path) -> None:
        data, path = compiled_object.read_bytes(), tmp_path / "set.o"
        path.write_bytes(bytes(with_sections(data, one_for_each(ElfFile(data, ""))).data))
        options = ["--strip-debug"] if "strip" in tool else []
        done = run(tool, *options, path, *(["-o"] if "strip" in tool else []), tmp_path / "rewritten.o")
        assert (done.returncode, done.stderr) == (0, b"")
        assert output_of(self.linked(tmp_path / "rewritten.o", "ld-new")) == "101\n"
