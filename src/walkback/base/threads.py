"""Work that threads of this process share, on the processors that it may keep busy.

Kernels let go of the interpreter's lock, so threads are worth it where these do most of the work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

Tool = TypeVar("Tool")
Piece = TypeVar("Piece")
Found = TypeVar("Found")

_MOST = 16
"""Threads: with more of them, what they cannot share takes longer than the rest."""


class _Allowed:
    """What this process may keep busy."""

    processors: int | None = None
    processes = 1


def limit_processors(most: int | None) -> None:
    """Let this process keep no more of them busy, or all if there is no limit."""
    _Allowed.processors = most


def share_processors(processes: int) -> None:
    """Let this process be one of several that are all busy."""
    _Allowed.processes = processes


def available_processors() -> int:
    """How many processors this process may keep busy."""
    found = len(os.sched_getaffinity(0))
    return max(1, min(found, _Allowed.processors or found) // _Allowed.processes)


def threads_for(pieces: int) -> int:
    """How many threads are worth it for this number of pieces; a thread that is not the main one works alone."""
    if threading.current_thread() is not threading.main_thread():
        return 1
    return max(1, min(pieces, available_processors(), _MOST))


def by_threads(tools: Sequence[Tool], pieces: Sequence[Piece], work: Callable[[Tool, Piece], Found]) -> list[Found]:
    """What the work makes of each piece, in order. A thread for each tool takes one piece after the other."""
    found: dict[int, Found] = {}
    errors: list[BaseException] = []
    left = iter(range(len(pieces)))
    lock = threading.Lock()

    def next_number() -> int | None:
        with lock:
            return None if errors else next(left, None)

    def take(tool: Tool) -> None:
        try:
            for number in iter(next_number, None):
                found[number] = work(tool, pieces[number])
        except BaseException as error:
            errors.append(error)

    started: list[threading.Thread] = []
    try:
        with suppress(RuntimeError):  # if no more threads can be had, those that there are do all of it
            for tool in tools[1:]:
                thread = threading.Thread(target=take, args=(tool,), daemon=True)
                thread.start()
                started.append(thread)
        take(tools[0])
        for thread in started:
            thread.join()
    except BaseException as error:
        errors.append(error)  # which ends the others
        raise
    if errors:
        raise errors[0]
    return [found[number] for number in range(len(pieces))]
