"""Objects that share COMDAT functions, of which linkers keep one copy: `split`, a link, and `fix`.

The two objects of "Remarks on SFrame", which lld refuses as every assembler makes them, and two of a C++ compiler.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from corpus import CASES, gas_object
from grafting import elflint, linker_folder
from peers import run
from sections.joining import by_name, dumped, executed, header_of, link_with, read_object, symbols, told_by
from walkback import ElfFile, GraftError, MissingError, SFrameError, check, fix, split
from walkback.elf import layout
from walkback.sections.linking.relink import link_object

if TYPE_CHECKING:
    from pathlib import Path

    from sections.joining import Rows

pytestmark = pytest.mark.peers

PRODUCERS = ("2.40", "2.44", "new", "llvm")
LINKERS = ("ld-2.35", "ld.lld", "gold-2.40", "gold-2.44", "mold", "ld-new", "ld-2.40", "ld-2.44")
KNOWS_ONLY = {"mold": "new", "ld-new": "new"}
"""These throw every other version away."""
COMPLAINS = {"ld-2.40": "2.40", "ld-2.44": "2.44"}
"""These name every other version in a message, and copy it."""
COLLECTS_SFRAME = ("gold-2.40", "gold-2.44")
"""gold does not know SHF_LINK_ORDER, and so collects sections that no code refers to, of whatever group."""
KEPT_BY_LD_NEW = "un1"
"""ld-new does not collect this one's code, though nothing but its .sframe section refers to it."""
FUNCTIONS = {"_start", "_Z3inlv", "un1", "fb", "un2"}
GARBAGE = {"un1", "un2"}
ENTRY = ("-e", "_start", "-u", "fb")
SORTED = 1

SHARED_TEXT = """
template <typename T> struct Stack {
    T items[8];
    int count = 0;
    __attribute__((noinline)) void push(T item) { items[count++ & 7] = item; }
    __attribute__((noinline)) T pop() { return items[--count & 7]; }
};
inline __attribute__((noinline)) int twice(int n) { int room[40]; room[n & 7] = n; asm("" :: "r"(room) : "memory");
    return 2 * room[n & 7]; }
"""
ONE_TEXT = """
int other(int n);
__attribute__((noinline)) int unused_one(int n) { return other(n) + twice(n); }
int main() { Stack<int> s; s.push(3); s.push(twice(4)); return s.pop() + other(s.pop()) == 8 + 3 + 14 ? 42 : 1; }
"""
OTHER_TEXT = """
__attribute__((noinline)) int unused_other(int n) { return twice(n) + 1; }
int other(int n) { Stack<int> s; s.push(n); s.push(twice(7)); return s.pop() + s.pop(); }
"""


def source(letter: str) -> str:
    return (CASES / f"amd64-comdat-{letter}.s").read_text()


def split_objects(folder: Path, producer: str) -> list[Path]:
    paths = []
    for letter in "ab":
        path = folder / f"{letter}-split.o"
        result = split(gas_object(source(letter), version=producer), path)
        assert (result.objects, result.sections, result.grouped, result.functions) == (1, 3, 1, 3)
        assert result.left_out == result.notes == []
        paths.append(path)
    return paths


def functions_of(path: Path) -> dict[str, Rows]:
    """By the reader of its version."""
    return by_name(path, dumped(path, "readelf-2.40" if header_of(path)[0] == 1 else "readelf-new"))


@pytest.mark.parametrize("producer", PRODUCERS)
def test_lld_refuses_the_objects_as_they_are(producer: str, tmp_path: Path) -> None:
    objects = [gas_object(source(letter), version=producer) for letter in "ab"]
    done = run("ld.lld", *ENTRY, "-o", tmp_path / "program", *objects)
    assert done.returncode != 0
    assert b"relocation refers to a discarded section: .text._Z3inlv" in done.stderr


