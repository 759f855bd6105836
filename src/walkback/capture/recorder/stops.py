"""Samples by short stops of the threads of a process and of all that it starts, where the kernel refuses events.

Only those that run are stopped, or those that wait, if that is asked for.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from walkback.base.errors import UnreadableError
from walkback.base.text import counted
from walkback.capture.frames import DistinctFrames, with_inlined
from walkback.capture.interpreted import Interpreted
from walkback.capture.live.process import Process
from walkback.capture.live.tracing import NOT_IN_TIME
from walkback.capture.snapshot import Snapshot
from walkback.capture.walker import walker_for
from walkback.elf import FileSearch
from walkback.naming.modules import Modules
from walkback.naming.names import Names
from walkback.stacks.profile import SampleBatch
from walkback.symbols.demangle import Demangle
from walkback.walking.moduletable import Only
from walkback.walking.walker import LIMIT

_LOOK, _LATEST = 0.05, 1.0
"""Seconds after which new processes are looked for, and after which at the latest."""
_ENOUGH = 256
"""Bytes of what the kernel says of a thread that have its name and its state."""
_AT_FIRST = 4
"""Threads that are stopped before it is known how long they take; then twice as many, and so on."""
_LONGEST = 0.25
"""Seconds for the threads of a process, each time; those that are being stopped then may take longer."""
_LATE = "not all threads stopped in time; those are not in the samples"
_RUNS, _WAITS = b"R", b"S"
"""The states of threads. Those that wait for a disk, in state D, cannot be stopped."""


class Stops:
    """Iterated once: batches of samples with named frames, until the process ends or `stop` is called.

    >>> import os
    >>> from walkback.capture.recorder.stops import Stops
    >>> Stops(os.getpid(), frequency=99).events
    ['stops']
    """

    def __init__(
        self,
        pid: int,
        *,
        frequency: int,
        name: str | None = None,
        waiting: bool = False,
        only: Only | None = None,
        max_stack: int = LIMIT,
        search: FileSearch | None = None,
        demangle: Demangle = True,
        lines: bool = True,
        inline: bool = True,
        cache: bool = True,
        names_last: bool = False,
        interpreted: bool = True,
    ) -> None:
        """With `waiting` those threads are sampled that wait. The other options are those of `Unwinding`.

        With `interpreted` the functions of Python and Lua stand in the place of the evaluators that run them.
        """
        self.name = name or f"process {pid}"
        self.modules = Modules(search)
        self.names_last = names_last
        self.comms: list[str] = []
        self.events = ["stops"]
        self.troubles: list[str] = []
        """What could not be had, a line each."""
        self._pid, self._wanted = pid, _WAITS if waiting else _RUNS
        self._interval = self._period = 1 / frequency
        self._comm_numbers: dict[str, int] = {}
        self._interpreted, self._shows = Interpreted(self.modules, limit=max_stack), interpreted
        self._first: Process | None = None
        self._first = self._process(pid)
        self._processes: dict[int, Process | None] = {pid: self._first}
        """None of those that have not been sampled yet."""
        self.walker = walker_for(self._first, self.modules, cache=cache, only=only, max_stack=max_stack)
        self.names = Names(self.modules, demangle=demangle, lines=lines, inline=inline, cache=cache)
        self.distinct = DistinctFrames(self.names, self._interpreted.frames)
        self.on_idle: Callable[[], None] = lambda: None
        """Called after each round of stops."""
        self._until: float | None = None
        self._stopped = False

    def __repr__(self) -> str:
        return f"Stops({self.name!r})"

    def _process(self, pid: int) -> Process:
        process = Process(pid, self.modules, beside=self._first)
        if self._shows:
            process.interpreters = self._interpreted.interpreters()
        return process

    def check(self) -> None:
        """Raise an error if the process may not be stopped."""
        alive = [tid for tid in _threads(self._pid) if _state(self._pid, tid) not in b"ZX"]
        if self._first is not None:
            self._first.sample_threads(alive[:1] or None)

    def start(self) -> None:
        """Samples are taken when they are asked for."""

    def close(self) -> None:
        """There is nothing to let go of."""

    def saw(self, samples: int, cut: int) -> None:
        """Stacks are copied as far as it takes."""

    def run_for(self, seconds: float) -> None:
        """Stop by itself after this time."""
        self._until = time.monotonic() + seconds

    def stop(self) -> None:
        """Take no more samples; a signal's handler may call this."""
        self._stopped = True

    def __iter__(self) -> Iterator[SampleBatch]:
        due = look = time.monotonic()
        last, first, rounds = due - self._interval, math.inf, 0
        while self._goes_on and (self._until is None or due < self._until):
            if due >= look:
                used = time.thread_time()
                self._find_processes()
                # A process with thousands of threads takes long to look at.
                look = due + min(max(_LOOK, 20 * (time.thread_time() - used)), _LATEST)
            # Where there is more to do than the interval has room for, a sample stands for a longer time.
            began = time.monotonic()
            self._period, last = began - last, began
            for pid in list(self._processes):
                if self._goes_on:
                    yield from self._sample(pid)
            self.on_idle()
            # In the first round tables are loaded.
            first, rounds = min(first, time.monotonic()), rounds + 1
            # What took longer than the interval is not made up for by samples without a pause.
            due = max(due + self._interval, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
        wanted = int((time.monotonic() - first) / self._interval) if rounds else 0
        if rounds < wanted // 2:
            self.troubles.append(
                f"threads were stopped {counted(rounds, 'time')}, and should have been {counted(wanted, 'time')}:"
                " there are too many of them, or the machine is too busy"
            )

    @property
    def _goes_on(self) -> bool:
        return not self._stopped and not _has_ended(self._pid)

    def _find_processes(self) -> None:
        """Take in what the processes have started, and forget those that have ended."""
        for pid in [pid for pid in self._processes if _has_ended(pid)]:
            del self._processes[pid]
        known = list(self._processes)
        while known:
            for child in _children(known.pop()):
                if child not in self._processes:
                    self._processes[child] = None
                    known.append(child)

    def _sample(self, pid: int) -> Iterator[SampleBatch]:
        """The threads of a process, or any of them if there is not enough time for all.

        Where many wait for a processor, each takes long to come to its stop.
        """
        tids = [tid for tid in _threads(pid) if _state(pid, tid) == self._wanted]
        process = self._processes[pid]
        if tids and process is None:
            with contextlib.suppress(UnreadableError):  # it has just ended
                process = self._processes[pid] = self._process(pid)
        if process is None:
            return
        random.shuffle(tids)
        count, done, some = len(tids), 0, _AT_FIRST
        snapshots = []
        end = time.monotonic() + _LONGEST
        while done < count and not self._stopped and (not done or time.monotonic() < end):
            snapshot = self._snapshot(process, tids[done : done + some])
            snapshots += [snapshot] if snapshot is not None else []
            done, some = min(done + some, count), 2 * some
        for snapshot in snapshots:
            yield self._batch(snapshot, self._period * count / done)

    def _snapshot(self, process: Process, tids: list[int]) -> Snapshot | None:
        try:
            snapshot = process.sample_threads(tids, self.walker)
        except UnreadableError as error:
            trouble = error.message if process.pid == self._pid else f"a process that it has started: {error.message}"
            if _has_memory(process.pid) and trouble not in self.troubles:
                self.troubles.append(trouble)
            return None
        if any(NOT_IN_TIME in line for line in snapshot.troubles) and _LATE not in self.troubles:
            self.troubles.append(_LATE)
        return snapshot

    def _batch(self, snapshot: Snapshot, period: float) -> SampleBatch:
        stacks, count = self._interpreted.merged(snapshot), len(snapshot.tids)
        numbers = self.distinct.add(stacks, np.full(count, snapshot.pid))
        frames = self.distinct.named
        if not self.names_last:
            frames = self.distinct.frames
            laid = self.distinct.laid_out(stacks.first, numbers)
            stacks, numbers = with_inlined(stacks, laid), laid.frame
        return SampleBatch(
            frames=frames,
            comms=self.comms,
            events=self.events,
            pid=np.full(count, snapshot.pid, np.int64),
            tid=np.array(snapshot.tids, np.int64),
            time=np.full(count, time.time_ns(), np.uint64),
            period=np.full(count, int(1e9 * period), np.uint64),
            comm=np.array([self._comm(name) for name in snapshot.names], np.int64),
            end=stacks.end,
            first=stacks.first,
            frame=numbers,
            pc=stacks.pc,
            lookup=stacks.lookup,
            how=stacks.how,
            event=np.zeros(count, np.int64),
        )

    def _comm(self, name: str) -> int:
        number = self._comm_numbers.setdefault(name, len(self.comms))
        if number == len(self.comms):
            self.comms.append(name)
        return number


def _threads(pid: int) -> list[int]:
    try:
        return [int(entry) for entry in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for tid in _threads(pid):
        with contextlib.suppress(OSError):
            found += [int(child) for child in Path(f"/proc/{pid}/task/{tid}/children").read_text().split()]
    return found


def _state(pid: int, tid: int) -> bytes:
    """The letter for what a thread does; X where it has ended."""
    try:
        file = os.open(f"/proc/{pid}/task/{tid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            contents = os.read(file, _ENOUGH)
        finally:
            os.close(file)
    except OSError:
        return b"X"
    # The name before it stands in brackets, and may have any.
    return contents[contents.rfind(b")") + 2 :][:1] or b"X"


def _has_memory(pid: int) -> bool:
    """Whether a process has not begun to end, as far as this user may know."""
    try:
        return bool(Path(f"/proc/{pid}/maps").read_bytes())
    except OSError as error:
        return isinstance(error, PermissionError)


def _has_ended(pid: int) -> bool:
    return all(_state(pid, tid) in b"ZX" for tid in _threads(pid))
