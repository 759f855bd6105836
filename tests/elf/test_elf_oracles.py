"""The same answers as pyelftools and LIEF give, on this machine's own files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from elf.realfiles import FILES
from walkback.elf import ElfFile, FileSearch, layout, relocations_for
from walkback.symbols import SymbolIndex

RESERVED = {"SHN_UNDEF": 0, "SHN_ABS": layout.SECTION_ABS, "SHN_COMMON": layout.SECTION_COMMON}


@FILES
def test_headers_are_those_of_pyelftools(path: Path) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    with path.open("rb") as file, ElfFile(path) as elf:
        theirs = elffile.ELFFile(file)
        sections = list(theirs.iter_sections())
        assert elf.section_names() == [section.name for section in sections]
        for field in ("flags", "addr", "offset", "size", "link", "info", "addralign", "entsize"):
            assert elf.sections[field].tolist() == [section[f"sh_{field}"] for section in sections]
        for index, section in enumerate(sections):
            if section["sh_type"] != "SHT_NOBITS" and not section.compressed:
                assert bytes(elf.section_data(index)) == section.data()
        segments = [(s["p_flags"], s["p_offset"], s["p_vaddr"], s["p_filesz"]) for s in theirs.iter_segments()]
        assert elf.segments[["flags", "offset", "vaddr", "filesz"]].tolist() == segments


@FILES
def test_symbols_are_those_of_pyelftools(path: Path) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    with path.open("rb") as file, ElfFile(path) as elf:
        theirs = elffile.ELFFile(file)
        for index in elf.sections_of_type(layout.SHT_SYMTAB) + elf.sections_of_type(layout.SHT_DYNSYM):
            expected = [
                (s.name, s["st_value"], s["st_size"], RESERVED.get(s["st_shndx"], s["st_shndx"]))
                for s in theirs.get_section(index).iter_symbols()
            ]
            ours = elf.symbols(index)
            names = elf.strings(int(elf.sections["link"][index]), ours["name_offset"].tolist())
            columns = (ours["value"].tolist(), ours["size"].tolist(), ours["section"].tolist())
            assert list(zip(names, *columns, strict=True)) == expected


@FILES
def test_sections_and_symbols_are_those_of_lief(path: Path) -> None:
    lief = pytest.importorskip("lief")
    theirs = lief.ELF.parse(str(path))
    with ElfFile(path) as elf:
        assert (elf.entry, elf.machine) == (theirs.header.entrypoint, theirs.header.machine_type.value)
        assert elf.sections["size"].tolist() == [section.size for section in theirs.sections]
        assert elf.segments["memsz"].tolist() == [segment.virtual_size for segment in theirs.segments]
        for kind, symbols in ((layout.SHT_SYMTAB, theirs.symtab_symbols), (layout.SHT_DYNSYM, theirs.dynamic_symbols)):
            for index in elf.sections_of_type(kind):
                ours = elf.symbols(index)
                names = elf.strings(int(elf.sections["link"][index]), ours["name_offset"].tolist())
                expected = sorted((s.name, s.value, s.size) for s in symbols)
                assert sorted(zip(names, ours["value"].tolist(), ours["size"].tolist(), strict=True)) == expected


@FILES
def test_memory_is_that_of_lief(path: Path) -> None:
    lief = pytest.importorskip("lief")
    theirs = lief.ELF.parse(str(path))
    with ElfFile(path) as elf:
        start, end = elf.executable_ranges()
        executable = [s for s in theirs.segments if s.type == s.TYPE.LOAD and s.has(s.FLAGS.X)]
        assert start.tolist() == [s.virtual_address for s in executable]
        assert end.tolist() == [s.virtual_address + s.virtual_size for s in executable]
        for address in start.tolist():
            assert bytes(elf.mapped_data(address, 64)) == bytes(theirs.get_content_from_virtual_address(address, 64))
        frames = np.flatnonzero(elf.segments["type"] == layout.PT_GNU_EH_FRAME).tolist()
        for index in frames:
            segment = elf.segments[index]
            assert elf.mapped_data(int(segment["vaddr"]), int(segment["filesz"])) == elf.segment_data(index)


@FILES
def test_a_function_has_one_of_its_names(path: Path) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    with path.open("rb") as file, ElfFile(path) as elf:
        table = elffile.ELFFile(file).get_section_by_name(".symtab" if ".symtab" in elf.section_names() else ".dynsym")
        names: dict[tuple[int, int], set[str]] = {}
        for symbol in table.iter_symbols() if table else ():
            if symbol["st_info"]["type"] in {"STT_FUNC", "STT_LOOS"} and symbol["st_shndx"] != "SHN_UNDEF":
                place = symbol["st_shndx"] if elf.is_relocatable else -1
                names.setdefault((place, symbol["st_value"]), set()).add(symbol.name)
        index = SymbolIndex(elf, FileSearch(debug_roots=()))
        for (section, address), known in names.items():
            name = index.name_at(address, section)
            assert name in known
            plain = name.partition("@")[0]
            assert (section, address) in index.lookup(plain)
            assert index.describe(address, section) == name


needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("objects")
    (folder / "a.c").write_text(
        "extern int outside(int); static int hidden(int x) { return outside(x) + 1; }\n"
        "int first(int x) { return hidden(x) * outside(3); }\n"
        "__attribute__((weak)) int second(void) { return first(outside(2)); }\n"
        "int outside(int x) { return x; } int main(void) { return second(); }\n"
    )
    compile_ = ["gcc", "-O1", "-fno-inline", "-ffunction-sections"]
    subprocess.run([*compile_, "-c", "a.c", "-o", "a.o"], cwd=folder, check=True)
    subprocess.run([*compile_, "-Wl,--emit-relocs", "a.c", "-o", "a.out"], cwd=folder, check=True)
    return folder


@needs_gcc
@pytest.mark.parametrize("name", ["a.o", "a.out"])
def test_relocations_are_those_of_pyelftools(objects: Path, name: str) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    with (objects / name).open("rb") as file, ElfFile(objects / name) as elf:
        compared = 0
        for section in elffile.ELFFile(file).iter_sections("SHT_RELA"):
            target = section["sh_info"]
            if not target:
                continue
            start = 0 if elf.is_relocatable else int(elf.sections["addr"][target])
            expected = [
                (r["r_offset"] - start, r["r_addend"], r["r_info_type"], r["r_info_sym"], section["sh_link"], True)
                for r in section.iter_relocations()
            ]
            found = relocations_for(elf, target)
            assert found.table.tolist() == sorted(expected, key=lambda entry: entry[0])
            compared += len(found)
        assert compared > 8


@needs_gcc
@pytest.mark.parametrize("name", ["a.o", "a.out"])
def test_targets_of_relocations_are_those_of_pyelftools(objects: Path, name: str) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    with (objects / name).open("rb") as file, ElfFile(objects / name) as elf:
        theirs = elffile.ELFFile(file)
        compared = 0
        for section in theirs.iter_sections("SHT_RELA"):
            if not section["sh_info"]:
                continue
            symtab = theirs.get_section(section["sh_link"])
            expected = []
            for relocation in sorted(section.iter_relocations(), key=lambda entry: entry["r_offset"]):
                symbol = symtab.get_symbol(relocation["r_info_sym"])
                number = symbol["st_shndx"]
                expected.append((number if isinstance(number, int) else 0, symbol["st_value"]))
            targets = relocations_for(elf, section["sh_info"]).targets(elf)
            assert targets.tolist() == expected
            compared += len({section for section, _ in expected})
        assert compared > 4


@needs_gcc
def test_functions_of_an_object_are_known_by_section(objects: Path) -> None:
    with ElfFile(objects / "a.o") as elf:
        index = SymbolIndex(elf)
        for name in ("hidden", "first", "second", "main"):
            (section,) = elf.sections_named(f".text.{name}")
            assert index.name_at(0, section) == name
            assert index.lookup(name) == [(section, 0)]
            assert index.describe(1, section) == f"{name}+0x1"
        assert index.name_at(0) is None


@needs_gcc
def test_more_sections_than_sixteen_bits_can_number(tmp_path: Path) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    count = 66_000
    with (tmp_path / "many.s").open("w") as file:
        for number in range(count):
            file.write(f'.section .text.f{number},"ax"\n.globl f{number}\nf{number}: nop\n')
    subprocess.run(["as", "many.s", "-o", "many.o"], cwd=tmp_path, check=True)
    with ElfFile(tmp_path / "many.o") as elf:
        assert len(elf.sections) > count
        index = SymbolIndex(elf)
        wanted = [0, 1, 65_270, 65_279, 65_280, 65_290, 65_534, 65_999]
        sections = [elf.sections_named(f".text.f{number}")[0] for number in wanted]
        assert [index.name_at(0, section) for section in sections] == [f"f{number}" for number in wanted]
        assert [index.lookup(f"f{number}") for number in wanted] == [[(section, 0)] for section in sections]
        names = index.names_at(np.zeros(len(elf.sections), np.uint64), np.arange(len(elf.sections)))
        assert {int(name[1:]) for name in names if name} == set(range(count))
        with (tmp_path / "many.o").open("rb") as file:
            theirs = elffile.ELFFile(file)
            assert theirs.num_sections() == len(elf.sections)
            assert theirs.get_section(sections[-1]).name == elf.section_name(sections[-1])
