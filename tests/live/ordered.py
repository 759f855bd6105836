"""A Python program whose functions call each other in one order, for as much processor time as it is told to take.

So do functions that are made later, a child, and a thread of the child.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

BUDGET = float(sys.argv[1])
"""Seconds for each of five rounds."""


def c(end: float) -> int:
    found = 0
    while time.thread_time() < end:
        for number in range(500):
            found += number * number
    return found


def b(end: float) -> int:
    return [c(end)][0]


def a(end: float) -> int:
    return max(b(end), 0)


class Work:
    """By a method, which C calls."""

    def run(self, end: float) -> int:
        return a(end)


WORK = Work().run


def work(run: Callable[[float], int] = WORK) -> None:
    list(map(run, [time.thread_time() + BUDGET]))


def late(number: int) -> None:
    """By functions that did not exist before."""
    names: dict[str, Callable[[float], int]] = {"c": c}
    exec(f"def inner{number}(end): return c(end)\ndef outer{number}(end): return inner{number}(end)", names)
    work(names[f"outer{number}"])


work()
late(1)
child = os.fork()
if not child:
    work()
    late(2)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    os._exit(0)
os.waitpid(child, 0)
