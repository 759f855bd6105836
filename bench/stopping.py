"""The measures of live processes: `walkback stack` against gdb and eu-stack, and for how long threads are stopped.

The small program has five threads that wait. The large ones have a thousand, or are node, whose file has 90 MB, or have
libLLVM loaded, where the system has one.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from inputs import BIN
from measure import WALKBACK, Figure, alternate, process
from walkback.capture.stacks import Stopper

SAMPLES = 1000
_SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static void waiting(int n) { if (n) waiting(n - 1); else for (;;) pause(); puts(""); }
static void *run(void *unused) { waiting(8); return unused; }
int main(int count, char **words) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    for (int i = count > 1 ? atoi(words[1]) : 0; i; i--) {
        pthread_t thread;
        if (pthread_create(&thread, &small, run, 0)) return 1;
    }
    puts("ready");
    fflush(stdout);
    waiting(8);
}
"""
_LLVM = """
import ctypes, glob, time
for path in glob.glob("/usr/lib/*/libLLVM-*.so.1") + glob.glob("/usr/lib/*/libclang-cpp.so.*"):
    ctypes.CDLL(path)
print("ready", flush=True)
time.sleep(1000)
"""
_NODE = """
const { Worker, isMainThread } = require('worker_threads');
if (isMainThread) for (let i = 0; i < 4; i++) new Worker(__filename);
setTimeout(() => isMainThread && console.log('ready'), 500);
setInterval(() => 0, 1000);
"""


_BUSY = """
import json
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def deep(depth):
    return deep(depth - 1) if depth else fib(11)
def each():
    for number in range(20):
        yield deep(number)
print("ready", flush=True)
while True:
    sum(each())
    json.loads(json.dumps({"a": list(range(20))}))
    sorted(range(200), key=lambda number: -number)
"""
_STARTED, _WATCHED, _RECORDED = 1.5, 2, 5
"""Seconds until a recorder has started, then until its target has been watched, and of the whole recording."""


def stopping(rounds: int) -> Iterator[Figure]:
    """Whole runs, a sample of many, and the stops; needs gdb, eu-stack, node and py-spy."""
    with tempfile.TemporaryDirectory() as folder:
        program, script = Path(folder, "waiting"), Path(folder, "waiting.js")
        script.write_text(_NODE)
        command = ("gcc", "-O2", "-pthread", "-fno-optimize-sibling-calls", "-x", "c", "-o", program, "-")
        subprocess.run(command, input=_SOURCE.encode(), check=True)
        for name, limit, target in (
            ("5 threads", 1, (program, "4")),
            ("1,000 threads", 1 / 3, (program, "999")),
            ("node", 1 / 3, (_found("node"), script)),
            ("libLLVM", 1 / 3, ("/usr/bin/python3", "-c", _LLVM)),
        ):
            with _running(*target) as pid:
                yield from _whole(name, pid, limit, rounds)
        with _running(program, "4") as pid:
            yield from _many("5 threads", pid, rounds)
        with _running("/usr/bin/python3", "-c", _BUSY) as pid:
            yield _slowed(pid, Path(folder, "out"), rounds)


def _found(name: str) -> str:
    path = shutil.which(name) or shutil.which(BIN / name)
    assert path is not None, f"needs {name}"
    return str(path)


@contextlib.contextmanager
def _running(*command: str | Path) -> Iterator[int]:
    with subprocess.Popen(command, stdout=subprocess.PIPE) as target:
        assert target.stdout is not None
        assert target.stdout.readline() == b"ready\n"
        try:
            yield target.pid
        finally:
            target.kill()


def _whole(name: str, pid: int, limit: float, rounds: int) -> Iterator[Figure]:
    """One look, the whole process, against gdb's backtraces of all threads."""
    ours = (WALKBACK, "stack", str(pid))
    gdb = (_found("gdb"), "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all -q backtrace")
    theirs = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *gdb)  # It complains of sources that are not there.
    with tempfile.NamedTemporaryFile() as out:
        process(ours, Path(out.name))
        mine = len(re.findall(rb"^#\d+ ", Path(out.name).read_bytes(), re.MULTILINE))
        process(theirs, Path(out.name))
        others = len(re.findall(rb"^#\d+ ", Path(out.name).read_bytes(), re.MULTILINE))
    # gdb stops at main, and shows functions that were inlined.
    assert mine >= others * 0.8, f"{name}: {mine} frames, and gdb has {others}"
    our_time, their_time = alternate(rounds, lambda: process(ours)[0], lambda: process(theirs)[0])
    yield Figure(f"stack, {name}", our_time * 1e3, their_time * 1e3, "ms", "gdb -batch", limit)


def _many(name: str, pid: int, rounds: int) -> Iterator[Figure]:
    """A sample of many, against a run of eu-stack; and how long a thread is stopped for one."""
    ours = (WALKBACK, "stack", str(pid), "--repeat", str(SAMPLES), "--interval", "0", "--format", "folded")
    theirs = (_found("eu-stack"), "-p", str(pid))
    whole, one = alternate(rounds, lambda: process(ours)[0], lambda: process(theirs)[0])
    yield Figure(f"stack --repeat {SAMPLES}, {name}", whole * 1e3 / SAMPLES, one * 1e3, "ms", "one eu-stack -p", 1)
    stopper = Stopper(pid, lines=False)
    stops = np.concatenate([stopper.shoot().snapshot.stopped for _ in range(SAMPLES)]) / 1e6
    middle, most = (float(np.percentile(stops, part)) for part in (50, 99))
    for what, value, limit in (("median", middle, 1.0), ("99 of 100", most, 5.0)):
        yield Figure(f"a stop of {SAMPLES * 5}, {what}", value, one * 1e3, "ms", "one eu-stack -p", limit, limit)


def _slowed(pid: int, out: Path, rounds: int) -> Figure:
    """How much of its time a busy Python is off its processor because it is stopped 99 times per second."""
    watch = ("record", "-p", str(pid), "-F", "99", "--sampler", "stops", "--format", "folded")
    ours = (WALKBACK, *watch, "-d", str(_RECORDED), "-o", out)
    theirs = (WALKBACK.with_name("py-spy"), "record", "-p", str(pid), "-r", "99", "-d", str(_RECORDED), "-o", out)
    our_share, their_share = alternate(rounds, lambda: _lost(pid, ours), lambda: _lost(pid, theirs))
    what = "a busy Python at 99 stops per second, off its processor"
    return Figure(what, our_share * 100, their_share * 100, "%", "py-spy record", 1, 2)


def _lost(pid: int, command: tuple[str | Path, ...]) -> float:
    """The share of the time that a busy process does not run beside a recorder."""

    def ran() -> int:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recorder:
        time.sleep(_STARTED)
        before, began = ran(), time.monotonic_ns()
        time.sleep(_WATCHED)
        share = 1 - (ran() - before) / (time.monotonic_ns() - began)
        assert recorder.poll() is None
    return share
