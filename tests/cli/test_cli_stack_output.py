"""`walkback stack`: outputs that are there whole or not at all, interruptions, and terminals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from capture.targets import THREADS, compiled, started, state
from cli.commands import WALKBACK, on_a_terminal, told
from cli.walked import STACK_OF_MAIN, stack
from waiting import PATIENCE, eventually

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("own_cache")]


def switches(pid: int) -> int:
    """How often the first thread has waited, or was stopped while it did."""
    return sum(map(int, re.findall(r"ctxt_switches:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())))


def wait_for_looks(pid: int, number: int = 3) -> None:
    """Until a thread that sleeps was looked at this many times."""
    before = switches(pid)
    assert eventually(lambda: switches(pid) >= before + number)


def test_the_output_is_there_whole_or_not_at_all(target: int, tmp_path: Path) -> None:
    output = tmp_path / "folder" / "output"
    output.parent.mkdir()
    output.write_text("old")
    command: list[str | Path] = [WALKBACK, "stack", "--json", "--repeat", "1000000", "-o", output, str(target)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert eventually(lambda: len(list(output.parent.iterdir())) > 1)
        time.sleep(0.2)
        process.kill()
    assert output.read_text() == "old"
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert eventually(lambda: len(list(output.parent.iterdir())) > 2)
        time.sleep(0.2)
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
    assert output.read_text() == "old"
    assert len(list(output.parent.iterdir())) == 2  # that of the killed one stays
    assert stack("-o", output, target).stdout == b""
    assert output.read_text().startswith(f"process {target} target\n")


def test_an_output_that_cannot_be_written(target: int, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "output"
    assert told(stack("-o", path, target)) == (3, f"cannot write {path}: No such file or directory")
    with Path("/dev/full").open("w") as full:
        assert told(stack(target, stdout=full)) == (3, "cannot write the output: No space left on device")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("form", ["text", "folded", "json"])
def test_ctrl_c_ends_the_looking_and_what_there_is_is_written(form: str, target: int, tmp_path: Path) -> None:
    output = tmp_path / "output"
    args: list[str | Path] = ["--format", form, "--repeat", "1000000", "--interval", "0.01", "-o", output, str(target)]
    with subprocess.Popen([WALKBACK, "stack", *args], stderr=subprocess.PIPE) as process:
        wait_for_looks(target)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert re.fullmatch(rb"walkback: \d+: \d+ stops: .*\n", errors)
    lines = output.read_text().splitlines()
    if form == "folded":
        assert any(line.rpartition(" ")[0].endswith(";".join(STACK_OF_MAIN)) for line in lines)
    elif form == "json":
        assert len(lines) % 5 == 0
        assert all(json.loads(line) for line in lines)
    assert lines
    assert state(target) in {"S", "R"}


def test_a_target_that_ends_is_told_and_what_there_is_is_written(program: Path) -> None:
    with started(program) as process:
        command: list[str | Path] = [WALKBACK, "stack", "--format", "folded", "--repeat", "1000000", str(process.pid)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as looking:
            wait_for_looks(process.pid)
            process.kill()
            out, errors = looking.communicate(timeout=PATIENCE)
    assert looking.returncode == 1
    assert re.search(rb";".join(name.encode() for name in STACK_OF_MAIN) + rb" \d+\n", out)
    assert re.search(rb"^walkback: \d+: .*, after \d+ looks?\n", errors, re.MULTILINE)
    assert b"Traceback" not in errors


def test_the_target_goes_on_when_the_looking_one_is_killed(target: int) -> None:
    for wait in (0, 0.01, 0.05):
        command: list[str | Path] = [WALKBACK, "stack", "--repeat", "1000000", "--interval", "0", str(target)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as looking:
            wait_for_looks(target)
            time.sleep(wait)
            looking.kill()
        threads = [int(one.name) for one in Path(f"/proc/{target}/task").iterdir()]
        assert len(threads) == 5
        assert eventually(lambda threads=threads: all(state(tid) in {"S", "R"} for tid in threads))
    assert stack(target).returncode == 0


def test_a_terminal_gets_text_and_no_bytes(target: int, made_core: Path) -> None:
    shown = on_a_terminal("stack", made_core).replace(b"\r\n", b"\n")
    assert shown == stack(made_core).stdout
    assert b"Error: --format pprof is not for a terminal; use -o FILE, or a pipe" in on_a_terminal(
        "stack", "--format", "pprof", made_core
    )
    assert on_a_terminal("stack", "--format", "folded", made_core) == b"hello;_start;main;compute 1\r\n"


def test_a_name_with_an_escape_code_spoils_no_line(tmp_path: Path) -> None:
    program = compiled(tmp_path, THREADS).rename(tmp_path / "od\x1b[31m\nd\udcff")
    with started(os.fsencode(program)) as process:
        done = stack(process.pid)
    assert b"\x1b" not in done.stdout
    assert done.stdout.startswith(b"process %d od" % process.pid)
    assert len(done.stdout.split(b"\n\n")) == 6