@pytest.mark.parametrize("collected", [False, True], ids=["all", "gc-sections"])
@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_split_objects_link_and_the_surviving_copy_stays(
    producer: str, linker: str, collected: bool, tmp_path: Path
) -> None:
    objects, path, output = split_objects(tmp_path, producer), tmp_path / "program", tmp_path / "fixed"
    options = [*ENTRY, *(["--gc-sections"] if collected else [])]
    if (producer, linker) == ("2.40", "ld-2.44"):
        assert b"different format versions" in run(linker, *options, "-o", path, *objects).stderr
        return
    said = link_with(linker, path, *options, *objects)
    if KNOWS_ONLY.get(linker, producer) != producer or (collected and linker in COLLECTS_SFRAME):
        with pytest.raises(MissingError, match=r"there is no \.sframe section|the \.sframe section is empty"):
            fix(path, output)
        return
    assert ("sframe" in said) == (COMPLAINS.get(linker, producer) != producer)
    fixed = fix(path, output)
    wanted = FUNCTIONS - GARBAGE if collected else FUNCTIONS
    if collected and linker == "ld-new":
        wanted |= {KEPT_BY_LD_NEW}
    assert fixed.functions == len(wanted)
    assert header_of(output)[1] & SORTED
    told = functions_of(output)
    assert set(told) == wanted
    assert [report.findings for report in check(output)] == [[]]
    # What the newest linker makes of the same objects as its own assembler writes them, with the same options.
    originals = [gas_object(source(letter), version="new") for letter in "ab"]
    link_with("ld-new", tmp_path / "whole", *options, *originals)
    whole = functions_of(tmp_path / "whole")
    assert set(whole) == (FUNCTIONS - GARBAGE if collected else FUNCTIONS)
    assert {name: without_fixed(told[name]) for name in whole} == {
        name: without_fixed(rows) for name, rows in whole.items()
    }


def without_fixed(rows: Rows) -> list[tuple[int, str, str]]:
    """readelf 2.40 prints the fixed return address in another way."""
    return [row[:3] for row in rows]


@pytest.mark.parametrize("producer", PRODUCERS)
def test_no_relocation_outside_a_group_names_a_local_symbol_inside(producer: str, tmp_path: Path) -> None:
    for path in split_objects(tmp_path, producer):
        with ElfFile(path) as elf:
            [group] = elf.sections_of_type(layout.SHT_GROUP)
            members = np.frombuffer(elf.section_data(group), "<u4")[1:].tolist()
            [symtab] = elf.sections_of_type(layout.SHT_SYMTAB)
            symbols = elf.symbols(symtab)
            seen = []
            for index in elf.sections_named(".rela.sframe"):
                entries = np.frombuffer(elf.section_data(index), layout.RELA["little"])
                [symbol] = symbols[(entries["info"] >> np.uint64(32)).astype(int)]
                local = symbol["info"] >> 4 == layout.STB_LOCAL
                described = int(elf.sections["info"][index])
                assert (index in members) == (described in members)
                assert index in members or not (local and symbol["section"] in members)
                assert elf.sections["flags"][described] & layout.SHF_LINK_ORDER
                assert elf.sections["link"][described] == symbol["section"]
                seen.append(elf.section_name(int(symbol["section"])))
            assert sorted(seen) == [".text", ".text._Z3inlv", ".text.unused"]


