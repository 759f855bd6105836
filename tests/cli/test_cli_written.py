"""Outputs of `derive`, `add` and `drop`: modes and links, what cannot be written, standard output."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from signal import Signals

import pytest

from cli.commands import WALKBACK, told
from cli.commands import run as process
from cli.hello import (
    derived,
    hello_object,
    mode,
    section_of,
    shell,
    snapshot,
    writing,
)
from cli.inprocess import run
from cli.writing import SLOW, without_privilege
from waiting import PATIENCE

pytestmark = pytest.mark.whole

# Modes and links


@pytest.mark.parametrize("verb", ["add", "drop"])
def test_a_file_changed_in_place_keeps_its_mode_and_a_link_stays_one(hello: Path, verb: str) -> None:
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
def test_an_output_that_is_there_keeps_its_mode_and_a_link_stays_one(hello: Path, verb: str) -> None:
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
def test_a_new_output_is_a_plain_file_or_as_the_program_less_the_umask(hello: Path, verb: str, bits: int) -> None:
    command = writing(verb, hello, hello.parent / "output")
    former = os.umask(0o027)
    try:
        assert run(*command).exit_code == 0
    finally:
        os.umask(former)
    assert mode(hello.parent / "output") == bits


# Output that cannot be written


@pytest.mark.parametrize(
    ("verb", "output"),
    [
        *((verb, output) for verb in ("derive", "add", "drop") for output in ("nowhere/file", "/dev/full")),
        *(("add", "folder"), ("drop", "folder")),
    ],
)
def test_an_output_that_cannot_be_written_is_one_line_and_3(hello: Path, verb: str, output: str) -> None:
    (hello.parent / "folder").mkdir()
    command = writing(verb, hello, hello.parent / output)
    before = snapshot(hello.parent)
    status, line = told(process(*command))
    assert (status, line.startswith(f"cannot write {hello.parent / output}: ")) == (3, True)
    assert snapshot(hello.parent) == before


@pytest.mark.parametrize("folder", ["folder", "new/"])
def test_a_section_goes_into_a_folder_under_the_name_of_its_file(hello: Path, folder: str) -> None:
    (hello.parent / "folder").mkdir()
    assert run("derive", hello, "-o", f"{hello.parent}/{folder}").exit_code == 0
    assert (hello.parent / folder / "hello.sframe").read_bytes() == derived(hello)


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_a_folder_that_may_not_be_written_is_one_line_and_3_and_nothing_is_left(hello: Path, verb: str) -> None:
    folder = hello.parent / "folder"
    folder.mkdir()
    target = Path(shutil.copy(hello, folder))
    command: list[str | Path] = writing(verb, target) if verb != "derive" else ["derive", hello, "-o", target]
    before = snapshot(folder)
    folder.chmod(0o555)
    try:
        args = [*without_privilege(), str(WALKBACK), *(os.fspath(one) for one in command)]
        status, line = told(subprocess.run(args, capture_output=True, check=False))
    finally:
        folder.chmod(0o755)
    assert (status, line) == (3, f"cannot write {target}: Permission denied")
    assert snapshot(folder) == before


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_a_full_disk_is_one_line_and_3_and_the_old_file_stays(hello: Path, verb: str) -> None:
    target = Path(shutil.copy(hello, hello.with_name("target")))
    command: list[str | Path] = writing(verb, target) if verb != "derive" else ["derive", hello, "-o", target]
    before = snapshot(hello.parent)
    status, line = told(shell("trap '' XFSZ; ulimit -f 0;", *command))
    assert (status, line) == (3, f"cannot write {target}: File too large")
    assert snapshot(hello.parent) == before


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_writes_leaves_the_old_file_and_nothing_else(
    hello: Path, number: Signals, status: int
) -> None:
    before = snapshot(hello.parent)
    command: list[str | Path] = [sys.executable, "-c", SLOW, "add", hello]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"writing\n"
        running.send_signal(number)
        _, complaint = running.communicate(timeout=PATIENCE)
    assert (running.returncode, complaint.strip()) == (status, b"")
    assert snapshot(hello.parent) == before


@pytest.mark.parametrize("target", ["in place", "output"])
def test_a_running_program_is_replaced_and_goes_on(tmp_path: Path, target: str) -> None:
    sleep = tmp_path / "sleep"
    shutil.copy(shutil.which("sleep") or "sleep", sleep)
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


def test_relocations_are_not_left_behind_if_the_section_cannot_be_written(tmp_path: Path) -> None:
    path = hello_object(tmp_path)
    status, _ = told(process("derive", path, "--relocs", tmp_path / "relocs", "-o", tmp_path / "nowhere" / "s"))
    assert status == 3
    assert set(tmp_path.iterdir()) == {path}


# Standard output


def test_bytes_to_standard_output_that_is_a_file_are_only_these(hello: Path) -> None:
    output = hello.parent / "stdout"
    with output.open("wb") as file:
        assert process("derive", hello, "-o", "/dev/stdout", stdout=file).returncode == 0
    assert output.read_bytes() == derived(hello)


def test_bytes_to_standard_output_that_is_a_pipe_come_through(hello: Path) -> None:
    done = process("derive", hello, "-o", "/dev/stdout")
    assert (done.returncode, done.stdout) == (0, derived(hello))
    assert b"  covered: 3 of 4 functions" in done.stderr


def test_bytes_to_a_named_pipe_are_only_these(hello: Path) -> None:
    expected = derived(hello)
    fifo = hello.parent / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        assert process("derive", hello, "-o", fifo).returncode == 0
        assert reader.communicate(timeout=PATIENCE)[0] == expected
    assert fifo.is_fifo()


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_a_closed_standard_output_is_one_line_and_3_and_nothing_is_written(hello: Path, verb: str) -> None:
    command = writing(verb, hello, hello.parent / "output")
    before = snapshot(hello.parent)
    assert told(shell("", *command, redirection=">&-")) == (3, "standard output is closed")
    assert snapshot(hello.parent) == before


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("verb", ["derive", "add"])
def test_a_full_standard_output_is_one_line_and_3(hello: Path, verb: str, options: list[str]) -> None:
    done = shell("", verb, hello, "-o", hello.parent / "output", *options, redirection=">/dev/full")
    assert told(done) == (3, "cannot write the output: No space left on device")
