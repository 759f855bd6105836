"""`walkback derive`, `add` and `drop`: what they tell, what they write, and that a refusal or an error writes nothing.

The programs that other tests need are made here too: `hello` and `hello_object` of `tests/hello.s`, whose last function
SFrame cannot say, and `whole`, the same without that one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_cli_names import lines
from test_cli_process import WALKBACK, told
from test_cli_process import run as process
from test_cli_verbs import DOCS, documented, run

from cfibuilder import CfiBuilder, cfa, expr
from elfbuilder import HEADER, ElfBuilder
from test_files import archive, written
from walkback.elf import ElfFile, layout

SOURCE = (Path(__file__).resolve().parents[1] / "hello.s").read_text()
LEAP = "leap (9 bytes): the caller's stack pointer is not where the ABI has it"
SPOILT, SPELLED = b"l\n\x07\xff", "l\\x0a\\x07\\xff"
"""A symbol with a new line, a bell and a byte that is no UTF-8; Click would take a colour out of itself."""
AWKWARD = "two\nlines\x07"


# Files


@cache
def assembled(source: str, *options: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = ["gcc", *options, "-x", "assembler", "-", "-o", f"{folder}/file"]
        subprocess.run(command, input=source.encode(), check=True)
        return Path(folder, "file").read_bytes()


def program(folder: Path, source: str = SOURCE, name: str = "hello") -> Path:
    path = written(folder, assembled(source, "-nostdlib", "-static"), name)
    path.chmod(0o755)
    return path


def hello_object(folder: Path, name: str = "hello.o") -> Path:
    return written(folder, assembled(SOURCE, "-c"), name)


def whole(folder: Path, *, linked: bool = True) -> Path:
    """All of whose functions every version can say."""
    source = SOURCE.partition("\t.type\tleap")[0].replace("\t.cfi_undefined rip\n", "")
    return program(folder, source, "whole") if linked else written(folder, assembled(source, "-c"), "whole.o")


def patched(path: Path, name: str, value: int) -> Path:
    """A copy with another field in its ELF header."""
    offset, code = HEADER[name]
    data = bytearray(path.read_bytes())
    size = {"H": 2, "I": 4, "Q": 8}[code]
    data[offset : offset + size] = value.to_bytes(size, "little")
    return written(path.parent, bytes(data), f"{path.name}-{name}-{value}")


def narrow(path: Path) -> Path:
    """A copy that says that it is a 32-bit file."""
    data = bytearray(path.read_bytes())
    data[4] = 1
    return written(path.parent, bytes(data), f"{path.name}-32")


def spoilt(path: Path, old: bytes = b"leap", new: bytes = SPOILT) -> Path:
    """The same file with another name in it."""
    data = path.read_bytes()
    assert (data.count(old), len(old)) == (1, len(new))
    path.write_bytes(data.replace(old, new))
    return path


def library(folder: Path, *functions: tuple[int, int, bytes]) -> Path:
    """A shared library with code from 0x1000 to 0x2000 and FDEs (start, size, program)."""
    section = CfiBuilder(address=0x2000)
    cie = section.cie(cfa("def_cfa 7 8; offset 16 1"))
    for function in functions:
        section.fde(cie, *function)
    elf = ElfBuilder(kind=3)
    elf.code(".text", 0x1000, 0x1000)
    elf.segment(1, ".text", flags=5, vaddr=0x1000)
    elf.section(".eh_frame", section.bytes(), flags=2, addr=0x2000)
    elf.segment(1, ".eh_frame", vaddr=0x2000)
    return written(folder, elf, "library.so")


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    return program(tmp_path)


def snapshot(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def section_of(path: Path) -> bytes:
    with ElfFile.open(path) as elf:
        (index,) = elf.sections_named(".sframe")
        return bytes(elf.section_data(index))


def derived(path: Path, *options: object) -> bytes:
    """What `derive` writes."""
    output = path.parent / "derived"
    assert run("derive", path, "-o", output, *options).exit_code == 0
    return output.read_bytes()


def writing(verb: str, path: Path, *output: object) -> list[object]:
    """The command that makes the verb write: to the output, or in place."""
    if verb == "drop":
        assert run("add", path).exit_code == 0
    return [verb, path, *(("-o", *output) if output else ())]


def shell(setup: str, *args: object, redirection: str = "") -> subprocess.CompletedProcess[bytes]:
    command = ["sh", "-c", f'{setup} exec "$0" "$@" {redirection}', WALKBACK, *map(os.fspath, args)]
    return subprocess.run(command, capture_output=True, check=False, timeout=60)


# What they tell


def test_derive_tells_what_it_made_and_what_not_with_the_reason(hello):
    done = run("derive", hello, "-o", hello.parent / "s")
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.fullmatch(
        rf"{hello}: \.eh_frame has 152 bytes; SFrame version 3 for 0x[0-9a-f]+ takes 117\n"
        r"  covered: 3 of 4 functions, 35 of 44 bytes of code \(79\.545 %\)\n"
        rf"  not covered: 0x[0-9a-f]+ {re.escape(LEAP)}\n",
        done.stdout,
    )
    assert (hello.parent / "s").stat().st_size == 117


def test_in_an_object_a_place_has_its_section(tmp_path):
    text = run("derive", hello_object(tmp_path), "-o", tmp_path / "s").stdout
    assert "SFrame version 3 for 0x0 takes 117\n" in text
    assert f"  not covered: .text+0x23 {LEAP}\n" in text


def test_add_tells_the_same_and_that_it_is_proved_and_written(hello):
    output = hello.parent / "new"
    expected = run("derive", hello, "-o", hello.parent / "s").stdout
    for target, command in ((output, ["-o", output]), (hello, [])):
        done = run("add", hello, *command)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith(expected)
        proved, *notes = done.stdout.removeprefix(expected).splitlines()
        assert proved == f"  proved: the same rule at every address; written to {target}"
        assert all(note.startswith("  note: ") for note in notes)


def test_drop_tells_nothing(hello):
    done = run(*writing("drop", hello))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_all_covered_is_100_percent(tmp_path):
    text = run("derive", whole(tmp_path), "-o", tmp_path / "s").stdout
    assert "3 of 3 functions, 35 of 35 bytes of code (100 %)\n" in text
    assert "not covered" not in text


def test_what_is_left_out_is_counted(tmp_path):
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


def test_call_frame_information_of_nothing_is_a_section_of_nothing(tmp_path):
    done = run("derive", library(tmp_path), "-o", tmp_path / "s")
    assert done.exit_code == 0
    assert "  covered: 0 of 0 functions, 0 of 0 bytes of code (no code)\n" in done.stdout
    assert (tmp_path / "s").stat().st_size == 28


@pytest.mark.parametrize("options", [[], ["--strict"]])
@pytest.mark.parametrize("verb", ["derive", "add"])
def test_call_frame_information_that_cannot_be_read_to_its_end_is_told(hello, verb, options):
    with ElfFile.open(hello) as elf:
        start = int(elf.sections["offset"][elf.sections_named(".eh_frame")[0]])
    data = bytearray(hello.read_bytes())
    data[start + 1] = 0x10  # the length of the first entry: it would end behind the section
    hello.write_bytes(data)
    done = run(verb, hello, "-o", hello.parent / "out", *options)
    assert done.exit_code or done.stderr


@pytest.mark.parametrize(("limit", "listed", "more"), [(0, 0, 5), (2, 2, 3), (5, 5, 0), (None, 5, 0)])
def test_the_limit_bounds_what_is_listed_and_the_others_are_counted(tmp_path, limit, listed, more):
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
    return json.loads(line)


def test_json_of_derive_has_the_documented_keys(hello):
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
    }


def test_json_of_add_is_that_of_derive_with_notes(hello):
    expected = told_object("derive", hello, "-o", hello.parent / "s")
    found = told_object("add", hello, "-o", hello.parent / "new")
    assert all(isinstance(note, str) for note in found.pop("notes"))
    assert found == {**expected, "type": "added"}
    again = told_object("add", hello.parent / "new")
    assert "the .sframe section that was there has been replaced" in again["notes"]


def test_json_of_an_object_has_the_text_section(tmp_path):
    (one,) = told_object("derive", hello_object(tmp_path), "-o", tmp_path / "s")["uncovered"]
    assert (one["section"], one["start"], one["name"]) == (".text", 0x23, "leap")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_add_leaves_out_of_an_object_is_told(tmp_path, options):
    done = process("add", hello_object(tmp_path), *options)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"leap" in done.stdout


# Exit status


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_strict_is_1_if_a_function_is_not_covered_and_the_file_is_written_all_the_same(tmp_path, verb):
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
def test_what_cannot_be_taken_is_one_line_that_names_the_file_and_nothing_is_written(hello, verb, in_place):
    for message, status, path in refused(hello).values():
        before = snapshot(hello.parent)
        done = run(verb, path, *([] if in_place and verb != "derive" else ["-o", hello.parent / "output"]))
        assert (done.exit_code, done.stdout) == (status, "")
        assert done.stderr.startswith(f"walkback: {path}: {message}")
        assert done.stderr.count("\n") == 1
        assert snapshot(hello.parent) == before


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_a_machine_that_sframe_does_not_know_is_one_line_and_3(hello, verb):
    path = patched(hello, "e_machine", 99)
    before = snapshot(hello.parent)
    done = run(verb, path, "-o", hello.parent / "output")
    assert done.exit_code == 3
    assert re.fullmatch(rf"walkback: {path}: .*\b99\b.*\n", done.stderr)
    assert snapshot(hello.parent) == before


def test_what_cannot_be_grafted_is_derived_and_not_added(hello):
    path = patched(hello, "e_type", 4)
    assert run("derive", path, "-o", hello.parent / "s").exit_code == 0
    before = snapshot(hello.parent)
    done = run("add", path)
    assert (done.exit_code, done.stdout, done.stderr) == (3, "", f"walkback: {path}: this is a core file\n")
    assert snapshot(hello.parent) == before


def test_nothing_to_take_out_is_one_line_and_1(hello):
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
def test_wrong_usage_is_2_and_nothing_is_written(hello, monkeypatch, args, words):
    hello_object(hello.parent)
    monkeypatch.chdir(hello.parent)
    before = snapshot(hello.parent)
    done = run(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert snapshot(hello.parent) == before


# What is written


@pytest.mark.parametrize("version", [1, 2, 3])
def test_derive_writes_what_add_puts_into_a_program(hello, version):
    output = hello.parent / "new"
    assert run("add", hello, "-o", output, "--version", version).exit_code == 0
    section = section_of(output)
    assert section[2] == version
    assert derived(hello, "--version", version) == section
    assert derived(output, "--version", version) == section  # the section that is there does not count


@pytest.mark.parametrize("version", [1, 2, 3])
def test_derive_writes_what_add_puts_into_an_object(tmp_path, version):
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
    with ElfFile.open(path) as elf:
        assert {elf.section_name(one.pop("index")) for one in found} == {".text"}
    assert found == expected
    assert len(found) == 3
    assert {one["type"] for one in found} == {layout.R_X86_64_PC64 if version == 3 else layout.R_X86_64_PC32}


@pytest.mark.parametrize(("consumer", "version"), [("linux", 3), ("glibc", 2)])
def test_a_consumer_gets_its_version(hello, consumer, version):
    assert run("add", hello, "--for", consumer).exit_code == 0
    assert section_of(hello)[2] == version
    assert run("check", hello, "--for", consumer).exit_code == 0


def test_without_a_version_it_is_3(hello):
    assert derived(hello)[2] == 3
    assert run("add", hello).exit_code == 0
    assert section_of(hello)[2] == 3


def test_the_address_is_the_one_asked_for(hello):
    found = told_object("derive", hello, "-o", hello.parent / "s", "--address", "0x500000")
    assert found["address"] == 0x500000
    assert b"0x401000" in process("show", "--address", "0x500000", hello.parent / "s").stdout
    assert derived(hello, "--address", 5 << 20) == (hello.parent / "s").read_bytes()


@pytest.mark.parametrize("version", [1, 2])
def test_an_address_too_far_away_covers_nothing_and_says_why(hello, version):
    output = hello.parent / "s"
    found = told_object("derive", hello, "-o", output, "--address", 1 << 44, "--version", version)
    assert (found["covered"], len(found["uncovered"])) == (0, 4)
    assert all(one["reason"] for one in found["uncovered"])


def test_rows_as_written_are_those_of_an_assembler(tmp_path):
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
def test_the_source_is_eh_frame_or_the_one_asked_for(tmp_path, verb, sections, options, source):
    path = program(tmp_path, f"\t.cfi_sections {sections}\n{SOURCE}")
    found = told_object(verb, path, "-o", tmp_path / "out", *options)
    assert (found["source"], found["covered"]) == (source, 3)


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_a_section_that_is_not_there_is_one_line_and_1(hello, verb):
    done = run(verb, hello, "-o", hello.parent / "out", "--section", ".eh_frame.cold")
    assert (done.exit_code, done.stderr) == (1, f"walkback: {hello}: there is no .eh_frame.cold section\n")
    assert not (hello.parent / "out").exists()


def test_drop_gives_back_what_was_there_before_add(hello):
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


def test_the_program_still_runs(hello):
    assert run("add", hello).exit_code == 0
    assert subprocess.run([hello], check=False).returncode == 0


# Modes and links


@pytest.mark.parametrize("verb", ["add", "drop"])
def test_a_file_changed_in_place_keeps_its_mode_and_a_link_stays_one(hello, verb):
    command = writing(verb, hello)
    before = hello.read_bytes()
    hello.chmod(0o710)
    link = hello.parent / "link"
    link.symlink_to("hello")
    assert run(verb, link, *command[2:]).exit_code == 0
    assert link.is_symlink()
    assert mode(hello) == 0o710
    assert hello.read_bytes() != before
    assert set(hello.parent.iterdir()) == {hello, link}


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_an_output_that_is_there_keeps_its_mode_and_a_link_stays_one(hello, verb):
    output, link = hello.parent / "output", hello.parent / "link"
    output.touch()
    output.chmod(0o604)
    link.symlink_to(output)
    command = writing(verb, hello, link)
    before = hello.read_bytes()
    assert run(*command).exit_code == 0
    assert link.is_symlink()
    assert mode(output) == 0o604
    assert output.stat().st_size > 0
    assert hello.read_bytes() == before


@pytest.mark.parametrize(("verb", "bits"), [("derive", 0o640), ("add", 0o750), ("drop", 0o750)])
def test_a_new_output_is_a_plain_file_or_as_the_program_less_the_umask(hello, verb, bits):
    command = writing(verb, hello, hello.parent / "output")
    former = os.umask(0o027)
    try:
        assert run(*command).exit_code == 0
    finally:
        os.umask(former)
    assert mode(hello.parent / "output") == bits


# Output that cannot be written


@pytest.mark.parametrize("output", ["nowhere/file", "folder", "/dev/full"])
@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_an_output_that_cannot_be_written_is_one_line_and_3(hello, verb, output):
    (hello.parent / "folder").mkdir()
    command = writing(verb, hello, hello.parent / output)
    before = snapshot(hello.parent)
    status, line = told(process(*command))
    assert (status, line.startswith(f"cannot write {hello.parent / output}: ")) == (3, True)
    assert snapshot(hello.parent) == before


def without_privilege() -> list[str]:
    """What makes a command heed permissions even if root runs it."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if not shutil.which("setpriv") or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("root may write everywhere")
    return prefix


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_a_folder_that_may_not_be_written_is_one_line_and_3_and_nothing_is_left(hello, verb):
    folder = hello.parent / "folder"
    folder.mkdir()
    target = Path(shutil.copy(hello, folder))
    command = writing(verb, target) if verb != "derive" else ["derive", hello, "-o", target]
    before = snapshot(folder)
    folder.chmod(0o555)
    try:
        args = [*without_privilege(), str(WALKBACK), *map(os.fspath, command)]
        status, line = told(subprocess.run(args, capture_output=True, check=False))
    finally:
        folder.chmod(0o755)
    assert (status, line) == (3, f"cannot write {target}: Permission denied")
    assert snapshot(folder) == before


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_a_full_disk_is_one_line_and_3_and_the_old_file_stays(hello, verb):
    target = Path(shutil.copy(hello, hello.with_name("target")))
    command = writing(verb, target) if verb != "derive" else ["derive", hello, "-o", target]
    before = snapshot(hello.parent)
    status, line = told(shell("trap '' XFSZ; ulimit -f 0;", *command))
    assert (status, line) == (3, f"cannot write {target}: File too large")
    assert snapshot(hello.parent) == before


