"""Lua's functions in stacks of programs: the same as the programs themselves know."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

import peers
from live.crashes import allow, core_in
from live.subjects import states
from waiting import eventually
from walkback.capture.stacks import Stopper, ThreadStacks
from walkback.stacks.stacks import End, How

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).parent / "ways.lua"
WAYS = re.findall(r"^function ways\.(\w+)", PROGRAM.read_text(), re.MULTILINE)
LUAS = ("system", "trixie")
_UNKNOWN = {None, "?", "integer index"}
Place = tuple[str, str, int]


def lua(name: str) -> tuple[str, ...]:
    """The command of a Lua."""
    if name == "system":
        found = shutil.which("lua5.4")
        return (found,) if found else pytest.skip("needs Lua 5.4")
    root = peers.root("lua")
    libraries = root / "usr/lib/x86_64-linux-gnu"
    loader = str(libraries / "ld-linux-x86-64.so.2")
    return (loader, "--inhibit-cache", "--library-path", str(libraries), str(root / "usr/bin/lua5.4"))


@contextlib.contextmanager
def program(name: str, *arguments: str | Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program that a Lua runs, with pipes to it and from it."""
    process = subprocess.Popen(
        [*lua(name), *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def said(out: IO[bytes] | None) -> list[Place]:
    """Where a program says that it is, innermost first."""
    assert out is not None
    return [expected(**frame) for frame in json.loads(out.readline())]


def expected(name: str | None, kind: str, what: str, source: str, first: int, line: int) -> Place:
    """How a function that Lua describes is shown."""
    if source[0] in "@=":
        file = source[1:]
    else:
        file = f'[string "{source.splitlines()[0][:40]}{"..." if len(source.splitlines()[0]) > 40 else ""}"]'
    if name in _UNKNOWN:
        symbol = "main chunk" if what == "main" else f"function <{file.rpartition('/')[2]}:{first}>"
    else:
        assert name is not None
        symbol = name if kind != "metamethod" or name.startswith("__") else f"__{name}"
    return symbol, file, line


def places(shot: ThreadStacks) -> list[list[Place]]:
    """The functions of Lua of each thread, innermost first."""
    found: list[list[Place]] = []
    frames, first = shot.frames, shot.stacks.first.tolist()
    assert frames.file is not None
    assert frames.line is not None
    for begin, end in itertools.pairwise(first):
        its = [int(shot.frame[i]) for i in range(begin, end) if shot.stacks.how[i] == How.LUA]
        found.append([(str(frames.symbol[one]), str(frames.file[one]), int(frames.line[one])) for one in its])
    return found


def waits(pid: int) -> bool:
    return set(states(pid)) == {"S"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LUAS)
def test_the_functions_that_the_program_names_itself(name: str, way: str) -> None:
    with program(name, PROGRAM, way) as target:
        told = said(target.stdout)
        assert eventually(lambda: waits(target.pid))
        stopper = Stopper(target.pid)
        shot = stopper.shoot()
        assert not stopper.interpreted.troubles
        assert places(shot) == [told]
        assert shot.stacks.end.tolist() == [End.COMPLETE]
        assert len(told) > 2
        assert places(stopper.shoot()) == [told]


@pytest.mark.parametrize("way", ["deep", "coroutines"])
@pytest.mark.parametrize("name", LUAS)
def test_a_core_has_the_same(name: str, way: str, tmp_path: Path) -> None:
    with program(name, PROGRAM, way, cwd=tmp_path, preexec_fn=allow) as target:
        told = said(target.stdout)
        assert eventually(lambda: waits(target.pid))
        target.send_signal(signal.SIGABRT)
        target.wait()
    assert places(Stopper(core_in(tmp_path)).shoot()) == [told]
