"""Names for functions of stripped programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import walkback
from walkback.elf import ElfFile
from walkback.naming.borders import Borders
from walkback.naming.modules import Modules
from walkback.naming.names import Names
from walkback.symbols import SymbolIndex

SOURCE = """\
__attribute__((noinline)) static int one(int x) { return x * 3; }
__attribute__((noinline)) static int two(int x) { return one(x) + 1; }
int main(int count, char **words) { return two(count); }
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "a.c", "-o", "whole"], cwd=tmp_path, check=True)
    return tmp_path / "whole"


def starts(program: Path, *names: str) -> np.ndarray:
    return np.array([start for _, start in SymbolIndex(ElfFile(program)).lookup(*names)], np.uint64)


def test_each_function_of_a_stripped_program_has_a_name_of_its_own(program: Path) -> None:
    begin = starts(program, "one", "two", "main")
    stripped = program.parent / "bare"
    subprocess.run(["strip", program, "-o", stripped], check=True)
    modules = Modules()
    number = modules.file(str(stripped))
    inside = begin + np.uint64(1)
    found = Names(modules).find(np.full(3, number), inside)
    assert found.symbol == [f"bare+{start:#x}" for start in begin.tolist()]
    assert found.offset.tolist() == [1, 1, 1]


def test_symbols_go_before(program: Path) -> None:
    modules = Modules()
    found = Names(modules).find(np.full(1, modules.file(str(program))), starts(program, "two"))
    assert found.symbol == ["two"]


def test_sframe_has_borders_too(program: Path) -> None:
    made = program.parent / "made"
    walkback.add(program, made)
    for section in (".eh_frame", ".eh_frame_hdr"):
        subprocess.run(["objcopy", f"--remove-section={section}", made], check=True, capture_output=True)
    elf = ElfFile(made)
    assert not elf.sections_named(".eh_frame")
    begin = starts(program, "one", "two", "main")
    names, start = Borders(elf, "/usr/bin/made").locate(begin + np.uint64(1))
    assert start.tolist() == begin.tolist()
    assert names == [f"made+{place:#x}" for place in begin.tolist()]


def test_a_function_whose_program_is_damaged_has_borders(program: Path, tmp_path: Path) -> None:
    [source] = (one for one in walkback.dwarf.read(program) if one.name == ".eh_frame")
    begin = starts(program, "two")
    number = source.frames.fdes.start.tolist().index(int(begin[0]))
    data = bytearray(program.read_bytes())
    place = data.index(bytes(source.data)) + int(source.frames.fdes.program[number])
    data[place] = 0x3F  # no instruction
    damaged = tmp_path / "damaged"
    damaged.write_bytes(data)
    [source] = (one for one in walkback.dwarf.read(damaged) if one.name == ".eh_frame")
    assert (source.frames.fdes.fault[number] != 0, source.fdes.fault[number] != 0) == (True, False)
    names, start = Borders(ElfFile(damaged), "damaged").locate(begin + np.uint64(1))
    assert (names, start.tolist()) == ([f"damaged+{begin[0]:#x}"], begin.tolist())


def test_code_of_no_function_has_no_name(program: Path) -> None:
    elf = ElfFile(program)
    names, start = Borders(elf, "whole").locate(np.array([0, 2**64 - 1], np.uint64))
    assert names == [None, None]
    assert start.tolist() == [0, 0]
