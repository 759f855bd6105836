"""Where the section comes to stand, what gives way, what is left alone, and what is refused."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus import corpus
from elfbuilder import HEADER, ElfBuilder
from grafting import PROGRAMS, compiled, elflint, graft, linker_folder, output_of, section_for, ungraft
from peers import peer, run
from sectionless import without_section_headers
from walkback.base.errors import MissingError, WalkbackError
from walkback.elf import ElfFile, layout
from walkback.graft import add, drop, planned_address
from walkback.graft.record import find_record

IN_PLACE = "to make room for the program headers"
IN_FRONT = "bytes earlier, in the file and in memory"
BEHIND = "the program headers moved to the end of the file"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def patched(path: Path, target: Path, **fields: Any) -> Path:
    """A copy with other values in its ELF header."""
    data = bytearray(path.read_bytes())
    for name, value in fields.items():
        offset, code = HEADER[name]
        struct.pack_into(f"<{code}", data, offset, value)
    target.write_bytes(data)
    target.chmod(0o755)
    return target


def loads(elf: ElfFile) -> list[tuple[int, int, int]]:
    chosen = elf.segments[elf.segments["type"] == layout.PT_LOAD]
    return [(int(one["vaddr"]), int(one["offset"]), int(one["align"])) for one in chosen]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_table_stays_or_is_where_old_readers_look_for_it(name: str, folder: Path, tmp_path: Path) -> None:
    grafted = graft(compiled(folder, name, PROGRAMS[name]), tmp_path / "grafted")
    expected = IN_FRONT if name in {"static", "static-noseparate", "static-stripped"} else IN_PLACE
    notes = [note for note in grafted.notes if not note.startswith(("dwz ", "a section .pad "))]
    assert [note for note in notes if note.endswith(expected)] == notes
    with ElfFile(tmp_path / "grafted") as elf:
        places = loads(elf)
        assert places == sorted(places)
        assert all((address - offset) % page == 0 for address, offset, page in places)
        table = int(elf.segments["offset"][0]) if elf.segments["type"][0] == layout.PT_PHDR else 64
        assert table == 64
        assert places[0][1] == 0
        [ours] = elf.segments[elf.segments["type"] == layout.PT_GNU_SFRAME]
        [section] = elf.sections[elf.sections_of_type(layout.SHT_GNU_SFRAME)]
        assert (ours["vaddr"], ours["offset"], ours["filesz"]) == (section["addr"], section["offset"], section["size"])
        assert bytes(elf.mapped_data(int(ours["vaddr"]), 4)) == b"\xe2\xde\x03\x05"


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_else_changes(name: str, folder: Path, tmp_path: Path) -> None:
    program = compiled(folder, name, PROGRAMS[name])
    graft(program, tmp_path / "grafted")
    with ElfFile(program) as old, ElfFile(tmp_path / "grafted") as new:
        moved = []
        old_names, new_names = old.section_names(), new.section_names()
        number = {old_names.index(name): new_names.index(name) for name in old_names}
        for index, section in enumerate(old_names):
            if section == ".shstrtab":
                continue
            before, after = old.sections[index], new.sections[number[index]]
            same = ("type", "flags", "size", "addralign", "entsize")
            assert before[list(same)].tolist() == after[list(same)].tolist()
            assert number[int(before["link"])] == after["link"]
            names_another = before["type"] == layout.SHT_RELA and before["info"]
            assert after["info"] == (number[int(before["info"])] if names_another else before["info"])
            if before["addr"] != after["addr"]:
                moved.append(section)
            if section in {".symtab", ".dynsym"}:
                symbols = new.symbols(number[index])["section"].tolist()
                assert symbols == [number.get(one, one) for one in old.symbols(index)["section"].tolist()]
            elif section != ".dynamic":
                assert old.section_data(index) == new.section_data(number[index]), section
        known = (".interp", ".note", ".gnu.hash", ".hash", ".dyn", ".rela.dyn")
        assert all(section.startswith(known) for section in moved)
        assert new.entry == old.entry


@pytest.mark.parametrize("name", PROGRAMS)
def test_section_headers_are_in_the_order_of_addresses(name: str, folder: Path, tmp_path: Path) -> None:
    program = compiled(folder, name, PROGRAMS[name])
    graft(program, tmp_path / "grafted")
    with ElfFile(program) as old, ElfFile(tmp_path / "grafted") as new:
        loaded = new.sections["flags"] & np.uint64(layout.SHF_ALLOC) != 0
        assert loaded.tolist() == sorted(loaded, key=lambda one: not one) or not loaded[0]
        assert new.sections["addr"][loaded].tolist() == sorted(new.sections["addr"][loaded])
        order = [one for one in new.section_names() if one in old.section_names()]
        assert sorted(order) == sorted(old.section_names())


@pytest.mark.parametrize("name", ["pie", "exec"])
def test_the_new_segment_begins_with_the_section(name: str, folder: Path, tmp_path: Path) -> None:
    """LLVM 14 and 16 take one of two segments that begin in one place for a part of the other."""
    graft(compiled(folder, name, PROGRAMS[name]), tmp_path / "grafted")
    with ElfFile(tmp_path / "grafted") as elf:
        last = elf.segments[elf.segments["type"] == layout.PT_LOAD][-1]
        others = elf.segments[elf.segments["type"] != layout.PT_GNU_SFRAME]
        assert elf.sections["offset"][elf.sections_named(".sframe")[0]] == last["offset"]
        assert others["offset"].tolist().count(last["offset"]) == 1


def test_symbols_follow_the_sections_that_move(folder: Path, tmp_path: Path) -> None:
    graft(compiled(folder, "pie", PROGRAMS["pie"]), tmp_path / "grafted")
    with ElfFile(tmp_path / "grafted") as elf:
        symtab = elf.sections_of_type(layout.SHT_SYMTAB)[0]
        symbols = elf.symbols(symtab)
        names = elf.strings(int(elf.sections["link"][symtab]), symbols["name_offset"])
        tag = symbols[names.index("__abi_tag")]
        assert tag["value"] == elf.sections["addr"][tag["section"]]


def test_without_section_headers_the_table_goes_behind_and_keeps_its_distance(folder: Path, tmp_path: Path) -> None:
    program = without_section_headers(compiled(folder, "pie", PROGRAMS["pie"]), tmp_path / "program")
    grafted = graft(program, tmp_path / "grafted")
    assert grafted.notes[0].startswith(BEHIND)
    with ElfFile(tmp_path / "grafted") as elf:
        places = loads(elf)
        assert places == sorted(places)
        assert places[-1][0] == places[-1][1]
        [phdr] = elf.segments[elf.segments["type"] == layout.PT_PHDR]
        [section] = elf.segments[elf.segments["type"] == layout.PT_GNU_SFRAME]
        assert section["offset"] == places[-1][0]
        assert phdr["offset"] == phdr["vaddr"] == (places[-1][0] + int(section["filesz"]) + 7) & -8
        assert phdr["filesz"] == 56 * len(elf.segments)
    assert output_of(tmp_path / "grafted").endswith("1 7 1 named\n")
    ungraft(tmp_path / "grafted", tmp_path / "dropped")
    assert (tmp_path / "dropped").read_bytes() == program.read_bytes()


@pytest.mark.peers
@pytest.mark.parametrize("name", ["pie", "exec", "static", "static-pie"])
def test_without_section_headers_it_runs_under_emulation(name: str, folder: Path, tmp_path: Path) -> None:
    program = without_section_headers(compiled(folder, name, PROGRAMS[name]), tmp_path / "program")
    graft(program, tmp_path / "grafted")
    expected = output_of(tmp_path / "grafted")
    assert expected.endswith("1 7 1 named\n")
    assert output_of(peer("qemu-x86_64"), tmp_path / "grafted") == expected


@pytest.mark.parametrize("name", ["pie", "static"])
def test_data_behind_the_sections_keeps_its_place(name: str, folder: Path, tmp_path: Path) -> None:
    program = shutil.copy(compiled(folder, name, PROGRAMS[name]), tmp_path / "program")
    size = program.stat().st_size
    with program.open("ab") as file:
        file.write(b"payload" * 1000)
    grafted = graft(program, tmp_path / "grafted")
    assert (tmp_path / "grafted").read_bytes()[size : size + 7000] == b"payload" * 1000
    assert any(note.startswith("the 7000 bytes behind the sections keep their place") for note in grafted.notes)
    assert output_of(tmp_path / "grafted").endswith("1 7 1 named\n")


def test_adding_again_replaces(folder: Path, tmp_path: Path) -> None:
    program = compiled(folder, "pie", PROGRAMS["pie"])
    first = graft(program, tmp_path / "first", 50)
    second = graft(tmp_path / "first", tmp_path / "second", 100)
    assert second.notes == ["the existing .sframe section has been replaced", *first.notes]
    graft(program, tmp_path / "once", 100)
    assert (tmp_path / "second").read_bytes() == (tmp_path / "once").read_bytes()


def test_the_planned_address_is_the_one(folder: Path) -> None:
    for name, options in PROGRAMS.items():
        with ElfFile(compiled(folder, name, options)) as elf:
            section = section_for(elf)
            size = len(section(0))
            assert planned_address(elf, size) == add(elf, section, size).address


def test_large_contents_are_not_copied(folder: Path) -> None:
    with ElfFile(compiled(folder, "static", PROGRAMS["static"])) as elf:
        parts = add(elf, lambda _: bytes(100000), 100000).parts
        views = sum(len(part) for part in parts if isinstance(part, memoryview))
        [symtab] = elf.sections_of_type(layout.SHT_SYMTAB)
        assert views == len(elf.data) - elf.sections["size"][symtab]


def test_symbol_tables_are_not_kept_twice(folder: Path) -> None:
    """Only the numbers of sections change in them, and `drop` puts those back."""
    for name in ("pie", "static"):
        with ElfFile(compiled(folder, name, PROGRAMS[name])) as elf:
            grafted = ElfFile(b"".join(add(elf, lambda _: bytes(64), 64).parts), "grafted")
            record = find_record(grafted)
            assert record is not None
            assert record.encoded_size < 5000
            assert b"".join(drop(grafted)) == elf.data[:]


@pytest.mark.peers
def test_elflint_does_not_take_the_new_segment_for_relocated(tmp_path: Path) -> None:
    """As it did where a symbol is larger than the space between its relocation and the segment."""
    source, library = tmp_path / "big.c", tmp_path / "libbig.so"
    source.write_text('int big(void) { asm volatile(".skip 20000"); return 0; } int call(void) { return big(); }')
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-fno-inline", source, "-o", library], check=True)
    graft(library, tmp_path / "grafted")
    assert elflint(library) == elflint(tmp_path / "grafted") == []


@pytest.mark.peers
@pytest.mark.parametrize("linker", ["ld-2.40", "ld-2.44", "ld-new", "ld.lld"])
def test_programs_are_linked_with_a_grafted_library(linker: str, tmp_path: Path) -> None:
    (tmp_path / "library.c").write_text("int answer(void) { return 42; }")
    (tmp_path / "main.c").write_text("int answer(void); int main(void) { return answer() != 42; }")
    library = tmp_path / "libanswer.so"
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "library.c", "-o", library], check=True)
    graft(library, library)
    with_linker = f"-B{linker_folder(tmp_path, linker)}"
    command: list[str | Path] = ["gcc", with_linker, tmp_path / "main.c", library, "-o", tmp_path / "main"]
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""
    assert output_of(tmp_path / "main") == ""


@pytest.mark.peers
def test_what_a_linker_put_in_is_taken_out_and_replaced(tmp_path: Path) -> None:
    samples = [one for one in corpus() if one.kind in {"shared", "executable"}]
    count = 0
    for sample in samples:
        with ElfFile(sample.path) as elf:
            if not elf.sections_named(".sframe"):
                continue
            names = [name for name in elf.section_names() if name not in {".sframe", ".rela.sframe"}]
        ungraft(sample.path, tmp_path / "dropped")
        with ElfFile(tmp_path / "dropped") as elf:
            assert elf.section_names() == names
            assert layout.PT_GNU_SFRAME not in elf.segments["type"]
            with pytest.raises(MissingError, match=r"there is no \.sframe section"):
                drop(elf)
        assert run("readelf-new", "-aW", tmp_path / "dropped").stderr == run("readelf-new", "-aW", sample.path).stderr
        grafted = graft(sample.path, tmp_path / "grafted", 10)
        assert grafted.notes[0] == "the existing .sframe section has been replaced"
        count += 1
    assert count > 20


def test_a_record_that_no_longer_holds_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """Somebody has changed the headers since: then only the section is taken out."""
    program = compiled(folder, "pie", PROGRAMS["pie"])
    graft(program, tmp_path / "grafted")
    with ElfFile(tmp_path / "grafted") as elf:
        entry = elf.entry
    changed = patched(tmp_path / "grafted", tmp_path / "changed", e_flags=1)
    ungraft(changed, tmp_path / "dropped")
    with ElfFile(tmp_path / "dropped") as elf:
        assert (elf.flags, elf.entry) == (1, entry)
        assert not elf.sections_named(".sframe")
    assert output_of(tmp_path / "dropped") == "0 7 1 named\n"


def refused(data: bytes, size: int = 100) -> str:
    with pytest.raises(WalkbackError) as caught:
        add(ElfFile(data, "name"), lambda _: bytes(size), size)
    text = str(caught.value)
    assert text.startswith("name: ")
    assert "\n" not in text
    return text.removeprefix("name: ")


class TestRefusals:
    @pytest.fixture
    def program(self, folder: Path) -> Path:
        return compiled(folder, "pie", PROGRAMS["pie"])

    def changed(self, program: Path, tmp_path: Path, **fields: Any) -> bytes:
        return patched(program, tmp_path / "changed", **fields).read_bytes()

    def test_by_the_header(self, program: Path, tmp_path: Path) -> None:
        assert refused(self.changed(program, tmp_path, e_type=4)) == "this is a core file"
        assert refused(self.changed(program, tmp_path, e_type=9)).startswith("files of type 9 are neither")
        assert refused(self.changed(program, tmp_path, e_machine=243)) == "SFrame knows no machine with the number 243"
        without = self.changed(program, tmp_path, e_phnum=0, e_phoff=0)
        assert refused(without).startswith("this file has no segments to load")

    def test_an_object_is_no_program(self) -> None:
        builder = ElfBuilder()
        builder.code()
        assert refused(bytes(builder.build())) == "files of type 1 are neither programs nor libraries"

    @pytest.mark.peers
    def test_a_debug_file(self, program: Path, tmp_path: Path) -> None:
        run("objcopy-new", "--only-keep-debug", program, tmp_path / "debug", check=True)
        assert refused((tmp_path / "debug").read_bytes()).startswith("this is a separate debug file")

    def segment(self, program: Path, change: dict[str, int]) -> bytes:
        data = bytearray(program.read_bytes())
        with ElfFile(bytes(data), "") as elf:
            segments = elf.segments.copy()
            second = np.flatnonzero(segments["type"] == layout.PT_LOAD)[1]
            for name, value in change.items():
                segments[name][second] = value
        data[64 : 64 + segments.nbytes] = segments.tobytes()
        return bytes(data)

    def test_segments_that_make_no_sense(self, program: Path) -> None:
        assert refused(self.segment(program, {"vaddr": 0})).startswith("the PT_LOAD segments are not in the order")
        assert refused(self.segment(program, {"align": 3})).startswith("the alignment of a PT_LOAD segment contradicts")
        assert refused(self.segment(program, {"offset": 1 << 40})).startswith("a PT_LOAD segment reaches beyond")

    def test_a_big_bss_without_room(self, folder: Path, tmp_path: Path) -> None:
        program = compiled(folder, "pie", PROGRAMS["pie"])
        data = bytearray(without_section_headers(program, tmp_path / "program").read_bytes())
        with ElfFile(bytes(data), "") as elf:
            segments = elf.segments.copy()
            last = np.flatnonzero(segments["type"] == layout.PT_LOAD)[-1]
            segments["memsz"][last] = 1 << 30
        data[64 : 64 + segments.nbytes] = segments.tobytes()
        assert "they would stand behind 0x" in refused(bytes(data))
