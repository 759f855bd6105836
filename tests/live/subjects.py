"""The programs that are looked at: built by the host's compilers, started, stopped by SIGSTOP, and compared."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from waiting import eventually
from walkback.capture.stacks import Stopper, ThreadStacks
from walkback.stacks.stacks import FrameKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from live.debuggers import Stacks

HERE = Path(__file__).parent
NODE = """
const { Worker, isMainThread } = require('worker_threads');
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
if (isMainThread) {
  for (let i = 0; i < 2; i++) new Worker(__filename);
  console.log('ready');
  setInterval(() => /(\\d+)x/.test([...Array(100).keys()].join(' ')), 1);
} else for (;;) {
  fib(20);
  JSON.parse(JSON.stringify({ all: [...Array(100).keys()] }));
  [3, 1, 2].sort((a, b) => a - b);
}
"""
_C = ("-O2", "-pthread")
_BUILDS = {
    "glibc": ("gcc", "busy.c", *_C),
    "frame-pointers": ("gcc", "busy.c", "-O1", "-pthread", "-fno-omit-frame-pointer"),
    "static": ("gcc", "busy.c", *_C, "-static"),
    "static-pie": ("gcc", "busy.c", *_C, "-static-pie"),
    "musl": ("musl-gcc", "busy.c", *_C),
    "musl-static": ("musl-gcc", "busy.c", *_C, "-static"),
    "c++": ("g++", "busy.cc", *_C),
}
SUBJECTS = (*_BUILDS, "python", "node")


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}")
    return found


def subject(name: str, folder: Path) -> tuple[str | Path, ...]:
    """The command of a program, which is built in a folder."""
    if name == "python":
        # The system's own: a static one or one of a package has no tables for its libraries' names.
        return _tool("python3"), HERE / "busy.py"
    if name == "node":
        (folder / "busy.js").write_text(NODE)
        return _tool("node"), folder / "busy.js"
    compiler, source, *flags = _BUILDS[name]
    if "static" not in name and "musl" not in name and compiler == "gcc":
        library = folder / "libloaded.so"
        command = (_tool("gcc"), "-O2", "-shared", "-fPIC", "-Wl,-z,lazy", "-o", library, HERE / "loaded.c")
        subprocess.run(command, check=True)
        flags.append(f'-DLIBRARY="{library}"')
    program = folder / f"busy-{name}"
    subprocess.run([_tool(compiler), *flags, "-o", program, HERE / source], check=True)
    return (program,)


@contextlib.contextmanager
def running(*command: str | Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The program, from when it says that it is ready."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, **options)
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def threads(pid: int) -> list[int]:
    return sorted(int(one.name) for one in Path(f"/proc/{pid}/task").iterdir())


def states(pid: int) -> str:
    """The letters of the states of all threads."""
    letters = ""
    for tid in threads(pid):
        with contextlib.suppress(OSError):
            letters += Path(f"/proc/{pid}/task/{tid}/stat").read_text().rpartition(")")[2].split()[0]
    return letters


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """All threads stand still by SIGSTOP."""
    os.kill(pid, signal.SIGSTOP)
    try:
        assert eventually(lambda: set(states(pid)) <= set("TZ"))
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def pcs(shot: ThreadStacks) -> Stacks:
    """The program counters of each thread."""
    first = shot.stacks.first.tolist()
    return {tid: shot.stacks.pc[first[i] : first[i + 1]].tolist() for i, tid in enumerate(shot.snapshot.tids)}


# Why others see something else

BORN = "a thread is being born"
UNDESCRIBED = "code without call frame information"
NOWHERE = "an address in no code"
_BEING_BORN = frozenset({"clone", "__clone", "clone3", "__clone3"})


@cache
def described(path: str) -> list[tuple[int, int]]:
    """The code that has call frame information, as readelf reads it."""
    done = subprocess.run([_tool("readelf"), "-W", "--debug-dump=frames", path], capture_output=True, check=True)
    found = re.findall(rb" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", done.stdout)
    return [(int(start, 16), int(end, 16)) for start, end in found]


def executable(pid: int) -> Iterator[tuple[int, int]]:
    """What a process has mapped to be run."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        place, rights, *_ = line.split()
        if "x" in rights:
            start, end = place.split("-")
            yield int(start, 16), int(end, 16)


@dataclass
class Judge:
    """Compares walkback's stacks with another's; each difference is of a named class, or is an error."""

    stopper: Stopper
    counts: dict[str, int] = field(default_factory=dict)
    undescribed: dict[str, str] = field(default_factory=dict)
    """Code without call frame information that made a difference, with what was seen."""

    def compare(self, shot: ThreadStacks, theirs: Stacks, who: str) -> None:
        ours = pcs(shot)
        assert ours.keys() == theirs.keys(), who
        for thread, (tid, mine) in enumerate(ours.items()):
            if mine == theirs[tid]:
                why: str | None = "equal"
            else:
                pairs = zip(mine, theirs[tid], strict=False)
                depth = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(theirs[tid])))
                why = self._why(shot, thread, depth)
                seen = _difference(shot, thread, depth, theirs[tid], who)
                assert why is not None, seen
                if why == UNDESCRIBED:
                    self.undescribed[shot.labels(thread)[depth - 1]] = seen
            key = f"{who}: {why}"
            self.counts[key] = self.counts.get(key, 0) + 1

    def _why(self, shot: ThreadStacks, thread: int, depth: int) -> str | None:
        """The class of a difference that begins with a frame: what is special about its callee."""
        if depth == 0:
            return None
        callee = int(shot.stacks.first[thread]) + depth - 1
        name = shot.labels(thread)[depth - 1]
        if depth == 1 and name in _BEING_BORN:
            # After the system call the new thread has an empty stack, and the table is that of its creator.
            return BORN
        if not self._is_described(shot, callee):
            # Hand-written code may push registers without a word in its call frame information, as glibc's
            # __mpn_submul_1 does. All see the same wrong caller then, and some go on from there.
            return NOWHERE if self._is_nowhere(shot, callee) else UNDESCRIBED
        return None

    def _is_nowhere(self, shot: ThreadStacks, frame: int) -> bool:
        """Whether nothing that can be run is mapped there, so that this is no frame of any program."""
        pc = int(shot.stacks.pc[frame])
        if not self.stopper.live:
            return False
        return not any(start <= pc < end for start, end in executable(self.stopper.target.pid))

    def _is_described(self, shot: ThreadStacks, frame: int) -> bool:
        number = int(shot.stacks.module[frame])
        elf = self.stopper.modules[number].elf if number >= 0 else None
        if elf is None:
            return False
        if elf.name == "[vdso]":
            return True
        address = int(shot.stacks.address[frame])
        return any(start <= address < end for start, end in described(elf.name))


def _difference(shot: ThreadStacks, thread: int, depth: int, theirs: list[int], who: str) -> str:
    first, end = (int(shot.stacks.first[thread + i]) for i in (0, 1))
    mine, labels = shot.stacks.pc[first:end].tolist(), shot.labels(thread)
    lines = [f"thread {shot.snapshot.tids[thread]}, walkback and {who}, first other in frame {depth}:"]
    for i in range(max(0, depth - 3), depth + 3):
        a, b = (f"{one[i]:#x}" if i < len(one) else "-" for one in (mine, theirs))
        exact = i < len(mine) and shot.stacks.kind[first + i] == FrameKind.EXACT
        lines.append(f"  {i} {a} {b} {labels[i] if i < len(mine) else ''}{' (exact)' if exact else ''}")
    return "\n".join(lines)
