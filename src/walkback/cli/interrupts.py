"""An interrupt ends the command wherever it comes: what is raised in some places, Python or a library drops."""

from __future__ import annotations

import os
import signal
import sys
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
