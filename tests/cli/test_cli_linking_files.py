"""`walkback convert`, `link`, `fix` and `split`: outputs, wrong usage, unfit files, names; an error writes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from signal import Signals
from typing import TYPE_CHECKING

import pytest

from cli.awkward import lines
from cli.commands import WALKBACK, told
from cli.commands import run as process
from cli.hello import AWKWARD, mode, shell, snapshot, spoilt
from cli.inprocess import run
from cli.linkable import IN_PLACE, SIGNAL, VERBS, given, incomplete, on, sections
from cli.writing import SLOW, without_privilege
from docfiles import joined
from elfbuilder import ElfBuilder
from sframebuilder import AARCH64
from sframefiles import archive, linked, relocatable, small, written
from waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.whole

# Where the result goes


@pytest.mark.parametrize("verb", IN_PLACE)
def test_without_an_output_the_file_is_replaced_and_keeps_its_mode(tmp_path: Path, verb: str) -> None:
    path, output = given(verb, tmp_path), tmp_path / "output"
    assert run(*on(verb, path, output=output)).exit_code == 0
    path.chmod(0o710)
    link = tmp_path / "link"
    link.symlink_to(path.name)
    assert run(*on(verb, link)).exit_code == 0
    assert link.is_symlink()
    assert mode(path) == 0o710
    assert path.read_bytes() == output.read_bytes()
    assert set(tmp_path.iterdir()) == {path, output, link}


@pytest.mark.parametrize("verb", IN_PLACE)
def test_an_output_that_is_the_file_replaces_it(tmp_path: Path, verb: str) -> None:
    path, output = given(verb, tmp_path), tmp_path / "output"
    assert run(*on(verb, path, output=output)).exit_code == 0
    assert run(*on(verb, path, output=path)).exit_code == 0
    assert path.read_bytes() == output.read_bytes()


@pytest.mark.parametrize("verb", IN_PLACE)
def test_with_an_output_the_file_stays(tmp_path: Path, verb: str) -> None:
    path = given(verb, tmp_path)
    path.chmod(0o750)
    before = path.read_bytes()
    former = os.umask(0o027)
    try:
        assert run(*on(verb, path, output=tmp_path / "output")).exit_code == 0
    finally:
        os.umask(former)
    assert path.read_bytes() == before
    assert mode(tmp_path / "output") == 0o750


def test_link_takes_the_place_of_no_linked_file(tmp_path: Path) -> None:
    path = given("link", tmp_path)
    (tmp_path / "link").symlink_to(path.name)
    before = snapshot(tmp_path)
    for output in (path, tmp_path / "link"):
        done = process("link", path, "-o", output)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"the section would take the place of the file" in done.stderr
    assert snapshot(tmp_path) == before


def test_link_may_take_the_place_of_raw_bytes_and_of_an_object(tmp_path: Path) -> None:
    raw = written(tmp_path, small().bytes(), "raw")
    assert run("link", f"{raw}@0x2000", "-o", raw, "--version", "2").exit_code == 0
    assert sections(raw) == [(2, 3)]
    path = written(tmp_path, joined(), "joined.o")
    assert run("link", "-r", path, "-o", path).exit_code == 0
    assert sections(path) == [(2, 3)]


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("verb", VERBS)
def test_bytes_to_standard_output_are_only_these(tmp_path: Path, verb: str, options: list[str]) -> None:
    path, output = given(verb, tmp_path), tmp_path / "output"
    assert run(*on(verb, path, output=output)).exit_code == 0
    done = process(*on(verb, path, *options, output="/dev/stdout"))
    assert (done.returncode, done.stdout) == (0, output.read_bytes())
    assert done.stderr.startswith(b"{" if options else os.fsencode(path) if verb != "link" else b"/dev/stdout: ")
    with (tmp_path / "stdout").open("wb") as file:
        assert process(*on(verb, path, *options, output="/dev/stdout"), stdout=file).returncode == 0
    assert (tmp_path / "stdout").read_bytes() == output.read_bytes()


@pytest.mark.parametrize("verb", VERBS)
def test_a_refusal_writes_nothing_to_standard_output(tmp_path: Path, verb: str) -> None:
    for options in ([], ["--json"]):
        path = incomplete(verb, tmp_path)
        done = process(*on(verb, path, "--version", "2", *options, output="/dev/stdout"))
        assert (done.returncode, done.stdout) == (1, b"")
        assert SIGNAL.encode() in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_bytes_to_a_named_pipe_are_only_these(tmp_path: Path, verb: str) -> None:
    path, output, fifo = given(verb, tmp_path), tmp_path / "output", tmp_path / "fifo"
    assert run(*on(verb, path, output=output)).exit_code == 0
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        assert process(*on(verb, path, output=fifo)).returncode == 0
        assert reader.communicate(timeout=PATIENCE)[0] == output.read_bytes()
    assert fifo.is_fifo()


@pytest.mark.parametrize("output", ["nowhere/file", "folder", "/dev/full"])
@pytest.mark.parametrize("verb", VERBS)
def test_an_output_that_cannot_be_written_is_one_line_and_3(tmp_path: Path, verb: str, output: str) -> None:
    path = given(verb, tmp_path)
    (tmp_path / "folder").mkdir()
    before = snapshot(tmp_path)
    status, line = told(process(*on(verb, path, output=tmp_path / output)))
    assert (status, line.startswith(f"cannot write {tmp_path / output}: ")) == (3, True)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_is_one_line_and_3_and_the_old_file_stays(tmp_path: Path, verb: str) -> None:
    path = given(verb, tmp_path)
    before = snapshot(tmp_path)
    status, line = told(shell("trap '' XFSZ; ulimit -f 0;", *on(verb, path)))
    assert (status, line.endswith(": File too large")) == (3, True)
    assert snapshot(tmp_path) == before


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("verb", VERBS)
def test_a_signal_while_it_writes_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, verb: str, number: Signals, status: int
) -> None:
    command = [sys.executable, "-c", SLOW, *(os.fspath(one) for one in on(verb, given(verb, tmp_path)))]
    before = snapshot(tmp_path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"writing\n"
        running.send_signal(number)
        _, complaint = running.communicate(timeout=PATIENCE)
    assert (running.returncode, complaint.strip()) == (status, b"")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_that_may_not_be_written_is_one_line_and_3_and_nothing_is_left(tmp_path: Path, verb: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    command = on(verb, given(verb, folder))
    before = snapshot(folder)
    folder.chmod(0o555)
    try:
        args = [*without_privilege(), str(WALKBACK), *(os.fspath(one) for one in command)]
        status, line = told(subprocess.run(args, capture_output=True, check=False))
    finally:
        folder.chmod(0o755)
    assert (status, line.endswith(": Permission denied")) == (3, True)
    assert snapshot(folder) == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_closed_standard_output_is_one_line_and_3_and_nothing_is_written(tmp_path: Path, verb: str) -> None:
    path = given(verb, tmp_path)
    before = snapshot(tmp_path)
    assert told(shell("", *on(verb, path), redirection=">&-")) == (3, "standard output is closed")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_full_standard_output_is_one_line_and_3(tmp_path: Path, verb: str, options: list[str]) -> None:
    done = shell("", *on(verb, given(verb, tmp_path), *options), redirection=">/dev/full")
    assert told(done) == (3, "cannot write the output: No space left on device")


# Wrong usage


def wrong_usage(folder: Path) -> list[tuple[list[str | bytes | Path], str]]:
    program, raw = written(folder, linked(small().bytes()), "program"), written(folder, small().bytes(), "raw")
    one, output = written(folder, joined(), "one.o"), folder / "output"
    version = ["--version", "3"]
    return [
        (["convert", program], "Missing option '--version'"),
        (["convert", program, "--version", "4"], "'--version'"),
        (["convert", program, program, *version], "unexpected extra argument"),
        (["convert", raw, "--version", "1", "--pcrel", "yes"], "version 1 has no starts that count"),
        (["convert", program, *version, "--byteorder", "big"], "--byteorder is for raw section bytes"),
        (["convert", raw, *version, "--byteorder", "middle"], "'--byteorder'"),
        (["convert", raw, *version, "--limit", "-1"], "'--limit'"),
        (["link", program], "Missing option '-o'"),
        (["link", "-o", output], "Missing argument 'FILE...'"),
        (["link", "-r", one, one, "-o", output], "-r takes one object"),
        (["link", "-r", one, "--address", "0", "-o", output], "-r takes no --address"),
        (["link", f"{program}@0x4000", "-o", output], "an address is for raw section bytes"),
        (["link", f"{raw}@here", "-o", output], "'here' is not an address"),
        (["link", f"{raw}@{1 << 64}", "-o", output], "is not an address"),
        (["link", raw, program, "-o", output], "raw section bytes need their address"),
        (["link", program, "--address", "here", "-o", output], "'here' is not an address"),
        (["link", program, "--view", "both", "-o", output], "'--view'"),
        (["link", program, "--version", "1", "--pcrel", "yes", "-o", output], "version 1 has no starts that count"),
        (["fix", program, "--view", "linking"], "No such option"),
        (["fix", program, "--pcrel", "maybe"], "'--pcrel'"),
        (["split"], "Missing argument 'FILE'"),
    ]


def test_wrong_usage_is_2_and_writes_nothing(tmp_path: Path) -> None:
    cases = wrong_usage(tmp_path)
    before = snapshot(tmp_path)
    for args, words in cases:
        done = process(*args)
        assert (done.returncode, done.stdout) == (2, b""), args
        assert words in done.stderr.decode(), args
        assert b"Traceback" not in done.stderr
        assert snapshot(tmp_path) == before


# Files that are not what is wanted


def unfit(folder: Path) -> list[tuple[list[str | bytes | Path], int, str]]:
    """Commands with their exit status and what they tell behind the name of the file."""
    program, one = written(folder, linked(small().bytes()), "program"), written(folder, joined(), "one.o")
    raw, text = written(folder, small().bytes(), "raw"), written(folder, b"some text\n", "text")
    nothing, all_ = written(folder, ElfBuilder(kind=3), "nothing"), archive(folder, "all.a", one)
    no_object = written(folder, ElfBuilder(), "no.o")
    empty = written(folder, linked(b"", segment=False), "empty")
    empty_object = written(folder, relocatable(b"", []), "empty.o")
    cases: list[tuple[list[str | bytes | Path], int, str]] = [
        *((on(verb, folder / "missing"), 3, "No such file or directory") for verb in VERBS),
        *((on(verb, folder), 3, "this is a directory") for verb in VERBS),
        (on("convert", text), 3, "this is not an ELF file, archive or SFrame section"),
        (on("link", text), 3, "this is not an ELF file, archive or SFrame section"),
        (on("fix", text), 3, "this is not an ELF file"),
        (on("fix", raw), 3, "this is not an ELF file"),
        (on("split", raw), 3, "not an object or archive"),
        (on("fix", all_), 3, "got an archive"),
        (on("link", all_), 3, "this is an archive, whose members have no addresses"),
        (on("link", all_, "-r"), 3, "got an archive"),
        (on("link", one), 3, "this is a relocatable object; `walkback link -r` is for those"),
        (on("link", program, "-r"), 3, "this is not a relocatable object"),
        (on("fix", one), 3, "this is a relocatable object"),
        (on("split", program), 3, "this is a linked file"),
        (on("split", nothing), 3, "this is a linked file"),
        *(
            (on(verb, nothing), 1, "there is no .sframe section; `walkback add` makes one")
            for verb in ("convert", "link", "fix")
        ),
        (on("split", no_object), 1, "there is no .sframe section; `as --gsframe` or `walkback add` makes one"),
        (on("link", no_object, "-r"), 1, "there is no .sframe section; `as --gsframe` or `walkback add` makes one"),
        *((on(verb, empty), 1, "empty") for verb in ("link", "fix")),
        (on("link", empty_object, "-r"), 1, "empty"),
    ]
    return cases


def test_what_a_verb_cannot_take_is_one_line_that_names_it_and_writes_nothing(tmp_path: Path) -> None:
    cases = unfit(tmp_path)
    before = snapshot(tmp_path)
    for command, status, words in cases:
        done = run(*command)
        (line,) = done.stderr.splitlines()
        start = f"walkback: {os.fsdecode(command[1])}: "
        assert (done.exit_code, line.startswith(start), words in line) == (status, True, True), (command, line)
        assert snapshot(tmp_path) == before


@pytest.mark.parametrize("verb", ["convert", "split"])
def test_an_empty_section_stays_so_and_that_is_told(tmp_path: Path, verb: str) -> None:
    path = written(tmp_path, relocatable(b"", []), "empty.o")
    done = run(*on(verb, path, output=tmp_path / "output"))
    assert (done.exit_code, done.stderr) == (0, "")
    assert "empty" in done.stdout
    assert "version  " not in done.stdout
    assert (tmp_path / "output").read_bytes() == path.read_bytes()


def test_machines_that_differ_are_refused(tmp_path: Path) -> None:
    one = written(tmp_path, small().bytes(), "one")
    two = written(tmp_path, small(abi=AARCH64, fixed_ra=0).bytes(), "two")
    status, line = told(process("link", f"{one}@0x2000", f"{two}@0x2000", "-o", tmp_path / "output"))
    assert (status, line.startswith(f"{two}: ")) == (3, True)
    assert "[header-abi]" in line
    assert not (tmp_path / "output").exists()


def test_one_file_that_cannot_be_read_is_enough_to_write_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small().bytes()))
    assert told(process("link", path, tmp_path / "missing", "-o", tmp_path / "output"))[0] == 3
    assert set(tmp_path.iterdir()) == {path}


# Names


@pytest.mark.parametrize("verb", VERBS)
def test_names_with_control_characters_spoil_no_line(tmp_path: Path, verb: str) -> None:
    path = incomplete(verb, tmp_path, AWKWARD)
    for options in (["--leave-out"], []):
        done = process(*on(verb, path, "--version", "2", *options, output=tmp_path / "output\x1b[31m"))
        told_lines = lines(done.stdout) + lines(done.stderr)
        assert done.returncode == (0 if options else 1)
        expected = "output\\x1b[31m" if verb == "link" and options else "two\\x0alines\\x07"
        assert any(expected in line for line in told_lines)


def test_wrong_usage_that_names_such_a_file_spoils_no_line(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small().bytes()), AWKWARD)
    wrong: list[list[str | Path]] = [[f"{path}@0x10", "-o", tmp_path / "output"], [path, "-o", path]]
    for args in wrong:
        done = process("link", *args)
        assert done.returncode == 2
        assert any("two\\x0alines\\x07" in line for line in lines(done.stderr))


@pytest.mark.parametrize("verb", VERBS)
def test_a_name_that_is_no_utf_8_is_taken_and_shown(tmp_path: Path, verb: str) -> None:
    name = os.fsencode(tmp_path) + b"/na\xffme"
    given(verb, tmp_path).rename(os.fsdecode(name))
    done = process(*on(verb, name, output=name + b"2"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(name)
    done = process(*on(verb, name, "--json", output=name + b"2"))
    found = json.loads(done.stdout)
    assert os.fsencode(found["files"][0] if verb == "link" else found["file"]) == name


def test_a_name_with_an_at_sign_is_a_name_if_it_is_there(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small().bytes()), "lib@2")
    assert run("link", path, "-o", tmp_path / "s").exit_code == 0
    raw = written(tmp_path, small().bytes(), "raw@1")
    assert "for 0x2000" in run("link", f"{raw}@0x2000", "-o", tmp_path / "s").stdout


@pytest.mark.parametrize("verb", VERBS)
def test_a_symbol_with_control_characters_spoils_no_line(tmp_path: Path, verb: str) -> None:
    path = incomplete(verb, tmp_path)
    name = b"f0\0" if verb == "split" else b"f3\0"
    spoilt(path, name, b"\n\x07\0")
    done = process(*on(verb, path, "--version", "2", output=tmp_path / "output"))
    assert done.returncode == 1
    assert any(" \\x0a\\x07 (32 bytes): " in line for line in lines(done.stderr))
