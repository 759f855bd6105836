"""What the file's own call frame information says too is a note and no finding."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from walkback import add, check
from walkback.base.replace import replace_file
from walkback.cli.main import cli
from walkback.elf import ElfFile
from walkback.graft import add as graft
from walkback.sections.check import check_source
from walkback.sframe.builder import SectionBuilder
from walkback.sframe.files import read as sources

# `popped` takes its return address off the stack, as `__vfork` does; `plain` is like any function.
SOURCE = """
.globl _start, popped, plain
.text
_start: .cfi_startproc
  .cfi_undefined rip
  hlt
.cfi_endproc
popped: .cfi_startproc
  nop
  popq %rdi
  .cfi_adjust_cfa_offset -8
  .cfi_register rip, rdi
  nop
  jmp *%rdi
.cfi_endproc
plain: .cfi_startproc
  nop
  ret
.cfi_endproc
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "popped.s").write_text(SOURCE)
    subprocess.run(["gcc", "-nostdlib", "-static", folder / "popped.s", "-o", folder / "popped"], check=True)
    return folder / "popped"


@pytest.fixture(scope="module")
def grafted(program: Path) -> Path:
    assert not add(program, program.with_name("grafted")).derived.uncovered
    return program.with_name("grafted")


def address_of(program: Path, name: str) -> int:
    with ElfFile(program) as elf:
        [symtab] = elf.sections_of_type(2)
        names = elf.strings(int(elf.sections["link"][symtab]), elf.symbols(symtab)["name_offset"].tolist())
        return int(elf.symbols(symtab)["value"][names.index(name)])


def test_what_was_derived_and_proved_has_no_findings(grafted: Path) -> None:
    [report] = check(grafted)
    assert report.findings == []
    assert [(note.code, note.symbol, note.row) for note in report.notes] == [("cfa-below-sp", "popped", 1)]
    message = "the CFA is SP+0, a call alone makes it SP+8; .eh_frame says the same"
    assert report.notes[0].message == message
    assert (report.unlisted, report.unlisted_notes) == ({}, {})


def test_a_note_does_not_change_the_exit_status(grafted: Path) -> None:
    done = CliRunner().invoke(cli, ["check", str(grafted)])
    assert done.exit_code == 0
    first, last = done.output.splitlines()
    assert ": note: function 1 (popped), row 1: the CFA is SP+0" in first
    assert first.endswith(".eh_frame says the same [cfa-below-sp]")
    assert last.endswith("3 functions, 4 rows: no findings")
    report = json.loads(CliRunner().invoke(cli, ["check", "--json", str(grafted)]).output)
    assert (report["findings"], report["unlisted_notes"]) == ([], {})
    assert [(note["code"], note["symbol"]) for note in report["notes"]] == [("cfa-below-sp", "popped")]
    assert set(report["notes"][0]) == {"code", "message", "offset", "function", "symbol", "row"}


def test_a_rule_that_is_left_out_has_no_notes(grafted: Path) -> None:
    [report] = check(grafted, ignore=["cfa-below-sp"])
    assert report.notes == []


@pytest.mark.parametrize(
    ("function", "size", "rows"),
    [
        ("plain", 2, ["CFA = rsp+0"]),  # the call frame information has rsp+8
        ("popped", 5, ["CFA = rsp+0"]),  # it says so for the last bytes only
        ("popped", 6, [(0, "CFA = rsp+8"), (1, "CFA = rsp+0")]),
        ("popped", 5, [(0, "CFA = rsp+8"), (2, "CFA = rsp+0")]),  # with the return address where it no longer is
    ],
)
def test_what_it_does_not_say_is_a_finding(
    function: str, size: int, rows: list[str], program: Path, tmp_path: Path
) -> None:
    builder = SectionBuilder("AMD64")
    builder.function(address_of(program, function), size, rows)
    with ElfFile(program) as elf:
        contents = graft(elf, lambda address: builder.encode(address=address), len(builder.encode(address=0)))
        replace_file(tmp_path / "wrong", contents.parts, read=elf.file)
    [report] = check(tmp_path / "wrong")
    assert [finding.code for finding in report.findings] == ["cfa-below-sp"]
    assert report.notes == []


def test_without_call_frame_information_it_is_a_finding(grafted: Path, tmp_path: Path) -> None:
    subprocess.run(["objcopy", "--remove-section=.eh_frame", grafted, tmp_path / "without"], check=True)
    [report] = check(tmp_path / "without")
    assert [finding.code for finding in report.findings] == ["cfa-below-sp"]


def test_the_rows_of_objects_are_in_their_sections(program: Path, tmp_path: Path) -> None:
    subprocess.run(["gcc", "-c", program.with_name("popped.s"), "-o", tmp_path / "popped.o"], check=True)
    add(tmp_path / "popped.o")
    [source] = sources(tmp_path / "popped.o")
    report = check_source(source)
    assert report.findings == []
    assert [note.symbol for note in report.notes] == ["popped"]
