"""Records that were read from the buffers of events, and wait until somebody takes them."""

from __future__ import annotations

import os
import queue
import threading
import time
from pathlib import Path
from typing import NamedTuple

_IDLE = 1.0
"""Seconds without any record after which nobody waits for more."""
_AT_ONCE, _MANY, _MOST = 2 << 20, 48 << 20, 64 << 20
"""Bytes that are taken at once, that do not wait for a free processor, and that may wait at all."""
_LOOK = 0.25
"""Seconds between two looks for a free processor."""
_STAT = Path("/proc/stat")
_TICKS = os.sysconf("SC_CLK_TCK")


class _Anew(NamedTuple):
    """In the queue: the records begin anew here."""

    records: bytearray
    """Of what runs."""


class Backlog:
    """What one thread puts in, and another takes out."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[bytearray | _Anew | None] = queue.SimpleQueue()
        self._given = self._taken = 0
        """Bytes that came in, and went out."""
        self._idleness = Idleness()
        self._is_urgent = threading.Event()
        self._is_closed = self._has_waited = False
        self.has_ended = False
        """Whether all was taken, and there is nothing more to come."""
        self.anew: bytearray | None = None
        """The records of what runs, where records begin anew behind what was taken."""

    @property
    def is_full(self) -> bool:
        """Whether as much waits as may."""
        return self._given - self._taken >= _MOST

    def put(self, data: bytearray) -> None:
        """Add some records."""
        self._given += len(data)
        if data:
            self._queue.put(data)
        if self._given - self._taken >= _MANY:
            self._is_urgent.set()

    def begin_anew(self, records: bytearray) -> None:
        """What comes from now on has nothing to do with what came before: it begins with these records."""
        self._queue.put(_Anew(records))
        self._is_urgent.set()

    def end(self) -> None:
        """Nothing more is to come."""
        self._is_closed = True
        self._queue.put(None)
        self._is_urgent.set()

    def take(self, patience: float = 0.0) -> bytearray:
        """All that has come before the end, or before the records begin anew; nothing where none comes for a while.

        What comes may wait for `patience` seconds while no processor is free: what is done with it then takes no time
        from the programs that run. All that has come by then waits no more.
        """
        self._has_waited &= not self._queue.empty()
        self._idleness.begin()
        data = bytearray()
        while not data or (self._queue.qsize() and len(data) < _AT_ONCE):
            try:
                more = self._queue.get(timeout=_IDLE)
            except queue.Empty:
                break
            if more is None:
                self.has_ended = True
                break
            if isinstance(more, _Anew):
                self.anew = more.records
                break
            if not data and not self._has_waited:
                self._wait_for_processor(patience)
            self._taken += len(more)
            if data:
                data += more
            else:
                data = more
        return data

    def _wait_for_processor(self, patience: float) -> None:
        self._has_waited = True
        self._is_urgent.clear()
        until = time.monotonic() + patience
        while (left := until - time.monotonic()) > 0 and not (self._is_closed or self._idleness.has_any()):
            if self._given - self._taken >= _MANY or self._is_urgent.wait(min(left, _LOOK)):
                break


class Idleness:
    """How long the processors that this process may use have had nothing to do."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._since, self._idle = time.monotonic(), _idle_seconds()

    def has_any(self) -> bool:
        """Whether one has had nothing to do for half of the time, or more; then the count begins anew."""
        passed, idle = time.monotonic() - self._since, _idle_seconds() - self._idle
        if passed < _LOOK / 2:  # too little to know
            return False
        self.begin()
        return idle >= passed / 2


def _idle_seconds() -> float:
    """Of all these processors together since they were started; 0 where the kernel does not say it."""
    try:
        lines = _STAT.read_text().splitlines()
    except OSError:
        return 0.0
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    rows = [fields for fields in map(str.split, lines) if fields and fields[0] in ours]
    return sum(int(ticks) for fields in rows for ticks in fields[4:6]) / _TICKS
