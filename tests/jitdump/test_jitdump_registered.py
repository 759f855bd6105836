"""Code that a real program registers for debuggers, as gdb sees it, and lists that are damaged."""

from __future__ import annotations

import platform
import re
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from jitdump.jittedprogram import registered
from live.subjects import running
from walkback import stack
from walkback.stacks.stacks import End

if TYPE_CHECKING:
    from pathlib import Path

    from walkback.capture.stacks import ThreadStacks

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for this machine")

WHOLE = ["stay", "second", "run", "chain", "first", "run", "main"]
_NEXT, _FILE, _SIZE = 0, 16, 24
"""Where an entry of the list has these."""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    return registered(tmp_path_factory.mktemp("registered"))


def seen(shot: ThreadStacks) -> list[str]:
    """The names from where the thread stays, up to `main` if the walk comes to it."""
    labels = shot.labels(0)
    return labels[labels.index("stay") : labels.index("main") + 1 if "main" in labels else None]


def lines_of(shot: ThreadStacks) -> list[str]:
    """The name and the line of each frame."""
    frames = shot.frames
    lines = zip(frames.symbol, frames.file or [], frames.line or [], strict=True)
    named = [f"{name} {(file or '').rpartition('/')[2]}:{line}" for name, file, line in lines]
    return [named[number] for number in shot.frame.tolist()]


def gdb(pid: int, *commands: str) -> str:
    found = shutil.which("gdb")
    if found is None:
        pytest.skip("needs gdb")
    options = [word for one in commands for word in ("-ex", one)]
    done = subprocess.run(
        [found, "-nx", "-batch", "-p", str(pid), *options], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_names_unwinding_and_lines_are_those_that_gdb_has(command: list[str | Path], tmp_path: Path) -> None:
    core = tmp_path / "core"
    with running(*command) as process:
        live = stack(process.pid)
        shown = gdb(process.pid, "bt", f"generate-core-file {core}")
    theirs = re.findall(r"^#\d+ +0x([0-9a-f]+) in (\w+) .*?(?:at .*?([\w.]+):(\d+))?$", shown, re.MULTILINE)
    for shot in (live, stack(core)):
        assert seen(shot) == WHOLE
        assert shot.stacks.end.tolist() == [End.COMPLETE]
        ours = dict(zip(shot.stacks.pc.tolist(), lines_of(shot), strict=True))
        for pc, name, file, line in theirs:
            if name in {"first", "second"}:
                assert ours[int(pc, 16)] == f"{name} {file}:{line}"
    assert {name for _, name, _, _ in theirs} >= {"first", "second"}


@pytest.mark.whole
def test_damaged_lists_and_files_cost_no_more_than_their_names(command: list[str | Path]) -> None:
    with running(*command) as process, open(f"/proc/{process.pid}/mem", "r+b", 0) as memory:
        entry = int(process.stdout.readline(), 16)

        def read(place: int) -> int:
            memory.seek(place)
            return int(struct.unpack("<Q", memory.read(8))[0])

        def write(place: int, value: int) -> None:
            memory.seek(place)
            memory.write(struct.pack("<Q", value))

        def with_value(place: int, value: int) -> ThreadStacks:
            """The stacks while one word of the process is another."""
            before = read(place)
            write(place, value)
            try:
                return stack(process.pid)
            finally:
                write(place, before)

        # The entry is that of the second file: where it cannot be read, the walk ends at its code.
        assert seen(with_value(entry + _NEXT, entry))[:4] == ["stay", "second", "run", "chain"]
        assert seen(with_value(entry + _NEXT, 8))[:4] == ["stay", "second", "run", "chain"]
        for size in (0, 40, 1 << 40, 2**64 - 1):
            shot = with_value(entry + _SIZE, size)
            assert "second" not in shot.labels(0)
            assert shot.snapshot.troubles
        for address in (0, 8, 2**64 - 8, entry):
            assert "second" not in with_value(entry + _FILE, address).labels(0)
        file = read(entry + _FILE)
        for place in range(0, 64, 8):
            for value in (0, 2**64 - 1, 0x7F7F7F7F7F7F7F7F):
                assert "stay" in with_value(file + place, value).labels(0)
        assert seen(stack(process.pid)) == WHOLE
