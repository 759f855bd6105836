"""Programs to look at: written in C, built by the host's compiler, started, and ended again."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from waiting import PATIENCE, eventually
from walkback.capture.core.file import CoreFile
from walkback.capture.live.process import Process
from walkback.naming.modules import Modules
from walkback.stacks.stacks import END_WORDS, End
from walkback.walking.walker import Walker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.capture.snapshot import Snapshot

THREADS = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void busy(int n) { if (n > 0) { busy(n - 1); sink++; return; } for (;;) sink++; }
__attribute__((noinline)) void sleepy(int n) { if (n > 0) { sleepy(n - 1); sink++; return; } for (;;) pause(); }
static void *run(void *p) { long i = (long)p; if (i == 2) { nice(10); busy(i); } else sleepy(i); return 0; }
int main(void) {
    pthread_t thread;
    for (long i = 1; i < 5; i++) pthread_create(&thread, 0, run, (void *)i);
    puts("ready"); fflush(stdout);
    sleepy(5);
}
"""
"""Five threads, of which thread i is i calls deep, the first one 5."""


def compiled(folder: Path, text: str, *options: str, name: str = "target") -> Path:
    """A program or library from C."""
    source, output = folder / f"{name}.c", folder / name
    source.write_text(text)
    flags = ("-O1", "-fno-optimize-sibling-calls", "-fno-inline", "-pthread")
    subprocess.run(["gcc", *flags, "-o", output, source, *options], check=True)
    return output


@contextlib.contextmanager
def started(*command: str | bytes | Path, ready: bool = True, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A running process, which says on its standard output when it is where it should be."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, **options)
    try:
        if ready:
            assert process.stdout.readline()
            assert eventually(lambda: settled(process.pid))
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def state(tid: int) -> str:
    """The letter of a thread's state."""
    return Path(f"/proc/{tid}/stat").read_text().rpartition(")")[2].split()[0]


def settled(pid: int) -> bool:
    """Whether every thread sleeps, has ended, or has been at work long enough to be where it stays."""
    try:
        fields = [
            path.read_text(errors="replace").rpartition(")")[2].split()
            for path in Path(f"/proc/{pid}/task").glob("*/stat")
        ]
    except OSError:
        return False  # one ended just now
    return all(one[0] in "SZ" or int(one[11]) >= 2 for one in fields)  # the time in user mode, in ticks


@dataclass
class Look:
    """A source with a walker for it."""

    modules: Modules
    walker: Walker | None = None

    def at(self, source: CoreFile | Process) -> Snapshot:
        if self.walker is None:
            self.walker = Walker(source.machine, source.byteorder, lambda number: self.modules[number].elf)
        return source.sample(self.walker)

    def names(self, snapshot: Snapshot, number: int) -> list[str | None]:
        """The functions of a stack, innermost first."""
        stacks = snapshot.stacks
        found = []
        for frame in range(int(stacks.first[number]), int(stacks.first[number + 1])):
            module = int(stacks.module[frame])
            symbols = self.modules[module].symbols if module >= 0 else None
            name = symbols.describe(int(stacks.address[frame])) if symbols is not None else None
            found.append(name.partition("+")[0].partition("@")[0] if name else None)
        return found

    def ends(self, snapshot: Snapshot) -> list[str]:
        return [END_WORDS[End(end)] for end in snapshot.stacks.end.tolist()]

    def of_thread(self, snapshot: Snapshot, tid: int) -> list[str | None]:
        return self.names(snapshot, snapshot.tids.index(tid))


def pcs(snapshot: Snapshot) -> dict[int, list[int]]:
    """The program counters of all frames of each thread."""
    stacks = snapshot.stacks
    return {
        tid: stacks.pc[int(stacks.first[i]) : int(stacks.first[i + 1])].tolist() for i, tid in enumerate(snapshot.tids)
    }


def allow_cores() -> None:
    """To be called in a child before it runs its program."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def gdb_stacks(*arguments: str | Path) -> dict[int, list[int]]:
    """What gdb says of each thread: the program counters, innermost first."""
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("needs gdb")
    # Frames of inlined functions and of tail calls are gdb's inference from debug data, and not on the stack.
    walk = (
        "python\n"
        "import gdb\n"
        "for thread in gdb.selected_inferior().threads():\n"
        "    thread.switch()\n"
        "    frame, found = gdb.newest_frame(), []\n"
        "    while frame is not None:\n"
        "        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME): found.append(frame.pc())\n"
        "        frame = frame.older()\n"
        "    print('STACK', thread.ptid[1] or thread.ptid[0], *found)\n"
        "end\n"
    )
    file = Path(tempfile.gettempdir(), f"walkback-gdb-{os.getpid()}")
    file.write_text(f"set backtrace past-main on\nset pagination off\n{walk}")
    try:
        done = subprocess.run(
            [gdb, "-nx", "-batch", *arguments, "-x", file],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        file.unlink()
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("STACK ")]
    assert lines, done.stderr
    return {int(tid): [int(pc) for pc in found] for tid, *found in lines}
