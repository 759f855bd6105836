"""Interrupts and requests to end: they end the command wherever they come, or stop what it records.

What is raised in some places, Python or a library drops.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

_SOON = 0.02
"""Seconds until what may be dropped is tried again."""


def repeat_interrupts() -> None:
    """Let an interrupt come again that came while an object was taken away, as an open file, or looked for a name."""
    other = sys.unraisablehook

    def show(unraisable: sys.UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _interrupt_soon()
        else:
            other(unraisable)

    def heed(_: int, frame: FrameType | None) -> None:
        # NumPy looks for names in what it is given, and takes any error for their absence.
        while frame is not None:
            if frame.f_code.co_name == "__getattr__":
                _interrupt_soon()
                return
            frame = frame.f_back
        raise KeyboardInterrupt

    sys.unraisablehook = show
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, heed)


@contextlib.contextmanager
def stopped_by_signals(call: Callable[[], None], *, waits: bool) -> Iterator[list[int]]:
    """Let Ctrl-C and a request to end call what stops a recording; gives the signals that have done so.

    A command gets Ctrl-C itself; so what `waits` for one is stopped only by a second. One more gives up, whatever is
    being done. The signal that comes when a terminal is closed stays ignored for who has asked for that, as by nohup.
    """
    signals: list[int] = []

    def stop(number: int, _frame: object) -> None:
        nonlocal waits
        if number == signal.SIGINT and signals:
            raise KeyboardInterrupt
        if number != signal.SIGINT or not waits:
            signals.append(number)
            call()
        waits = False

    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    former = {number: signal.signal(number, stop) for number in ends}
    try:
        yield signals
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _interrupt_soon() -> None:
    import _thread
    import time

    ready = _thread.allocate_lock()

    def interrupt() -> None:
        with ready:
            time.sleep(_SOON)
        os.kill(os.getpid(), signal.SIGINT)  # which also ends what waits

    # Not by `Timer`, whose start waits: what comes while this runs is lost.
    with ready:
        _thread.start_new_thread(interrupt, ())
