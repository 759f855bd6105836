"""Records events of the kernel while they happen, as a source of records as a file of perf is one.

recorder = Recorder(EventChoice.named("cpu-clock"), Sampling(), pid=1234)
for batch in Unwinding(recorder):
    ...
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import platform
import select
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from walkback.base.arch import ByteOrder, Machine, machine_of
from walkback.base.errors import UnreadableError
from walkback.capture.live.status import ZOMBIE, has_ended, is_foreign
from walkback.capture.perfdata import layout
from walkback.capture.perfdata.header import RecordingHeader
from walkback.capture.perfdata.source import RecordChunk, RecordSource
from walkback.capture.recorder.away import Away
from walkback.capture.recorder.backlog import Backlog
from walkback.capture.recorder.buildids import BuildIds
from walkback.capture.recorder.events import OFF_CPU, EventChoice, Sampling, attributes
from walkback.capture.recorder.perfevent import LockedError, OpenEvents, allow_files, explained
from walkback.capture.recorder.present import Present, all_processes, changes, process_of, threads_of
from walkback.capture.recorder.scanning import scanned
from walkback.capture.recorder.trimming import trim

_MACHINES = {"x86_64": "AMD64", "aarch64": "AArch64", "s390x": "s390x"}
_BYTEORDER: ByteOrder = "big" if sys.byteorder == "big" else "little"
_ROUND = struct.pack("=IHH", layout.FINISHED_ROUND, 0, 8)
_SMALLEST_RING, _LARGEST_RING, _ALL_RINGS = 1 << 17, 1 << 23, 1 << 26
_MANY_EVENTS = 200
"""In a second, where nobody knows."""
_AHEAD = 4.0
"""Seconds for which a buffer has room."""
_INTERVAL = 0.5
"""Seconds after which the buffers are read at the latest."""
_MOST_STACK = 65528
_ENOUGH, _MANY = 50, 0.02
"""Samples after which stacks are copied farther, and the share of cut ones from which on."""


class Recorder(RecordSource):
    """Samples of one event of a process, with all that it starts, or of the whole machine."""

    def __init__(
        self,
        event: EventChoice,
        sampling: Sampling,
        *,
        pid: int | None = None,
        name: str | None = None,
        on_exec: bool = False,
        interval: float = _INTERVAL,
        patience: float = 0.0,
    ) -> None:
        """Without `pid` the whole machine is recorded. `on_exec` begins when that process becomes another program.

        `name` is for titles and messages.

        What comes is read `interval` seconds later at the latest, and may then wait for `patience` seconds while no
        processor is free, once it is known whether more of each stack must be copied.
        """
        machine = _MACHINES.get(platform.machine())
        if machine is None:
            raise UnreadableError(f"events of {platform.machine()} are not supported")
        super().__init__(name or ("the whole machine" if pid is None else f"process {pid}"))
        self.machine: Machine = machine_of(machine)
        # The kernel copies whole words.
        self.event, self.sampling = event, replace(sampling, stack_bytes=-(-sampling.stack_bytes // 8) * 8)
        self.on_idle: Callable[[], None] = lambda: None
        """Called between records, where none came for a while."""
        self.lacking: str | None = None
        """What is not recorded."""
        if pid is not None and not event.is_inherited:
            self.lacking = "a uprobe sees no threads and processes that begin later; -a records all"
        self._pid, self._on_exec, self._interval = pid, on_exec, interval
        self._patience = patience
        self._present, self._build_ids = Present(data=sampling.data), BuildIds()
        self._threads = {pid} if on_exec and pid is not None else set()
        """Those that are recorded, but for the whole machine."""
        self._cut = self._seen = 0
        self._may_copy_more = True
        self._until: float | None = None
        self._backlog = Backlog()
        self._collector: threading.Thread | None = None
        self._away = Away() if event.name == OFF_CPU else None
        self._renewing = False
        allow_files()
        if pid is not None and not on_exec and _is_zombie(pid):
            raise UnreadableError(ZOMBIE, file=self.name)
        self.attr = b""
        """The `perf_event_attr` of the event."""
        self._opened = self._open()
        self._wake, self._ended = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK), -1
        if pid is not None:
            self._ended = self._open_process(pid)

    def __repr__(self) -> str:
        return f"Recorder({self.event.name!r}, {self.name!r})"

    def _open_process(self, pid: int) -> int:
        """A descriptor that says when the process has ended; -1 without one, as before Linux 5.3."""
        try:
            return os.pidfd_open(pid)
        except ProcessLookupError:
            self.close()
            raise UnreadableError("there is no such process", file=self.name) from None
        except OSError:
            return -1

    # Events

    def _open(self) -> OpenEvents:
        """Open the events, with less where this user or kernel has no more."""
        sampling = self.sampling
        try:
            return self._open_all()
        except OSError as error:
            everything, in_kernel = self._pid is None, self.event.is_in_kernel
            if error.errno == errno.EINVAL and sampling.deferred and not sampling.stack_bytes:
                self.sampling = replace(sampling, deferred=False)
            elif isinstance(error, PermissionError) and sampling.kernel and not everything and not in_kernel:
                self.sampling = replace(sampling, kernel=False)
                self.lacking = (
                    "this user may not record what happens in the kernel; kernel.perf_event_paranoid=1 allows it"
                )
            else:
                most_paranoid = 0 if everything else 1 if in_kernel else 2
                foreign = self._pid is not None and is_foreign(self._pid)
                refusal = explained(error, self.event.name, most_paranoid, foreign=foreign)
                raise refusal.within(file=self.name) from None
        return self._open()

    def _open_all(self) -> OpenEvents:
        """Open the events, with smaller buffers where this user may not lock as much memory."""
        size = self._ring_size()
        while True:
            try:
                return self._open_with(size)
            except LockedError:
                if size <= mmap.PAGESIZE:
                    raise
                size //= 2

    def _open_with(self, size: int) -> OpenEvents:
        self.attr = attributes(self.event, self.sampling, self.machine, size // 2, on_exec=self._on_exec)
        opened = OpenEvents(self.attr, size)
        try:
            if self._pid is None:
                opened.add(-1)
            else:
                self._open_threads(opened, set())
        except BaseException:
            opened.close()
            raise
        return opened

    def _open_threads(self, opened: OpenEvents, done: set[int]) -> None:
        """Open the events of all threads; those of new ones are inherited, unless they were started just before."""
        while new := (self._threads if self._on_exec else self._threads | threads_of(self._pid)) - done:
            for tid in sorted(new):
                opened.add(tid)
            done |= new
        self._threads |= done

    def _ring_size(self) -> int:
        """Enough for a while, and for some samples."""
        sampling = self.sampling
        rate = sampling.frequency if sampling.period is None and self.event.is_by_time else _MANY_EVENTS
        wanted = max(_AHEAD * rate, 4) * (sampling.stack_bytes + 512)
        most = min(_LARGEST_RING, 1 << (_ALL_RINGS // (os.cpu_count() or 1)).bit_length() - 1)
        return max(_SMALLEST_RING, min(1 << int(wanted).bit_length(), most))

    def start(self) -> None:
        """Let the events count, which those of a command do by themselves."""
        self._opened.enable()

    def run_for(self, seconds: float) -> None:
        """Stop by itself after this time."""
        self._until = time.monotonic() + seconds

    def stop(self) -> None:
        """Read what has come, and no more; a signal's handler may call this."""
        with contextlib.suppress(OSError):
            os.write(self._wake[1], b"\0")

    def renew(self) -> None:
        """End the records soon, and begin them anew with what runs then when they are asked for again.

        What a reader of records knows of processes and files becomes more and more.
        """
        self._renewing = True

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing more to come."""
        return self._backlog.has_ended

    @property
    def given_up(self) -> int:
        """Samples of threads that were away, given up because there were too many."""
        return self._away.given_up if self._away is not None else 0

    def close(self) -> None:
        """Let go of the events."""
        if self._collector is not None:
            self.stop()
            self._collector.join()
        self._opened.close()
        for descriptor in (*self._wake, self._ended):
            if descriptor >= 0:
                os.close(descriptor)
        self._wake, self._ended = (-1, -1), -1

    # Records

    def open_recording(self) -> tuple[RecordingHeader, RecordSource]:
        """As a recording: it begins with what runs now."""
        header = RecordingHeader(self.name, _BYTEORDER)
        header.hostname, header.os_release, header.arch = os.uname().nodename, os.uname().release, os.uname().machine
        header.clock = time.time_ns(), time.monotonic_ns()
        header.add_attr(memoryview(self.attr), b"", 0)
        header.events.all[0].name = self.event.name
        return header, self

    def pieces(self) -> Iterator[RecordChunk]:
        """The records, as they come, until the process ends or the recorder is stopped."""
        for data in self.records():
            view = memoryview(data)
            self.position += len(data)
            for rows in scanned(view):
                yield RecordChunk(view, *rows, owned=True)

    def records(self) -> Iterator[bytearray]:
        """The bytes of the records: what runs already, and what comes then, in rounds."""
        backlog = self._backlog
        first, backlog.anew = backlog.anew, None
        # Buffers are emptied by a thread of its own: what is done with records, as loading tables, can take seconds.
        if self._collector is None:
            self._collector = self._started()
            first = bytearray().join(self._running(held=self._on_exec))
        yield (first or bytearray()) + _ROUND
        while not backlog.has_ended and backlog.anew is None:
            data = backlog.take(self._patience if self._seen >= _ENOUGH and not self._is_cut else 0.0)
            # A round that has nothing lets what came in the round before be delivered.
            if not data and not backlog.has_ended:
                self.on_idle()
            self._build_ids.write(data)
            data += _ROUND
            if self._away is not None:
                data = self._away.take(data, time.monotonic_ns() if backlog.has_ended else None)
            yield data

    def _started(self) -> threading.Thread:
        collector = threading.Thread(target=self._collect, name="walkback-recorder", daemon=True)
        try:
            collector.start()
        except RuntimeError:
            raise UnreadableError("no thread can be started; ulimit -u allows more", file=self.name) from None
        return collector

    def _running(self, *, held: bool = False) -> Iterator[bytearray]:
        """The records of what runs now and is recorded, in pieces; of a command that is `held`, nothing."""
        yield bytearray(self._present.kernel())
        processes: Iterable[int] = ()
        if self._pid is None:
            processes = all_processes()
        elif not held:
            processes = {process_of(tid) for tid in self._threads.copy()} | {self._pid}
        for pid in processes:
            present = bytearray(self._present.process(pid))
            self._build_ids.write(present)
            yield present

    def _collect(self) -> None:
        """Empty the buffers until there is no more to come; what nobody takes stays in them, and is lost there."""
        try:
            waiting = self._waiting()
            going_on = True
            while going_on:
                going_on = self._wait(waiting)
                if going_on and self._is_cut:
                    self._backlog.put(self._copy_more())
                    waiting = self._waiting()
                if not self._backlog.is_full or not going_on:
                    self._pass_on()
        finally:
            self._backlog.end()

    def _pass_on(self) -> None:
        """Hand over what has come; if records begin anew, then what runs, and what has changed meanwhile."""
        renewing, self._renewing = self._renewing, False
        running, data = bytearray(), bytearray()
        # There can be thousands of processes, and buffers have room for seconds.
        for piece in self._running() if renewing else ():
            running += piece
            data += self._read(self._opened, self.sampling.stack_bytes)
        data += self._read(self._opened, self.sampling.stack_bytes)
        if renewing:
            running += changes(data)
        # Who takes the records owns them: nothing here may read them then.
        self._backlog.put(data)
        if renewing:
            self._backlog.begin_anew(running)

    def _waiting(self) -> select.poll:
        """What to wait for."""
        waiting = select.poll()
        for descriptor in (self._wake[0], self._ended, *(ring.descriptor for ring in self._opened.rings.values())):
            if descriptor >= 0:
                waiting.register(descriptor, select.POLLIN)
        return waiting

    def _wait(self, waiting: select.poll) -> bool:
        """Wait until there is something to read; whether more is to come."""
        left = self._interval
        if self._until is not None:
            left = min(left, max(0.0, self._until - time.monotonic()))
        ready = waiting.poll(1000 * left)
        for descriptor, what in ready:
            if what & (select.POLLHUP | select.POLLERR):  # its thread has ended; others may write on
                waiting.unregister(descriptor)
        ended = {descriptor for descriptor, _ in ready} & {self._wake[0], self._ended}
        if self._ended < 0 and self._pid is not None and all(map(has_ended, threads_of(self._pid))):
            return False
        return not ended and (self._until is None or time.monotonic() < self._until)

    def _read(self, opened: OpenEvents, stack_bytes: int) -> bytearray:
        """What has come."""
        data = opened.take()
        trim(data, stack_bytes)
        if self._pid is not None:
            self._follow(memoryview(data))
        return data

    def _follow(self, data: memoryview) -> None:
        """Keep account of the threads, for when their events are opened anew."""
        for rows in scanned(data):
            for i in np.flatnonzero(np.isin(rows.kind, (layout.FORK, layout.EXIT, layout.COMM))).tolist():
                kind = int(rows.kind[i])
                tid = struct.unpack_from("=i", data, int(rows.offset[i]) + (12 if kind == layout.COMM else 16))[0]
                if kind == layout.EXIT:
                    self._threads.discard(tid)
                else:
                    self._threads.add(tid)

    # Stacks that are cut

    def saw(self, samples: int, cut: int) -> None:
        """Take note of how many stacks were cut, so that more of each is copied where many are."""
        self._seen += samples
        self._cut += cut

    @property
    def _is_cut(self) -> bool:
        grows = self._may_copy_more and self.sampling.stack_bytes < _MOST_STACK
        return grows and self._seen >= _ENOUGH and self._cut > _MANY * self._seen

    def _copy_more(self) -> bytearray:
        """Open all events anew, with more of each stack; what the old ones had."""
        former, sampling = self._opened, self.sampling
        self.sampling = replace(sampling, stack_bytes=min(4 * sampling.stack_bytes, _MOST_STACK))
        self._seen = self._cut = 0
        self._on_exec = False
        try:
            self._opened = self._open_all()
        except OSError:
            # As many descriptors are not to be had, or the process has just ended.
            self.sampling, self._may_copy_more = sampling, False
            return bytearray()
        former.disable()
        self._opened.enable()
        data = self._read(former, sampling.stack_bytes)
        former.close()
        return data


def _is_zombie(pid: int) -> bool:
    threads = threads_of(pid)
    return bool(threads) and all(map(has_ended, threads))
