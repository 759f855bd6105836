"""Files without section headers are proved, and get tables from their code, as those that have them."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import walkback
from codetables import table_of
from grafting import linker_folder
from peers import root
from sectionless import without_section_headers
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile, layout
from walkback.table.rule import PartKind

if TYPE_CHECKING:
    from walkback.table.table import UnwindTable

SOURCE = """
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
struct Kept { std::string text; explicit Kept(int n) : text(n, 'x') {} ~Kept() { std::puts(text.c_str()); } };
__attribute__((noinline)) int thrown(int which)
{
  Kept kept(which + 20);
  if (which > 3) throw std::runtime_error(kept.text);
  switch (which) {
  case 0: return std::puts("nothing");
  case 1: return std::printf("%s\\n", kept.text.c_str());
  case 2: return std::abs(std::atoi(kept.text.c_str()));
  case 3: std::abort();
  }
  return 5;
}
int main(int count, char **)
{
  char room[80];
  std::snprintf(room, sizeof room, "%d", count);
  try { return thrown(count); } catch (std::exception &) { return std::puts(room); }
}
"""


def program(folder: Path, options: str) -> Path:
    path = folder / "program"
    command: list[str | Path] = ["g++", "-s", *options.split(), "-x", "c++", "-", "-o", path]
    subprocess.run(command, input=SOURCE.encode(), check=True)
    return path


@pytest.mark.parametrize("options", ["-O2", "-O2 -Wl,-z,noseparate-code", "-O1 -no-pie -fstack-protector-all"])
def test_a_program_is_proved_and_described_alike(options: str, tmp_path: Path) -> None:
    alike(program(tmp_path, options), tmp_path)


@pytest.mark.peers
@pytest.mark.parametrize("machine", ["arm64", "s390x"])
def test_files_of_other_machines_are_proved_and_described_alike(machine: str, tmp_path: Path) -> None:
    found = [path for path in sorted(root(machine).rglob("*")) if is_library(path)][:4]
    assert found
    for path in found:
        alike(path, tmp_path)


@pytest.mark.peers
@pytest.mark.parametrize("options", ["", "-Wl,--no-rosegment"])
def test_programs_of_lld_are_proved_and_described_alike(options: str, tmp_path: Path) -> None:
    alike(program(tmp_path, f"-O2 -B{linker_folder(tmp_path, 'ld.lld')} {options}"), tmp_path)


def test_sframe_is_proved_without_section_headers(tmp_path: Path) -> None:
    path = program(tmp_path, "-O2")
    walkback.add(path, tmp_path / "added")
    bare = without_section_headers(tmp_path / "added", tmp_path / "bare")
    one, other = ([(one.functions, one.proved, one.wrong) for one in walkback.verify(path)] for path in (path, bare))
    assert len(other) == 2
    assert other[0] == one[0]


@pytest.mark.peers
def test_tables_of_go_are_proved_without_section_headers(tmp_path: Path) -> None:
    bare = without_section_headers(root("samples-amd64") / "usr/bin/age", tmp_path / "bare")
    [found] = walkback.verify(bare, table=".gopclntab")
    assert found.functions > 4000


def is_library(path: Path) -> bool:
    """Whether it is a library with tables, neither small nor large."""
    with contextlib.suppress(WalkbackError):
        fits = path.is_file() and not path.is_symlink() and 20_000 < path.stat().st_size < 200_000
        return fits and ElfFile(path).type == layout.ET_DYN and any(walkback.verify(path))
    return False


def alike(path: Path, folder: Path) -> None:
    bare = without_section_headers(path, folder / "bare")
    seen = [[(one.functions, one.proved, one.wrong) for one in walkback.verify(each)] for each in (path, bare)]
    assert seen[0] == seen[1]
    one, other = table_of(ElfFile(path)), table_of(ElfFile(bare))
    assert rules(one) == rules(other)
    assert len(rules(one)) > 5


def rules(table: UnwindTable) -> set[tuple[int, tuple[object, ...]]]:
    """The address of each row with a rule, and that."""
    found = set()
    for start, first, count in zip(
        table.range_start.tolist(), table.range_first_row.tolist(), table.range_rows.tolist(), strict=True
    ):
        for row in range(first, first + count):
            rule = table.rules[table.row_rule[row]]
            if rule["cfa"]["kind"] != PartKind.INEXPRESSIBLE:
                found.add((start + int(table.row_offset[row]), rule.item()))
    return found
