"""Grafted objects are what assemblers write: linkers and readers take them, and their section is merged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from corpus import CASES, PREFIXES, corpus
from elfbuilder import ElfBuilder
from grafting import elflint, graft_object, linker_folder, output_of, ungraft
from peers import peer, run
from walkback import sframe
from walkback.base.arch import ByteOrder
from walkback.base.errors import GraftError
from walkback.elf import SECTION_RELOCATION, ElfFile, layout, relocations_for
from walkback.graft import add_to_object
from walkback.sections.check import check_source
from walkback.sframe.decoding import decode

SOURCE = Path(__file__).resolve().parent / "objects.c"


@pytest.fixture(params=["", "-ffunction-sections", "-g", "-O0 -fno-asynchronous-unwind-tables"])
def compiled_object(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "objects.o"
    subprocess.run(["gcc", "-O2", *request.param.split(), "-c", SOURCE, "-o", path], check=True)
    return path


def relocations(path: Path) -> list[tuple[int, int, int, int]]:
    with ElfFile(path) as elf:
        found = relocations_for(elf, elf.sections_named(".sframe")[0])
        targets = found.targets(elf)
        places = targets["value"] + found.table["addend"]
        return list(zip(found.table["offset"], found.table["type"], targets["section"], places, strict=True))


def test_relocations_lead_to_the_sections(compiled_object: Path, tmp_path: Path) -> None:
    target = tmp_path / "grafted.o"
    graft_object(compiled_object, target)
    with ElfFile(target) as elf:
        code = (elf.sections["flags"] & layout.SHF_EXECINSTR != 0) & (elf.sections["size"] > 0)
        sections = np.flatnonzero(code).tolist()
        section = decode(elf.section_data(elf.sections_named(".sframe")[0]))
        fields = [section.field_offset(number) for number in range(len(sections))]
    expected = [(field, layout.R_X86_64_PC64, index, 0) for field, index in zip(fields, sections, strict=True)]
    assert relocations(target) == expected
    ungraft(target, tmp_path / "dropped.o")
    assert (tmp_path / "dropped.o").read_bytes() == compiled_object.read_bytes()


@pytest.mark.peers
def test_the_linker_merges_it_and_the_program_runs(compiled_object: Path, tmp_path: Path) -> None:
    target = tmp_path / "grafted.o"
    graft_object(compiled_object, target)
    assert elflint(target) == elflint(compiled_object)
    shown = run("readelf-new", "--sframe", "-r", target)
    assert shown.stderr == b""
    assert b"R_X86_64_PC64" in shown.stdout
    linked = subprocess.run(
        ["gcc", f"-B{linker_folder(tmp_path, 'ld-new')}", target, "-o", tmp_path / "program"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "sframe" not in linked.stderr.lower()
    assert output_of(tmp_path / "program") == "101\n"
    merged = run("readelf-new", "--sframe", tmp_path / "program").stdout
    assert merged.count(b"func idx") >= len(relocations(target))


@pytest.mark.peers
@pytest.mark.parametrize("arch", PREFIXES)
def test_assembled_objects_are_replaced_and_their_tables_stay_equal(arch: str, tmp_path: Path) -> None:
    samples = [one for one in corpus() if (one.arch, one.kind, one.producer) == (arch, "object", "new")]
    assert len(samples) > 5
    linker = f"{PREFIXES[arch]}ld-new"
    for sample in samples:
        target, dropped, again = (tmp_path / name for name in ("grafted.o", "dropped.o", "again.o"))
        ungraft(sample.path, dropped)
        with ElfFile(dropped) as elf:
            assert not elf.sections_of_type(layout.SHT_GNU_SFRAME)
        assert not set(elflint(dropped)) - set(elflint(sample.path)), sample.path
        options = ("-r", "-o", tmp_path / "linked.o")
        assert run(linker, *options, dropped).returncode == 0, sample.path
        graft_object(dropped, target)
        graft_object(sample.path, again)
        assert again.read_bytes() == target.read_bytes()
        for source in sframe.read(str(target)):
            assert not [one for one in check_source(source).findings if one.severity.name == "BROKEN"], sample.path
        done = run(linker, *options, target)
        assert (done.returncode, done.stderr) == (0, b""), sample.path
        ungraft(target, again)
        assert again.read_bytes() == dropped.read_bytes()


def with_globals_only(byteorder: ByteOrder = "little") -> ElfBuilder:
    """An object whose text has no local symbol; a group and relocations name global ones."""
    builder = ElfBuilder(byteorder, 62 if byteorder == "little" else 22)
    text = builder.section(".text", b"\xc3" * 32, flags=6)
    data = builder.section(".data", bytes(16), flags=3)
    symtab = builder.symtab()
    builder.symbol(symtab, "data", 0, section=data, kind=3, binding=0)
    builder.symbol(symtab, "function", 0, section=text, size=32)
    builder.symbol(symtab, "other", 0)
    builder.sections[symtab].fields["sh_info"] = 2
    builder.relocations(data, symtab, [(0, 1, 2, 0), (8, 1, 3, 4)])
    builder.section(".group", b"\1\0\0\0\1\0\0\0", kind=layout.SHT_GROUP, link=symtab, info=2, entsize=4)
    builder.section(".llvm_addrsig", b"\2", kind=layout.SHT_LLVM_ADDRSIG, link=symtab)
    return builder


@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("extended", [False, True])
def test_a_section_without_local_symbol_gets_one(byteorder: ByteOrder, extended: bool) -> None:
    builder = with_globals_only(byteorder)
    builder.extended = extended
    data = bytes(builder.build())
    wanted = np.array([(28, 5, 24, 1)], SECTION_RELOCATION)
    grafted = add_to_object(ElfFile(data, "a.o"), bytes(64), wanted)
    assert grafted.notes == ["1 section symbols are new"]
    elf = ElfFile(b"".join(grafted.parts), "a.o")
    symtab = elf.sections_of_type(layout.SHT_SYMTAB)[0]
    symbols = elf.symbols(symtab)
    names = elf.strings(int(elf.sections["link"][symtab]), symbols["name_offset"])
    assert names == ["", "data", "", "function", "other"]
    assert symbols["section"].tolist()[1:4] == [2, 1, 1]
    assert symbols["info"][2] == layout.STT_SECTION
    assert elf.sections["info"][symtab] == 3
    [relocation] = relocations_for(elf, elf.sections_named(".sframe")[0]).table.tolist()
    assert relocation == (28, 5, 24, 2, symtab, True)
    assert relocations_for(elf, 2).table["symbol"].tolist() == [3, 4]
    assert elf.sections["info"][elf.sections_named(".group")[0]] == 3
    assert elf.sections["link"][elf.sections_named(".llvm_addrsig")[0]] == 0


def test_an_object_without_symbols_is_refused() -> None:
    builder = ElfBuilder()
    builder.code()
    with pytest.raises(GraftError, match=r"^a\.o: this object has no symbol table"):
        add_to_object(ElfFile(bytes(builder.build()), "a.o"), b"", np.zeros(0, SECTION_RELOCATION))


@pytest.mark.peers
def test_members_of_a_group_that_go_leave_it(tmp_path: Path) -> None:
    """An assembler may put `.sframe` into a COMDAT group; here by hand."""
    source = tmp_path / "a.s"
    source.write_text(
        (CASES / "amd64-comdat-a.s").read_text() + '\n.section .sframe,"aG",@progbits,_Z3inlv,comdat\n.quad 0\n'
    )
    subprocess.run([peer("as-2.44"), source, "-o", tmp_path / "a.o"], check=True)
    ungraft(tmp_path / "a.o", tmp_path / "dropped.o")
    assert elflint(tmp_path / "dropped.o") == elflint(tmp_path / "a.o")
    groups = run("readelf-new", "-gW", tmp_path / "dropped.o")
    assert groups.stderr == b""
    assert b"sframe" not in groups.stdout
