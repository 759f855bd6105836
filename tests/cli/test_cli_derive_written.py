"""`walkback derive`, `add` and `drop`: what they write."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from cli.commands import run as process
from cli.hello import (
    SOURCE,
    derived,
    mode,
    program,
    section_of,
    whole,
)
from cli.inprocess import run, told_object
from walkback.elf import ElfFile, layout


@pytest.mark.parametrize("version", [1, 2, 3])
def test_derive_writes_what_add_puts_into_a_program(hello: Path, version: int) -> None:
    output = hello.parent / "new"
    assert run("add", hello, "-o", output, "--version", version).exit_code == 0
    section = section_of(output)
    assert section[2] == version
    assert derived(hello, "--version", version) == section
    assert derived(output, "--version", version) == section  # the section that is there does not count


@pytest.mark.parametrize("version", [1, 2, 3])
def test_derive_writes_what_add_puts_into_an_object(tmp_path: Path, version: int) -> None:
    path = whole(tmp_path, linked=False)
    output, relocs = tmp_path / "new.o", tmp_path / "relocs"
    assert run("add", path, "-o", output, "--version", version).exit_code == 0
    assert derived(path, "--version", version, "--relocs", relocs) == section_of(output)
    shown = subprocess.run(["readelf", "-rW", output], capture_output=True, text=True, check=True).stdout
    entries = re.findall(
        r"^(\w{16})  (\w{16}) R_X86_64_PC\w+ .* (\.\S+) \+ (\w+)$", shown.partition(".rela.sframe")[2], 8
    )
    expected = [
        {"offset": int(offset, 16), "type": int(info, 16) & 0xFFFFFFFF, "section": section, "addend": int(addend, 16)}
        for offset, info, section, addend in entries
    ]
    found = [json.loads(line) for line in relocs.read_text().splitlines()]
    with ElfFile(path) as elf:
        assert {elf.section_name(one.pop("index")) for one in found} == {".text"}
    assert found == expected
    assert len(found) == 3
    assert {one["type"] for one in found} == {layout.R_X86_64_PC64 if version == 3 else layout.R_X86_64_PC32}


@pytest.mark.parametrize(("consumer", "version"), [("linux", 3), ("glibc", 2)])
def test_a_consumer_gets_its_version(hello: Path, consumer: str, version: int) -> None:
    assert run("add", hello, "--for", consumer).exit_code == 0
    assert section_of(hello)[2] == version
    report = json.loads(run("check", hello, "--for", consumer, "--json").stdout)
    # What version 2 and 3 have no words for stops the walk.
    assert (report["loads"], {finding["code"] for finding in report["findings"]}) == (True, {f"{consumer}-uncovered"})
    assert any(" leap " in finding["message"] for finding in report["findings"])


def test_without_a_version_it_is_3(hello: Path) -> None:
    assert derived(hello)[2] == 3
    assert run("add", hello).exit_code == 0
    assert section_of(hello)[2] == 3


def test_the_address_is_the_one_asked_for(hello: Path) -> None:
    found = told_object("derive", hello, "-o", hello.parent / "s", "--address", "0x500000")
    assert found["address"] == 0x500000
    assert b"0x401000" in process("show", "--address", "0x500000", hello.parent / "s").stdout
    assert derived(hello, "--address", 5 << 20) == (hello.parent / "s").read_bytes()


@pytest.mark.parametrize("version", [1, 2])
def test_an_address_too_far_away_covers_nothing_and_says_why(hello: Path, version: int) -> None:
    output = hello.parent / "s"
    found = told_object("derive", hello, "-o", output, "--address", 1 << 44, "--version", version)
    assert (found["covered"], len(found["uncovered"])) == (0, 4)
    assert all(one["reason"] for one in found["uncovered"])


def test_rows_as_written_are_those_of_an_assembler(tmp_path: Path) -> None:
    source = SOURCE.replace("\tsub\t$64, %rsp\n", "\tsub\t$64, %rsp\n\t.cfi_def_cfa_offset 16\n")
    path = program(tmp_path, source)
    merged, written_ = derived(path), derived(path, "--rows", "as-written")
    assert len(written_) > len(merged)
    assert derived(path, "--rows", "merged") == merged


@pytest.mark.parametrize(
    ("sections", "options", "source"),
    [
        (".eh_frame, .debug_frame", [], ".eh_frame"),
        (".eh_frame, .debug_frame", ["--section", ".debug_frame"], ".debug_frame"),
        (".debug_frame", [], ".debug_frame"),
    ],
)
@pytest.mark.parametrize("verb", ["derive", "add"])
def test_the_source_is_eh_frame_or_the_one_asked_for(
    tmp_path: Path, verb: str, sections: str, options: list[str], source: str
) -> None:
    path = program(tmp_path, f"\t.cfi_sections {sections}\n{SOURCE}")
    found = told_object(verb, path, "-o", tmp_path / "out", *options)
    assert (found["source"], found["covered"]) == (source, 3)


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_a_section_that_is_not_there_is_one_line_and_1(hello: Path, verb: str) -> None:
    done = run(verb, hello, "-o", hello.parent / "out", "--section", ".eh_frame.cold")
    assert (done.exit_code, done.stderr) == (1, f"walkback: {hello}: there is no .eh_frame.cold section\n")
    assert not (hello.parent / "out").exists()


def test_drop_gives_back_what_was_there_before_add(hello: Path) -> None:
    before, bits = hello.read_bytes(), mode(hello)
    assert run("add", hello).exit_code == 0
    added = hello.read_bytes()
    assert run("add", hello).exit_code == 0
    assert hello.read_bytes() == added
    assert run("drop", hello, "-o", hello.parent / "dropped").exit_code == 0
    assert hello.read_bytes() == added
    assert run("drop", hello).exit_code == 0
    assert hello.read_bytes() == (hello.parent / "dropped").read_bytes() == before
    assert mode(hello) == mode(hello.parent / "dropped") == bits


def test_the_program_still_runs(hello: Path) -> None:
    assert run("add", hello).exit_code == 0
    assert subprocess.run([hello], check=False).returncode == 0
