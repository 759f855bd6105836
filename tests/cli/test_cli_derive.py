"""`walkback derive`, `add` and `drop`: what they tell and write, and that a refusal or an error writes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cfibuilder import cfa, expr
from cli.awkward import lines
from cli.commands import run as process
from cli.commands import told
from cli.hello import (
    AWKWARD,
    LEAP,
    SOURCE,
    SPELLED,
    derived,
    hello_object,
    library,
    mode,
    narrow,
    patched,
    program,
    section_of,
    snapshot,
    spoilt,
    whole,
    writing,
)
from cli.inprocess import DOCS, documented, run
from elfbuilder import ElfBuilder
from sframefiles import archive, written
from walkback.elf import ElfFile, layout

# What they tell


def test_derive_tells_what_it_made_and_what_not_with_the_reason(hello: Path) -> None:
    done = run("derive", hello, "-o", hello.parent / "s")
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.fullmatch(
        rf"{hello}: \.eh_frame has 152 bytes; SFrame version 3 for 0x[0-9a-f]+ takes 117\n"
        r"  covered: 3 of 4 functions, 35 of 44 bytes of code \(79\.545 %\)\n"
        rf"  not covered: 0x[0-9a-f]+ {re.escape(LEAP)}\n",
        done.stdout,
    )
    assert (hello.parent / "s").stat().st_size == 117


def test_in_an_object_a_place_has_its_section(tmp_path: Path) -> None:
    text = run("derive", hello_object(tmp_path), "-o", tmp_path / "s").stdout
    assert "SFrame version 3 for 0x0 takes 117\n" in text
    assert f"  not covered: .text+0x23 {LEAP}\n" in text


def test_add_tells_the_same_and_that_it_is_proved_and_written(hello: Path) -> None:
    output = hello.parent / "new"
    expected = run("derive", hello, "-o", hello.parent / "s").stdout
    for target, command in ((output, ["-o", output]), (hello, [])):
        done = run("add", hello, *command)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith(expected)
        proved, *notes = done.stdout.removeprefix(expected).splitlines()
        assert proved == f"  proved: the same rule at every address; written to {target}"
        assert all(note.startswith("  note: ") for note in notes)


def test_drop_tells_what_it_did(hello: Path) -> None:
    before = hello.stat().st_size
    command = writing("drop", hello)
    grafted = hello.stat().st_size
    done = run(*command)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        f"{hello}: the .sframe section is taken out: the file is what it was before `walkback add`\n"
        f"  {grafted} bytes to {before}; written to {hello}\n"
    )


def test_all_covered_is_100_percent(tmp_path: Path) -> None:
    text = run("derive", whole(tmp_path), "-o", tmp_path / "s").stdout
    assert "3 of 3 functions, 35 of 35 bytes of code (100 %)\n" in text
    assert "not covered" not in text


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    path = library(tmp_path, (0x1000, 16, b""), (0x1000, 16, b""), (0x1020, 0, b""), (0x40, 8, b""), (0x80, 8, b""))
    text = run("derive", path, "-o", tmp_path / "s").stdout
    assert "  covered: 1 of 1 functions, 16 of 16 bytes" in text
    assert text.endswith(
        "  left out: 2 FDEs describe code that is not in the file\n"
        "  left out: 1 FDEs describe no code\n"
        "  left out: 1 FDEs describe code for which others hold\n"
    )
    found = json.loads(run("derive", path, "-o", tmp_path / "s", "--json").stdout)
    assert (found["dead"], found["empty"], found["shadowed"]) == (2, 1, 1)


def test_call_frame_information_of_nothing_is_a_section_of_nothing(tmp_path: Path) -> None:
    done = run("derive", library(tmp_path), "-o", tmp_path / "s")
    assert done.exit_code == 0
    assert "  covered: 0 of 0 functions, 0 of 0 bytes of code (no code)\n" in done.stdout
    assert (tmp_path / "s").stat().st_size == 28


@pytest.mark.parametrize("options", [[], ["--strict"]])
@pytest.mark.parametrize("verb", ["derive", "add"])
def test_call_frame_information_that_cannot_be_read_to_its_end_is_told(
    hello: Path, verb: str, options: list[str]
) -> None:
    with ElfFile(hello) as elf:
        start = int(elf.sections["offset"][elf.sections_named(".eh_frame")[0]])
    data = bytearray(hello.read_bytes())
    data[start + 1] = 0x10  # the length of the first entry: it would end behind the section
    hello.write_bytes(data)
    done = run(verb, hello, "-o", hello.parent / "out", *options)
    assert done.exit_code or done.stderr


@pytest.mark.parametrize(("limit", "listed", "more"), [(0, 0, 5), (2, 2, 3), (5, 5, 0), (None, 5, 0)])
def test_the_limit_bounds_what_is_listed_and_the_others_are_counted(
    tmp_path: Path, limit: int | None, listed: int, more: int
) -> None:
    unsaid = cfa(f"def_cfa_expression {expr('breg7 8; deref; lit3; plus')}")
    path = library(tmp_path, *((0x1000 + 16 * number, 16, unsaid) for number in range(5)))
    options = [] if limit is None else ["--limit", limit]
    text = run("derive", path, "-o", tmp_path / "s", *options).stdout
    assert text.count("  not covered: ") == listed
    assert ("and 0 more" not in text) if not more else (f"  and {more} more that are not covered\n" in text)
    assert len(json.loads(run("derive", path, "-o", tmp_path / "s", "--json", *options).stdout)["uncovered"]) == 5


# JSON


def told_object(*args: object) -> dict[str, Any]:
    (line,) = run(*args, "--json").stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_json_of_derive_has_the_documented_keys(hello: Path) -> None:
    found = told_object("derive", hello, "-o", hello.parent / "s")
    assert set(found) == documented("derive") - {"2", "3"}
    (row,) = re.findall(r"^\| `uncovered` \|(.*)", DOCS.read_text(), re.MULTILINE)
    assert set(found["uncovered"][0]) == set(re.findall(r"`(\w+)`", row))
    place = found.pop("address"), found["uncovered"][0].pop("start")
    assert all(isinstance(one, int) for one in place)
    assert found == {
        "type": "derived",
        "file": str(hello),
        "source": ".eh_frame",
        "source_bytes": 152,
        "version": 3,
        "bytes": 117,
        "functions": 4,
        "covered": 3,
        "code_bytes": 44,
        "covered_bytes": 35,
        "dead": 0,
        "empty": 0,
        "shadowed": 0,
        "uncovered": [{"section": None, "size": 9, "name": "leap", "reason": LEAP.partition(": ")[2]}],
        "unwanted": [],
        "notes": [],
    }


def test_json_of_add_is_that_of_derive_with_notes(hello: Path) -> None:
    expected = told_object("derive", hello, "-o", hello.parent / "s")
    found = told_object("add", hello, "-o", hello.parent / "new")
    assert all(isinstance(note, str) for note in found["notes"])
    assert found == {**expected, "type": "added", "notes": found["notes"]}
    again = told_object("add", hello.parent / "new")
    assert "the .sframe section that was there has been replaced" in again["notes"]


def test_json_of_an_object_has_the_text_section(tmp_path: Path) -> None:
    (one,) = told_object("derive", hello_object(tmp_path), "-o", tmp_path / "s")["uncovered"]
    assert (one["section"], one["start"], one["name"]) == (".text", 0x23, "leap")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_add_leaves_out_of_an_object_is_told(tmp_path: Path, options: list[str]) -> None:
    done = process("add", hello_object(tmp_path), *options)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"leap" in done.stdout


# Exit status


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_strict_is_1_if_a_function_is_not_covered_and_the_file_is_written_all_the_same(
    tmp_path: Path, verb: str
) -> None:
    for path, status in ((program(tmp_path), 1), (whole(tmp_path), 0)):
        output = tmp_path / f"{path.name}.out"
        done = run(verb, path, "-o", output, "--strict")
        assert (done.exit_code, done.stderr) == (status, "")
        lenient = tmp_path / "lenient"
        assert run(verb, path, "-o", lenient).exit_code == 0
        assert output.read_bytes() == lenient.read_bytes()


def refused(path: Path) -> dict[str, tuple[str, int, Path]]:
    """What none of the verbs takes: message, exit status, file."""
    folder = path.parent
    return {
        "missing": ("No such file or directory", 3, folder / "missing"),
        "folder": ("this is a directory", 3, folder),
        "empty": ("the file is empty", 3, written(folder, b"", "empty")),
        "text": ("this is not an ELF file", 3, written(folder, b"some text\n", "text")),
        "32-bit": ("32-bit ELF files are not supported", 3, narrow(path)),
        "archive": ("this is an archive, and one", 3, archive(folder, "all.a", hello_object(folder))),
        "nothing": ("there is no ", 1, written(folder, ElfBuilder(kind=3), "nothing")),
    }


@pytest.mark.parametrize("in_place", [False, True], ids=["output", "in place"])
@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_what_cannot_be_taken_is_one_line_that_names_the_file_and_nothing_is_written(
    hello: Path, verb: str, in_place: bool
) -> None:
    for message, status, path in refused(hello).values():
        before = snapshot(hello.parent)
        done = run(verb, path, *([] if in_place and verb != "derive" else ["-o", hello.parent / "output"]))
        assert (done.exit_code, done.stdout) == (status, "")
        assert done.stderr.startswith(f"walkback: {path}: {message}")
        assert done.stderr.count("\n") == 1
        assert snapshot(hello.parent) == before


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_a_machine_that_sframe_does_not_know_is_one_line_and_3(hello: Path, verb: str) -> None:
    path = patched(hello, "e_machine", 99)
    before = snapshot(hello.parent)
    done = run(verb, path, "-o", hello.parent / "output")
    assert done.exit_code == 3
    assert re.fullmatch(rf"walkback: {path}: .*\b99\b.*\n", done.stderr)
    assert snapshot(hello.parent) == before


def test_what_cannot_be_grafted_is_derived_and_not_added(hello: Path) -> None:
    path = patched(hello, "e_type", 4)
    assert run("derive", path, "-o", hello.parent / "s").exit_code == 0
    before = snapshot(hello.parent)
    done = run("add", path)
    assert (done.exit_code, done.stdout, done.stderr) == (3, "", f"walkback: {path}: this is a core file\n")
    assert snapshot(hello.parent) == before


def test_nothing_to_take_out_is_one_line_and_1(hello: Path) -> None:
    done = run("drop", hello)
    assert (done.exit_code, done.stderr) == (1, f"walkback: {hello}: there is no .sframe section to take out\n")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["derive", "hello", "-o", "s", "--relocs", "r"], "--relocs is for objects"),
        (["derive", "hello.o", "-o", "s", "--address", "0x1000"], "--address is for linked files"),
        (["derive", "hello", "-o", "s", "--address", "here"], "'here' is not an address"),
        (["derive", "hello", "-o", "s", "--address", "0x10000000000000000"], "is not an address"),
        (["derive", "hello", "-o", "s", "--version", "0"], "--version"),
        (["derive", "hello", "-o", "s", "--version", "4"], "--version"),
        (["derive", "hello", "-o", "s", "--rows", "all"], "--rows"),
        (["derive", "hello", "-o", "s", "--limit", "-1"], "--limit"),
        (["derive", "hello"], "--output"),
        (["derive", "hello", "hello", "-o", "s"], "unexpected extra argument"),
        (["add", "hello", "-o", "s", "--version", "3", "--for", "linux"], "--version and --for exclude each other"),
        (["add", "hello", "-o", "s", "--version", "4"], "--version"),
        (["add", "hello", "-o", "s", "--version", "three"], "--version"),
        (["add", "hello", "-o", "s", "--for", "gnu-ld"], "--for"),
        (["add"], "Missing argument"),
        (["drop"], "Missing argument"),
        (["drop", "hello", "-o", "s", "--json"], "--json"),
    ],
)
def test_wrong_usage_is_2_and_nothing_is_written(
    hello: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], words: str
) -> None:
    hello_object(hello.parent)
    monkeypatch.chdir(hello.parent)
    before = snapshot(hello.parent)
    done = run(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert snapshot(hello.parent) == before


# What is written


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


# Names


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_names_of_files_and_symbols_spoil_no_line(tmp_path: Path, verb: str) -> None:
    path = spoilt(program(tmp_path, name=AWKWARD))
    done = process(verb, path, "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, b"")
    first, _, third, *_ = lines(done.stdout)
    assert first.startswith(f"{tmp_path}/two\\x0alines\\x07: .eh_frame has ")
    assert f" {SPELLED} (9 bytes): " in third


def test_the_name_of_an_output_spoils_no_line(hello: Path) -> None:
    text = lines(process("add", hello, "-o", hello.parent / AWKWARD).stdout)
    assert f"  proved: the same rule at every address; written to {hello.parent}/two\\x0alines\\x07" in text


def test_the_name_of_a_text_section_spoils_no_line(tmp_path: Path) -> None:
    path = spoilt(hello_object(tmp_path), b".text\0", b".t\n\x07t\0")
    _, _, third, _ = lines(process("derive", path, "-o", tmp_path / "s").stdout)
    assert third.startswith("  not covered: .t\\x0a\\x07t+0x23 leap")


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_json_has_every_name_whole_in_one_line(tmp_path: Path, verb: str) -> None:
    path = spoilt(program(tmp_path, name=AWKWARD))
    text, end = lines(process(verb, path, "-o", tmp_path / "out", "--json").stdout)
    found = json.loads(text)
    assert (found["file"], end) == (str(path), "")
    assert found["uncovered"][0]["name"] in {"l\n\x07\\xff", "l\n\x07\udcff"}


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_an_error_about_such_a_name_is_one_line(tmp_path: Path, verb: str) -> None:
    path = written(tmp_path, b"some text\n", AWKWARD)
    assert told(process(verb, path, "-o", tmp_path / "out")) == (
        3,
        f"{tmp_path}/two\\x0alines\\x07: this is not an ELF file",
    )


def test_a_name_that_is_no_utf_8_is_taken_and_shown(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/na\xffme"
    program(tmp_path).rename(os.fsdecode(name))
    for command in (["add", name], ["derive", name, "-o", tmp_path / "s"]):
        done = process(*command)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.startswith(name)
    assert process("drop", name).returncode == 0
