"""Programs to record, of which it is known where they spend their time, and what may be recorded here."""

from __future__ import annotations

import contextlib
import subprocess
from functools import cache
from typing import TYPE_CHECKING

import pytest

from walkback.base.arch import AMD64
from walkback.capture.recorder.events import EventChoice, Sampling, attributes
from walkback.capture.recorder.perfevent import open_event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHARES = r"""
#include <sys/wait.h>
#include <unistd.h>
#define HARD __attribute__((noinline))
#ifndef ROUNDS
#define ROUNDS 100
#endif
volatile unsigned long sink;
HARD void spin(long n) { for (long i = 0; i < n; i++) sink += i; }
HARD void one(void) { spin(1000000); sink++; }
HARD void three(void) { spin(3000000); sink++; }
HARD void child(void) { spin(1000000L * ROUNDS); sink++; }
int main(void) {
    for (int i = 0; i < ROUNDS; i++) { one(); three(); }
    if (!fork()) { child(); _exit(0); }
    wait(0);
}
"""
"""`three` takes three times as long as `one`."""

DEEP = r"""
#define HARD __attribute__((noinline))
volatile unsigned long sink;
HARD void spin(long n) { for (long i = 0; i < n; i++) sink += i; }
HARD int deep(int n) {
    volatile char room[1000];
    room[n] = 1;
    if (!n) for (;;) spin(1000000);
    deep(n - 1);
    return room[n];
}
int main(void) { return deep(40) - 1; }
"""
"""Its stack has 40 KB, and it does not end."""

SLEEPS = r"""
#include <pthread.h>
#include <time.h>
#define HARD __attribute__((noinline))
HARD void nap(long ms) { struct timespec t = {0, ms * 1000000}; nanosleep(&t, 0); }
HARD void *longs(void *_) { for (int i = 0; i < 4; i++) nap(200); return 0; }
HARD void *shorts(void *_) { for (int i = 0; i < 40; i++) nap(10); return 0; }
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, longs, 0);
    pthread_create(&b, 0, shorts, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
"""
"""`longs` sleeps for 0.8 seconds, `shorts` for 0.4."""

MANY = r"""
#include <pthread.h>
#include <unistd.h>
#define HARD __attribute__((noinline))
volatile unsigned long sink;
HARD void spin(void) { sink++; }
HARD void *work(void *_) {
    for (;;) {
#ifdef WAITS
        pause();
#endif
        spin();
    }
}
int main(void) {
    pthread_t thread;
    for (int i = 0; i < 200; i++) pthread_create(&thread, 0, work, 0);
    pause();
}
"""
"""It has 200 threads, which do not end."""

CALLS = r"""
#include <unistd.h>
volatile char room[123 * 4096];
__attribute__((noinline)) void called(int i) { room[i * 4096] = 1; }
int main(void) {
    for (int i = 0; i < 123; i++) {
        called(i);
#ifdef SLOWLY
        usleep(10000);
#endif
    }
}
"""
"""Each call writes to a page that was not written to."""


def built(folder: Path, source: str, *more: str) -> Path:
    """A program, with call frame information and no frame pointers, unless there are `more` options."""
    path = folder / "program"
    command = ["gcc", "-O1", "-g", "-pthread", *more, "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=source.encode(), check=True)
    return path


@cache
def may_record() -> bool:
    """Whether the kernel takes events of this user, with kernel frames."""
    import os

    attr = attributes(EventChoice.named("cpu-clock"), Sampling(), AMD64, 1, on_exec=False)
    try:
        os.close(open_event(attr, -1, 0))
    except (OSError, KeyError):
        return False
    return True


needs_events = pytest.mark.skipif(not may_record(), reason="the kernel refuses events here")


@contextlib.contextmanager
def running(folder: Path, source: str = DEEP) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is killed in the end; without another one, one that spends its time deep in its stack."""
    with subprocess.Popen([built(folder, source)]) as process:
        try:
            yield process
        finally:
            process.kill()