SLOW = """
import os, time
def stop(_):
    print("writing", flush=True)
    time.sleep(60)
os.fsync = stop
from walkback.cli import main
main()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_writes_leaves_the_old_file_and_nothing_else(hello, number, status):
    before = snapshot(hello.parent)
    command = [sys.executable, "-c", SLOW, "add", hello]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"writing\n"
        running.send_signal(number)
        _, complaint = running.communicate(timeout=30)
    assert (running.returncode, complaint.strip()) == (status, b"")
    assert snapshot(hello.parent) == before


@pytest.mark.parametrize("target", ["in place", "output"])
def test_a_running_program_is_replaced_and_goes_on(tmp_path, target):
    sleep = tmp_path / "sleep"
    shutil.copy(shutil.which("sleep"), sleep)
    options = [] if target == "in place" else ["-o", sleep]
    source = sleep if target == "in place" else shutil.which("sleep")
    with subprocess.Popen([sleep, "60"]) as running:
        try:
            done = run("add", source, *options)
            assert (done.exit_code, done.stderr) == (0, "")
            assert running.poll() is None
        finally:
            running.kill()
    assert section_of(sleep)
    assert subprocess.run([sleep, "0"], check=False).returncode == 0


def test_relocations_are_not_left_behind_if_the_section_cannot_be_written(tmp_path):
    path = hello_object(tmp_path)
    status, _ = told(process("derive", path, "--relocs", tmp_path / "relocs", "-o", tmp_path / "nowhere" / "s"))
    assert status == 3
    assert set(tmp_path.iterdir()) == {path}


# Standard output


def test_bytes_to_standard_output_that_is_a_file_are_only_these(hello):
    output = hello.parent / "stdout"
    with output.open("wb") as file:
        assert process("derive", hello, "-o", "/dev/stdout", stdout=file).returncode == 0
    assert output.read_bytes() == derived(hello)


def test_bytes_to_standard_output_that_is_a_pipe_come_through(hello):
    done = process("derive", hello, "-o", "/dev/stdout")
    assert (done.returncode, done.stdout) == (0, derived(hello))
    assert b"  covered: 3 of 4 functions" in done.stderr


def test_bytes_to_a_named_pipe_are_only_these(hello):
    expected = derived(hello)
    fifo = hello.parent / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        assert process("derive", hello, "-o", fifo).returncode == 0
        assert reader.communicate(timeout=30)[0] == expected
    assert fifo.is_fifo()


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_a_closed_standard_output_is_one_line_and_3_and_nothing_is_written(hello, verb):
    command = writing(verb, hello, hello.parent / "output")
    before = snapshot(hello.parent)
    assert told(shell("", *command, redirection=">&-")) == (3, "standard output is closed")
    assert snapshot(hello.parent) == before


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("verb", ["derive", "add"])
def test_a_full_standard_output_is_one_line_and_3(hello, verb, options):
    done = shell("", verb, hello, "-o", hello.parent / "output", *options, redirection=">/dev/full")
    assert told(done) == (3, "cannot write the output: No space left on device")


# Names


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_names_of_files_and_symbols_spoil_no_line(tmp_path, verb):
    path = spoilt(program(tmp_path, name=AWKWARD))
    done = process(verb, path, "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, b"")
    first, _, third, *_ = lines(done.stdout)
    assert first.startswith(f"{tmp_path}/two\\x0alines\\x07: .eh_frame has ")
    assert f" {SPELLED} (9 bytes): " in third


def test_the_name_of_an_output_spoils_no_line(hello):
    text = lines(process("add", hello, "-o", hello.parent / AWKWARD).stdout)
    assert f"  proved: the same rule at every address; written to {hello.parent}/two\\x0alines\\x07" in text


def test_the_name_of_a_text_section_spoils_no_line(tmp_path):
    path = spoilt(hello_object(tmp_path), b".text\0", b".t\n\x07t\0")
    _, _, third, _ = lines(process("derive", path, "-o", tmp_path / "s").stdout)
    assert third.startswith("  not covered: .t\\x0a\\x07t+0x23 leap")


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_json_has_every_name_whole_in_one_line(tmp_path, verb):
    path = spoilt(program(tmp_path, name=AWKWARD))
    text, end = lines(process(verb, path, "-o", tmp_path / "out", "--json").stdout)
    found = json.loads(text)
    assert (found["file"], end) == (str(path), "")
    assert found["uncovered"][0]["name"] in {"l\n\x07\\xff", "l\n\x07\udcff"}


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_an_error_about_such_a_name_is_one_line(tmp_path, verb):
    path = written(tmp_path, b"some text\n", AWKWARD)
    assert told(process(verb, path, "-o", tmp_path / "out")) == (
        3,
        f"{tmp_path}/two\\x0alines\\x07: this is not an ELF file",
    )


def test_a_name_that_is_no_utf_8_is_taken_and_shown(tmp_path):
    name = os.fsencode(tmp_path) + b"/na\xffme"
    program(tmp_path).rename(os.fsdecode(name))
    for command in (["add", name], ["derive", name, "-o", tmp_path / "s"]):
        done = process(*command)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.startswith(name)
    assert process("drop", name).returncode == 0
