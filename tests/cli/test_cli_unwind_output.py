"""`walkback unwind`: outputs that are there whole or not at all, pipes that close, and terminals."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from cli.commands import WALKBACK, on_a_terminal, told
from cli.walked import unwind
from recorded import hello, recording
from waiting import eventually

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A recording that takes a while."""
    path = tmp_path / "long.data"
    path.write_bytes(recording(hello(tmp_path), times=20_000))
    return path


@pytest.mark.usefixtures("interruptible")
def test_the_output_is_there_whole_or_not_at_all(long: Path, tmp_path: Path) -> None:
    output = tmp_path / "folder" / "output"
    output.parent.mkdir()
    output.write_text("old")
    for number, (form, signals) in enumerate(
        [("json", signal.SIGKILL), ("json", signal.SIGTERM), ("json", signal.SIGINT)]
    ):
        with subprocess.Popen(
            [WALKBACK, "unwind", "--format", form, "-o", output, long], stderr=subprocess.PIPE
        ) as process:
            files = 2 if number == 0 else 3
            assert eventually(lambda files=files: len(list(output.parent.iterdir())) == files)
            process.send_signal(signals)
            assert process.wait() == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[signals]
        assert output.read_text() == "old"
        assert len(list(output.parent.iterdir())) == 2  # that of the killed one stays


def test_what_is_read_is_not_written_over(recorded: Path, tmp_path: Path) -> None:
    """A recording cannot be made again."""
    before = recorded.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(recorded)
    for arguments in (
        ["-o", recorded, recorded],
        ["-o", link, recorded],
        ["--compare", "fp", "--chart", recorded, link],
    ):
        assert unwind(*arguments).returncode == 2
    assert recorded.read_bytes() == before


def test_an_output_that_cannot_be_written(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "output"
    for form in ("folded", "json"):
        assert told(unwind("--format", form, "-o", path, recorded)) == (
            3,
            f"cannot write {path}: No such file or directory",
        )
    assert told(unwind("--compare", "fp", "--chart", path, recorded))[0] == 3
    for form in ("folded", "json"):
        with Path("/dev/full").open("w") as full:
            done = unwind("--format", form, recorded, stdout=full)
        assert told(done) == (3, "cannot write the output: No space left on device")
    assert not any(one.name.startswith(".walkback") for one in tmp_path.iterdir())


def test_a_reader_that_has_seen_enough_ends_it_quietly(long: Path) -> None:
    with subprocess.Popen(
        [WALKBACK, "unwind", "--json", long], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def with_errors_on_a_terminal(*args: object) -> tuple[bytes, bytes]:
    """What a command writes to a pipe, and what to the terminal that its standard error is."""
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, 0x5414, struct.pack("4H", 24, 100, 0, 0))  # TIOCSWINSZ
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        [WALKBACK, *map(str, args)], stdout=subprocess.PIPE, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        shown = b""
        os.set_blocking(leader, False)
        end = time.monotonic() + 60
        done = False
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        out = b""
        while time.monotonic() < end and not done:
            done = process.poll() is not None
            out += process.stdout.read() or b""
            try:
                shown += os.read(leader, 65536)
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                pass
    os.close(leader)
    return out, shown


def test_a_bar_is_shown_on_terminals_only(long: Path, recorded: Path) -> None:
    out, shown = with_errors_on_a_terminal("unwind", "--json", long)
    assert b"unwinding" in shown
    assert b"\x1b" not in out
    assert len(out.splitlines()) == 120_000
    assert b"\x1b" not in unwind(recorded).stderr
    assert b"comparing" in with_errors_on_a_terminal("unwind", "--compare", "fp", long)[1]


def test_a_terminal(recorded: Path) -> None:
    shown = on_a_terminal("unwind", "--json", recorded)
    assert b"unwinding" not in shown  # lines that come one by one would tear the bar
    assert b'"end":"stack-cut"}\r\n' in shown
    assert b"--format pprof is not for a terminal; use -o FILE, or a pipe" in on_a_terminal(
        "unwind", "--format", "pprof", recorded
    )
    assert "█".encode() in on_a_terminal("unwind", "--compare", "sframe,fp", recorded)
    assert "█".encode() not in unwind("--compare", "sframe,fp", recorded).stdout
