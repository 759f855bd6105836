"""Interrupts and requests to end, which wait while something is done that must not end halfway.

What handles them raises an exception in the main thread, wherever that is. If it has just taken a lock of the standard
library, the lock stays taken, and whoever needs it waits for ever.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import FrameType

Found = TypeVar("Found")

_GLANCE = 0.05
"""Seconds that an interrupt waits at most while results are awaited."""


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let an interrupt, or a request to end, wait for what is done here, unless a second one comes.

    A process that is being started when its pool is left alone ends with a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    waits = True

    def wait(number: int, frame: FrameType | None) -> None:
        if waits and not came:
            came.append((number, frame))
        else:
            former[number](number, frame)

    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    former = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in former:
            signal.signal(number, wait)
        yield
    finally:
        waits = False
        for number, handler in former.items():
            signal.signal(number, handler)
        for number, frame in came:
            former[number](number, frame)


def result(future: Future[Found]) -> Found:
    """The result of a future, once it is done. Interrupts come in between."""
    first_done([future])
    return future.result()


def first_done(running: Collection[Future[Found]], timeout: float | None = None) -> set[Future[Found]]:
    """Those that are done, as soon as one is; none after this time. Interrupts come in between."""
    end = None if timeout is None else time.monotonic() + timeout
    done: set[Future[Found]] = set()
    while running and not done and (end is None or time.monotonic() < end):
        with uninterrupted():
            done = wait(running, timeout=_GLANCE, return_when=FIRST_COMPLETED).done
    return done
