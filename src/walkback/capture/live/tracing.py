"""Tracing is done by threads of their own, which are left alone with what does not stop.

No signal's handler interrupts them, and the kernel lets go all that such a thread still holds when it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from walkback.base.arch import Machine
from walkback.capture.live.ptrace import GivenUpError, Tracer

NOT_IN_TIME = "it did not stop in time"

_FOR_ALL = 5.0
"""Seconds that all threads together are waited for, and then hardly any for each more."""
_LEAST = 0.01


class Tracing:
    """A tracer, and a new one whenever it is stuck."""

    def __init__(self, machine: Machine, limit: int, patience: float) -> None:
        """Each thread has `patience` seconds to stop; of its stack at most `limit` bytes are copied."""
        self._machine, self._limit, self._patience = machine, limit, patience
        self._left = _FOR_ALL
        self._tid = 0
        self._stuck: dict[int, threading.Thread] = {}
        self.tracer = Tracer(machine, limit)

    def begin(self, tid: int) -> str | None:
        """To be called before a thread is taken; returns why it must not be."""
        self._tid = tid
        before = self._stuck.get(tid)
        return NOT_IN_TIME if before is not None and before.is_alive() else None

    def run(self, work: Callable[[Tracer], None]) -> list[int]:
        """Do the work; returns the threads that did not stop in time.

        With each of those the work is left, and done again by another thread: so it must go on where it was.
        """
        self._left = _FOR_ALL
        missed = []
        while not self._run(work):
            missed.append(self._tid)
        return missed

    def _run(self, work: Callable[[Tracer], None]) -> bool:
        tracer = self.tracer
        errors: list[BaseException] = []

        def run() -> None:
            try:
                work(tracer)
            except GivenUpError:
                pass
            except BaseException as error:  # It is raised again.
                errors.append(error)

        thread = threading.Thread(target=run, name="walkback-tracer", daemon=True)
        thread.start()
        patience = min(self._patience, max(self._left, _LEAST))
        while thread.is_alive():
            thread.join(patience / 4)
            if tracer.give_up(patience):
                self._left -= patience
                self._stuck = {tid: one for tid, one in self._stuck.items() if one.is_alive()}
                self._stuck[self._tid] = thread
                self.tracer = Tracer(self._machine, self._limit)
                return False
        if errors:
            raise errors[0]
        return True