def test_readelf_and_elflint_find_nothing_wrong_with_a_split_object(tmp_path: Path) -> None:
    for path in split_objects(tmp_path, "new"):
        assert elflint(path) == []
        done = run("readelf-new", "-aW", path, check=True)
        assert done.stderr == b""
        assert b"contains 3 sections" in done.stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Assembly of the two C++ sources."""
    folder, texts = tmp_path_factory.mktemp("comdat"), []
    for name, text in (("one", ONE_TEXT), ("other", OTHER_TEXT)):
        path = folder / f"{name}.cc"
        path.write_text(SHARED_TEXT + text)
        command: list[str | Path] = [
            "g++",
            "-O1",
            "-ffunction-sections",
            "-fno-exceptions",
            "-fPIE",
            "-S",
            "-o",
            "-",
            path,
        ]
        texts.append(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return texts


@pytest.mark.parametrize("collected", [False, True], ids=["all", "gc-sections"])
@pytest.mark.parametrize("linker", ["ld.lld", "gold-2.44", "mold", "ld-new", "ld-2.44"])
def test_a_program_of_a_compiler_runs_and_has_each_function_once(
    linker: str, collected: bool, compiled: list[str], tmp_path: Path
) -> None:
    producer = "2.44" if linker == "ld-2.44" else "new"
    objects = [gas_object(text, version=producer) for text in compiled]
    path, output = tmp_path / "program", tmp_path / "fixed"
    pieces = [tmp_path / "one.o", tmp_path / "other.o"]
    for whole, piece in zip(objects, pieces, strict=True):
        split(whole, piece)
    options = ["-Wl,--gc-sections"] if collected else []
    subprocess.run(["gcc", f"-B{linker_folder(tmp_path, linker)}", *options, "-o", path, *pieces], check=True)
    assert executed(path).returncode == 42
    if collected and linker.startswith("gold"):
        with pytest.raises(MissingError):
            fix(path, output)
        return
    fix(path, output)
    assert executed(output).returncode == 42
    told = {name: rows for name, rows in plt_apart(output).items() if name != "plt"}
    whole = tmp_path / "whole"
    originals = [gas_object(text) for text in compiled]
    subprocess.run(["gcc", f"-B{linker_folder(tmp_path, 'ld-new')}", *options, "-o", whole, *originals], check=True)
    expected = {name: rows for name, rows in plt_apart(whole).items() if name != "plt"}
    assert len([name for name in expected if "Stack" in name]) == 2
    assert ("_Z10unused_onei" in expected) == (not collected)
    if linker == "ld-new" and collected:  # see KEPT_BY_LD_NEW
        told = {name: rows for name, rows in told.items() if name in expected}
    assert told == expected


def plt_apart(path: Path) -> dict[str, Rows]:
    """The functions by name; the stubs that the linker made, which have none, as one."""
    names = {value: name for name, (_, value) in symbols(path).items()}
    functions = dumped(path)
    starts = [start for start, _ in functions]
    assert len(set(starts)) == len(starts)
    return {names.get(start, "plt"): rows for start, rows in functions}


@pytest.mark.parametrize("linker", ["ld.lld", "mold", "ld-new"])
def test_a_split_archive_links(linker: str, tmp_path: Path) -> None:
    archive, parted = tmp_path / "lib.a", tmp_path / "parted.a"
    other = tmp_path / "other.o"
    other.write_bytes(gas_object(source("b"), version="new").read_bytes())
    run("ar-new", "rcs", archive, other, check=True)
    result = split(archive, parted)
    assert (result.objects, result.sections, result.grouped) == (1, 3, 1)
    assert b"other.o" in run("ar-new", "t", parted, check=True).stdout
    [first, _] = split_objects(tmp_path, "new")
    link_with(linker, tmp_path / "program", *ENTRY, first, parted)
    fix(tmp_path / "program")
    told = told_by(tmp_path / "program")
    assert set(told) == FUNCTIONS
    link_with("ld-new", tmp_path / "whole", *ENTRY, gas_object(source("a"), version="new"), archive)
    assert told == told_by(tmp_path / "whole")


def test_split_twice_is_split_once(tmp_path: Path) -> None:
    for path in split_objects(tmp_path, "new"):
        before = path.read_bytes()
        split(path, tmp_path / "again.o")
        assert (tmp_path / "again.o").read_bytes() == before


def test_a_linked_file_is_not_split(tmp_path: Path) -> None:
    link_with("ld-new", tmp_path / "program", *ENTRY, *[gas_object(source(letter)) for letter in "ab"])
    with pytest.raises(GraftError, match="this is a linked file"):
        split(tmp_path / "program", tmp_path / "output")
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_split_objects_that_a_linker_joined_get_one_section_again(producer: str, linker: str, tmp_path: Path) -> None:
    """GNU ld -r up to 2.44 displaces the relocations of several sections of the version it knows."""
    objects, path, output = split_objects(tmp_path, producer), tmp_path / "joined.o", tmp_path / "linked.o"
    if (producer, linker) == ("2.40", "ld-2.44"):
        assert b"different format versions" in run(linker, "-r", "-o", path, *objects).stderr
        return
    link_with(linker, path, "-r", *objects)
    if (producer, linker) in {("2.40", "ld-2.40"), ("2.44", "ld-2.44")}:
        with pytest.raises(SFrameError, match="a relocation cannot be applied: it is not on the start field"):
            link_object(path, output)
        return
    if linker == "mold" and producer != "new":
        with pytest.raises(MissingError):
            link_object(path, output)
        return
    link_object(path, output)
    # Of versions that it does not know ld-new copies the sections in groups, and throws the others away.
    kept = {"_Z3inlv"} if linker == "ld-new" and producer != "new" else FUNCTIONS
    told = read_object(output)
    assert set(told) == kept
    shared = [(0, "sp+8", "u", "f"), (1, "sp+16", "u", "f"), (2, "sp+8", "u", "f")]
    assert told["_Z3inlv"] == shared
