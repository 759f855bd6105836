"""Real programs, stopped at random moments: the same stacks as gdb's, by call frame information and by SFrame."""

from __future__ import annotations

import contextlib
import os
import platform
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from walkback.capture.live.process import Process
from walkback.naming.modules import Modules
from walkback.stacks.stacks import END_WORDS, End, How
from walkback.walking.moduletable import Only
from walkback.walking.walker import Walker
from walking import programs
from walking.programs import built, gdb_stacks, running

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="gdb and the programs are for this machine"),
]

MODES: tuple[Only | None, ...] = (None, "cfi", "sframe")
INIT = range(23)  # what `_init` takes of its page


def stopped(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    for _ in range(1000):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt":
            return
        time.sleep(0.001)


def walked(process: Process, modules: Modules) -> dict[str, dict[int, tuple[list[int], str]]]:
    """By mode: of each thread its program counters and the end."""
    found: dict[str, dict[int, tuple[list[int], str]]] = {}
    for only in MODES:
        walker = Walker(process.machine, process.byteorder, lambda number: modules[number].elf, only=only)
        snapshot = process.sample(walker)
        stacks = snapshot.stacks
        found[only or "auto"] = {
            tid: (
                stacks.pc[int(stacks.first[i]) : int(stacks.first[i + 1])].tolist(),
                END_WORDS[End(int(stacks.end[i]))],
            )
            for i, tid in enumerate(snapshot.tids)
        }
    return found


def compared(pid: int, folder: Path, rounds: int = 2) -> list[tuple[str, list[int], list[int], str]]:
    """The differences from gdb: the mode, gdb's stack, ours, and our end."""
    rng = random.Random(pid)
    differences = []
    modules = Modules()
    time.sleep(0.1)
    process = Process(pid, modules)
    for _ in range(rounds):
        time.sleep(rng.random() * 0.05)
        stopped(pid)
        try:
            ours = walked(process, modules)
            theirs = gdb_stacks(pid, folder)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for mode, by_thread in ours.items():
            assert set(by_thread) == set(theirs)
            differences += [
                (mode, theirs[tid], pcs, end)
                for tid, (pcs, end) in by_thread.items()
                if pcs != theirs[tid] or end != "complete"
            ]
    return differences


CASES = {
    "recursion": (programs.RECURSION, ()),
    "recursion-no-red-zone": (programs.RECURSION, ("-mno-red-zone",)),
    "aligned": (programs.ALIGNED, ("-mavx2",)),
    "signals": (programs.SIGNALS, ()),
    "library": (programs.LIBRARY, ("-Wl,-z,lazy",)),
    "library-static": (programs.LIBRARY, ("-static",)),
    "signals-static-pie": (programs.SIGNALS, ("-static-pie",)),
    "threads": (programs.THREADS, ("-pthread",)),
    "recursion-frame-pointers": (programs.RECURSION, ("-fno-omit-frame-pointer",)),
}


@pytest.mark.parametrize("name", CASES)
def test_stacks_are_those_of_gdb(name: str, tmp_path: Path) -> None:
    text, options = CASES[name]
    with running(built(tmp_path, name, text, *options)) as pid:
        assert compared(pid, tmp_path) == []


def test_exceptions_that_are_thrown_are_walked_as_by_gdb(tmp_path: Path) -> None:
    with running(built(tmp_path, "throwing", programs.THROWING, compiler="g++")) as pid:
        assert compared(pid, tmp_path) == []


def test_a_library_that_comes_and_goes_is_walked_as_by_gdb(tmp_path: Path) -> None:
    """Also in the dynamic linker, which binds its calls the first time each."""
    library = built(tmp_path, "loaded.so", programs.LOADED, "-shared", "-fPIC", "-Wl,-z,lazy")
    with running(built(tmp_path, "loading", programs.LOADING), library) as pid:
        differences = compared(pid, tmp_path, 6)
    # The library begins with its `_init`, which no table describes. A thread is often there, waiting for the page.
    # By its code, `_init` pushes nothing and moves the stack once: gdb takes what lies on top for a return address.
    # The linker's resolver keeps its frame in a register that SFrame alone does not follow.
    for mode, theirs, ours, end in differences:
        if mode == "auto":
            assert (ours[0] % 4096 in INIT[1:], ours, end) == (True, [theirs[0], *theirs[2:]], "complete")
        elif (mode, end) != ("sframe", "unknown-register"):
            assert (ours[0] % 4096 in INIT, ours[1:]) == (True, [])


MUSL_SIGNALS = (
    programs.HEAD
    + r"""
#include <sys/time.h>
HARD void work(int n) { if (n) { work(n - 1); sink++; return; } spin(3000); }
static void on_alarm(int s) { for (int i = 0; i < 100; i++) work(3); }
int main(void) {
    struct sigaction sa = {0};
    sa.sa_handler = on_alarm; sa.sa_flags = SA_RESTART; sigaction(SIGALRM, &sa, 0);
    struct itimerval it = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &it, 0);
    for (;;) work(5);
}
"""
)


@pytest.mark.parametrize("options", [(), ("-static",)], ids=["dynamic", "static"])
def test_signals_of_musl_are_walked_through(options: tuple[str, ...], tmp_path: Path) -> None:
    """It has no call frame information for the code that handlers return to; its bytes tell what it is.

    Nor has it any for what calls `main`, so from there on frame pointers are tried, which it does not keep.
    """
    with running(
        built(tmp_path, "musl", MUSL_SIGNALS, "-fasynchronous-unwind-tables", *options, compiler="musl-gcc")
    ) as pid:
        modules = Modules()
        process = Process(pid, modules)
        walker = Walker(process.machine, process.byteorder, lambda number: modules[number].elf)
        seen: set[Any] = set()
        deadline = time.monotonic() + 60
        looks = 0
        # Where other work keeps the program from running, signals are rare.
        while looks < 300 or (len(seen) < 2 and time.monotonic() < deadline):
            looks += 1
            time.sleep(0.001)
            stacks = process.sample(walker).stacks
            names = [
                (modules[module].symbols.describe(address) or "").partition("+")[0]
                for module, address in zip(stacks.module.tolist(), stacks.address.tolist(), strict=True)
            ]
            seen.add("on_alarm" in names)
            if "on_alarm" in names:
                assert "SIGNAL" in {How(how).name for how in stacks.how}, names
            if "work" in names or "spin" in names:
                assert "main" in names, names
                assert END_WORDS[End(int(stacks.end[0]))] in {"zero", "unreadable", "not-code", "no-progress"}, names
        assert seen == {True, False}
