"""`walkback record --live`: what runs, in a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from cli.commands import WALKBACK
from recorder.programs import needs_events, running

pytestmark = pytest.mark.whole


@needs_events
def test_the_view_in_the_terminal_ends_with_q(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    former = termios.tcgetattr(leader)
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    with running(tmp_path) as program:
        command = [str(WALKBACK), "record", "-p", str(program.pid), "--stack-bytes", "65528", "--live"]
        environment = {**os.environ, "TERM": "xterm"}
        with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment) as recorder:
            os.close(follower)
            assert b"q ends it" in _until(leader, b"spin < deep < deep")
            os.write(leader, b"\xffxq")
            with contextlib.suppress(OSError):  # its end is closed
                while os.read(leader, 65536):
                    pass
            assert recorder.wait() == 0
            assert termios.tcgetattr(leader) == former
    os.close(leader)


@needs_events
def test_the_view_in_the_terminal_gives_way_to_a_shell_and_comes_back(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    with running(tmp_path) as program:
        record = f"{WALKBACK} record -p {program.pid} --stack-bytes 65528 --live"
        script = f"{record}; stty -a; fg; echo status $?"
        command = ["setsid", "-c", "bash", "-mc", script]
        environment = {**os.environ, "TERM": "xterm"}
        with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment) as shell:
            os.close(follower)
            _until(leader, b"spin < deep < deep")
            os.write(leader, b"\x1a")
            away = _until(leader, b"\x1b[?1049h")
            _until(leader, b"spin < deep < deep")
            os.write(leader, b"q")
            _until(leader, b"status 0")
            assert shell.wait() == 0
    assert away.index(b"\x1b[?1049l") < away.index(b" icanon ") < away.rindex(b"record -p")
    os.close(leader)


def _until(terminal: int, text: bytes) -> bytes:
    """What a terminal shows until this text came."""
    shown = b""
    while text not in shown:
        shown += os.read(terminal, 65536)
    return shown


@needs_events
def test_a_terminal_that_is_closed_ends_the_recording_and_nothing_is_lost(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    with running(tmp_path) as program:
        out = tmp_path / "out.folded"
        command = [
            "setsid",
            "-c",
            str(WALKBACK),
            "record",
            "-p",
            str(program.pid),
            "--stack-bytes",
            "65528",
            "--live",
            "-o",
            str(out),
        ]
        environment = {**os.environ, "TERM": "xterm"}
        with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment) as recorder:
            os.close(follower)
            _until(leader, b"spin < deep < deep")
            os.close(leader)
            assert recorder.wait() == 0
    assert "spin" in out.read_text()


@needs_events
def test_a_stack_of_functions_is_shown_once(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    with running(tmp_path) as program:
        # Its loop is at several addresses.
        command = [str(WALKBACK), "record", "-p", str(program.pid), "--stack-bytes", "65528", "-F", "999", "--live"]
        environment = {**os.environ, "TERM": "xterm"}
        with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment) as recorder:
            os.close(follower)
            # The second picture has many samples.
            shown = _until(leader, b"spin < deep") + _until(leader, b"\x1b[H") + _until(leader, b"\x1b[H")
            os.write(leader, b"q")
            with contextlib.suppress(OSError):  # its end is closed
                while os.read(leader, 65536):
                    pass
            assert recorder.wait() == 0
    os.close(leader)
    pictures = [picture for picture in shown.split(b"\x1b[H") if b"spin < deep" in picture]
    assert [len(re.findall(rb"% +spin < deep", picture)) for picture in pictures] == [1] * len(pictures)
