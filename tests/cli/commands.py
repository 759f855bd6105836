"""The command as a process, and what it says."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO, TextIO

WALKBACK = Path(sys.executable).with_name("walkback")

VERBS = ("show", "check", "find")

NEWEST_VERB_TARGET = {"find": ["f1"]}


def run(
    *args: Path | bytes | str,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    stdout: BinaryIO | TextIO | int = subprocess.PIPE,
) -> subprocess.CompletedProcess[bytes]:
    command = [str(WALKBACK), *(os.fspath(one) for one in args)]
    environment = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8:strict", **(env or {})}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=environment, cwd=cwd, check=False)


def told(done: subprocess.CompletedProcess[bytes]) -> tuple[int, str]:
    """Exit status, and the one line of standard error."""
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, done.stderr.decode()
    assert lines[0].startswith("walkback: ")
    return done.returncode, lines[0].removeprefix("walkback: ")


def on(verb: str, path: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    """The verb on a file; `find` looks for `f1`."""
    return run(verb, *options, path, *NEWEST_VERB_TARGET.get(verb, []))


def on_a_terminal(*args: str | bytes | Path, stdout: Path | None = None) -> bytes:
    """What the command prints to a terminal; standard output may be a file."""
    leader, follower = pty.openpty()
    command = [str(WALKBACK), *(os.fspath(one) for one in args)]
    environment = {**os.environ, "TERM": "xterm"}
    with (
        open(stdout, "wb") if stdout is not None else contextlib.nullcontext(follower) as out,
        subprocess.Popen(command, stdout=out, stderr=follower, env=environment) as process,
    ):
        os.close(follower)
        output = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            output += part
        process.wait()
    os.close(leader)
    return output
