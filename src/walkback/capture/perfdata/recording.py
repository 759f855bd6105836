"""A recording of perf, from its first record to its last, as batches of samples."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import Self

import numpy as np

from walkback.base.arch import AMD64, MACHINES, Machine
from walkback.base.arrays import I64, U64, Bools
from walkback.base.errors import ArgumentError, UnreadableError
from walkback.base.text import counted
from walkback.capture.perfdata import layout
from walkback.capture.perfdata._records import identify
from walkback.capture.perfdata.batch import Extractor, RecordedBatch, keep
from walkback.capture.perfdata.counts import RecordingCounts
from walkback.capture.perfdata.deferred import DeferredChains
from walkback.capture.perfdata.groups import Groups
from walkback.capture.perfdata.header import RecordingHeader, read_feature
from walkback.capture.perfdata.opening import (
    LiveRecording,
    RecordingInput,
    open_bytes,
    open_file,
    open_folder,
    open_stream,
)
from walkback.capture.perfdata.order import Records, Waiting
from walkback.capture.perfdata.source import RecordChunk, RecordSource
from walkback.capture.perfdata.state import KernelMap, RecordedState, Threads
from walkback.elf import OpenFile
from walkback.naming.modules import Modules
from walkback.walking.samples import Space

_SAMPLES = 4096
_BYTES = 32 << 20
"""Of samples in a batch, where they have to be copied."""
_WORTH = 8 << 20
"""Bytes that take longer to copy than a batch more takes."""
_WAITING = 256 << 20
_BEGINNING = 64 << 20
"""Bytes of a pipe in which the first event must come."""
_STATE = (layout.MMAP, layout.COMM, layout.EXIT, layout.FORK, layout.MMAP2)
_AT_ONCE = (layout.HEADER_ATTR, layout.HEADER_BUILD_ID, layout.EVENT_UPDATE, layout.HEADER_FEATURE)


class Recording:
    """What perf recorded; `batches` reads it, once.

    >>> recording = walkback.Recording.open("perf.data", walkback.naming.Modules())
    >>> sum(len(batch) for batch in recording.batches())
    6
    """

    def __init__(
        self,
        header: RecordingHeader,
        source: RecordSource,
        modules: Modules,
        *,
        machine: Machine | None = None,
        bound: int = _WAITING,
    ) -> None:
        """`bound` is how many bytes may wait until what is older than they has come."""
        self.name = header.name
        self.byteorder = header.byteorder
        self.counts = RecordingCounts()
        self.troubles = header.troubles
        """What is wrong with it, a line each."""
        modules.recorded = header.written
        self._header = header
        self._source = source
        self._read = False
        self._pieces = source.pieces()
        self._begun: list[RecordChunk] = []
        self._read_beginning()
        self.machine = machine or header.machine or self._host()
        self._state = RecordedState(header, self.machine, modules)
        self._waiting = Waiting(bound)
        big = header.byteorder == "big"
        self._extractor = Extractor(self.machine, header.events.all, big=big)
        self._swapped = big
        self._groups = Groups(header.events, big=big)
        self._deferred = DeferredChains(big=big)

    def __repr__(self) -> str:
        return f"Recording({self.name!r}, machine={self.machine.name}, events={len(self._header.events.all)})"

    @classmethod
    def open(
        cls,
        source: RecordingInput,
        modules: Modules,
        *,
        machine: Machine | None = None,
        bound: int = _WAITING,
    ) -> Self:
        """A file of either form, the folder that `perf record --threads` writes, or what comes through a pipe."""
        if isinstance(source, bytes | bytearray | memoryview):
            header, records = open_bytes(source)
        elif isinstance(source, LiveRecording):
            header, records = source.open_recording()
        elif not isinstance(source, str | os.PathLike):
            header, records = open_stream(source)
        elif os.path.isdir(source):
            header, records = open_folder(os.fsdecode(source))
        else:
            header, records = open_file(OpenFile(source), os.fsdecode(source))
        return cls(header, records, modules, machine=machine, bound=bound)

    # What is known of it

    @property
    def hostname(self) -> str | None:
        """Where it was recorded."""
        return self._header.hostname

    @property
    def os_release(self) -> str | None:
        """The kernel's version there."""
        return self._header.os_release

    @property
    def clock(self) -> tuple[int, int] | None:
        """One moment, in nanoseconds since 1970 and as samples count; only `perf record -k` records it."""
        return self._header.clock

    @property
    def spaces(self) -> list[Space]:
        """All spaces that samples had so far."""
        return self._state.spaces.all

    @property
    def comms(self) -> list[str]:
        """The names of threads so far."""
        return self._state.comms

    @property
    def events(self) -> list[str]:
        """The names of the events."""
        return [event.name for event in self._header.events.all]

    @property
    def kernel(self) -> list[KernelMap]:
        """The parts of the kernel, as far as recorded."""
        return self._state.kernel

    def position(self) -> int:
        """Bytes of it that are read."""
        return self._source.position

    @property
    def total(self) -> int | None:
        """Bytes that there are; None where that is not known."""
        return self._source.total

    def _host(self) -> Machine:
        host = {"x86_64": "AMD64", "aarch64": "AArch64", "s390x": "s390x"}.get(platform.machine())
        found = next((one for one in MACHINES if one.name == host), AMD64)
        if any(event.regs_user for event in self._header.events.all):
            self.troubles.append(f"the recording does not name its machine, and is taken as one of {found.name}")
        return found

    # Reading

    def _read_beginning(self) -> None:
        """In a pipe what a file has in its header comes in the first records."""
        if self._header.events.all:
            return
        kept = 0
        for piece in self._pieces:
            self._begun.append(piece)
            self._read_at_once(piece)
            kept += len(piece.data)
            if (piece.kind < layout.USER_RECORDS).any() or kept > _BEGINNING:
                break
        if not self._header.events.all:
            raise UnreadableError("there are no events in this recording", file=self.name)

    def _read_at_once(self, piece: RecordChunk) -> None:
        for i in np.flatnonzero(np.isin(piece.kind, _AT_ONCE)).tolist():
            place = int(piece.offset[i])
            record = piece.data[place : place + int(piece.size[i])]
            self._read_header_record(int(piece.kind[i]), int(piece.misc[i]), record, place)

    def _read_header_record(self, kind: int, misc: int, record: memoryview, place: int) -> None:
        header = self._header
        if kind == layout.HEADER_ATTR:
            size = int.from_bytes(record[12:16], header.byteorder) or layout.ATTR_SMALLEST
            ids = record[8 + size :]
            header.add_attr(record[8 : 8 + size], ids[: len(ids) & ~7], place)
        elif kind == layout.HEADER_FEATURE and len(record) >= 16:
            feature = int.from_bytes(record[8:16], header.byteorder)
            read_feature(header, feature, record[16:], place)
        elif kind == layout.HEADER_BUILD_ID:
            header.add_build_id(misc, record)
        elif kind == layout.EVENT_UPDATE and len(record) > 24:
            header.update_event(record)

    def batches(self) -> Iterator[RecordedBatch]:
        """All samples, in the order of their times as far as the recording allows it; this can be done once."""
        if self._read:
            raise ArgumentError("the recording has been read; open it again")
        self._read = True
        while self._begun:
            yield from self._take(self._begun.pop(0))
        for piece in self._pieces:
            self._read_at_once(piece)
            yield from self._take(piece)
        yield from self._deliver(self._waiting.end())
        self._report()

    def _take(self, piece: RecordChunk) -> Iterator[RecordedBatch]:
        """Records as they come in; what is delivered meanwhile."""
        rows = self._rows(piece)
        if len(rows[0]):
            self._source.latest = int(rows[0].time.max())
        # The rounds of one of several files say nothing of the others.
        rounds = (
            np.flatnonzero(piece.kind == layout.FINISHED_ROUND) if not self._source.is_merged else np.zeros(0, np.int64)
        )
        # The rounds of one piece can be taken as two: the last, and all before it.
        kept, begin = rows[1], 0
        for number in rounds[-2:].tolist():
            end = int(np.searchsorted(kept, number))
            self._waiting.add(rows[0][begin:end])
            if number == rounds[-1]:
                yield from self._deliver(self._waiting.end_round())
            else:
                self._waiting.pass_round()
            begin = end
        self._waiting.add(rows[0][begin:])
        yield from self._deliver(self._waiting.make_room())
        self._waiting.forget()

    def _rows(self, piece: RecordChunk) -> tuple[Records, I64]:
        """The records of a piece that matter, and their numbers in it; the others are counted."""
        kind = piece.kind
        self.counts.records += len(kind)
        events = self._header.events
        ids, event_of_id = events.lookup
        time_at, time_back = events.times
        first = events.all[0]
        event, time = identify(
            piece.words, self._swapped, kind, piece.offset, piece.size, ids, event_of_id,
            first.id_at, first.id_back, time_at, time_back,
        )  # fmt: skip
        unknown = ((kind > layout.LAST_KERNEL_RECORD) & (kind < layout.USER_RECORDS)) | (kind == 0)
        unknown |= kind > layout.LAST_USER_RECORD
        self.counts.unknown_records += int(unknown.sum())
        sampled = kind == layout.SAMPLE
        self.counts.unknown_ids += int((sampled & (event < 0)).sum())
        self._count_lost(piece)
        self.counts.damaged += self._deferred.take(piece)
        kept = np.flatnonzero((sampled & (event >= 0)) | np.isin(kind, _STATE))
        buffer = np.full(len(kept), self._waiting.add_buffer(piece), np.int32)
        rows = Records(
            kind[kept], piece.misc[kept], piece.offset[kept], piece.size[kept], event[kept], time[kept], buffer
        )
        return rows, kept

    def _count_lost(self, piece: RecordChunk) -> None:
        for i in np.flatnonzero(np.isin(piece.kind, (layout.LOST, layout.LOST_SAMPLES))).tolist():
            place = int(piece.offset[i]) + (16 if piece.kind[i] == layout.LOST else 8)
            if place + 8 > int(piece.offset[i] + piece.size[i]):
                self.counts.damaged += 1
                continue
            number = int.from_bytes(piece.data[place : place + 8], self.byteorder)
            if piece.kind[i] == layout.LOST:
                self.counts.lost += number
            else:
                self.counts.lost_samples += number

    def _deliver(self, rows: Records | None) -> Iterator[RecordedBatch]:
        """Records in order, as batches."""
        if rows is None:
            return
        sampled = rows.kind == layout.SAMPLE
        ends = [*(np.flatnonzero(np.diff(_grouped(rows, sampled))) + 1).tolist(), len(rows)]
        begin = 0
        for end in ends:
            batch = self._batch(rows[begin:end], sampled[begin:end])
            begin = end
            if batch is not None:
                yield batch

    def _batch(self, rows: Records, sampled: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> RecordedBatch | None:
        chosen = np.flatnonzero(sampled)
        others = np.flatnonzero(~sampled)
        samples = rows[chosen]
        self._state.trampolines.renew()
        if not len(chosen):
            self._apply(rows[others], np.zeros(len(others), np.int64), None, samples.time)
            return None
        columns, words, data = self._extractor.read(samples, self._waiting.buffers)
        threads = Threads(self._state, columns.pid, columns.tid)
        self._apply(rows[others], np.searchsorted(chosen, others), threads, samples.time)
        event, comm, space = samples.event, threads.comm, threads.space
        self.counts.samples += len(chosen)
        bare = (layout.SampleStatus.NO_REGISTERS, layout.SampleStatus.NO_PROGRAM)
        self.counts.without_registers += int(np.isin(columns.status, bare).sum())
        self.counts.narrow += int((columns.status == layout.SampleStatus.NARROW).sum())
        damaged = columns.status == layout.SampleStatus.DAMAGED
        if damaged.any():
            self.counts.damaged += int(damaged.sum())
            fine = np.flatnonzero(~damaged)
            keep(columns, fine)
            event, comm, space = event[fine], comm[fine], space[fine]
        counted_with = self._groups.samples(words, columns, event)
        if counted_with is not None:
            rows_of, event, period = counted_with
            keep(columns, rows_of)
            columns.period, comm, space = period, comm[rows_of], space[rows_of]
        return self._extractor.batch(columns, words, data, (event, comm, space), self._deferred)

    def _apply(self, rows: Records, before: I64, threads: Threads | None, times: U64) -> None:
        """Take in what happened between samples, which have these times.

        `before` says how many samples came before each record.
        """
        done = 0
        for i in range(len(rows)):
            position = int(before[i])
            if threads is not None and position > done:
                self._fill(threads, times, done, position)
                done = position
            place = int(rows.offset[i])
            record = self._waiting.buffers[int(rows.buffer[i])].record(place, int(rows.size[i]))
            pid = self._state.apply(int(rows.kind[i]), int(rows.misc[i]), record)
            if threads is not None and pid is not None:
                threads.changed(pid)
        if threads is not None:
            self._fill(threads, times, done, len(times))

    def _fill(self, threads: Threads, times: U64, begin: int, end: int) -> None:
        """Look up the threads of some samples, between which code may be replaced by other."""
        while begin < end and (due := self._state.due) is not None and due <= times[end - 1]:
            middle = begin + int(np.searchsorted(times[begin:end], np.uint64(due)))
            threads.fill(begin, middle)
            threads.changed(self._state.replace_code())
            begin = middle
        threads.fill(begin, end)

    def _report(self) -> None:
        """What the counts mean for who reads the results."""
        self.counts.damaged += self._state.damaged
        self.troubles += self._state.troubles
        self.counts.early = self._waiting.early
        self.counts.unknown_ids += self._groups.unknown
        if self.counts.damaged:
            records = counted(self.counts.damaged, "record")
            self.troubles.append(f"the contents of {records} contradict their size; they are left out")
        if self._state.spaces.full:
            self.troubles.append("mappings change so often that the later changes are not followed")
        if self._state.forgotten:
            self.troubles.append("there are too many processes, threads or files to follow all of them")


def _grouped(rows: Records, sampled: Bools) -> I64:
    """The number of the batch that each record goes into.

    A batch ends after a number of samples. Samples that are in several buffers are copied, so the size of such a batch
    is bounded too; a long rest in the last buffer is not copied with them.
    """
    before: I64 = np.cumsum(sampled) - sampled
    group: I64 = before // _SAMPLES
    others = np.flatnonzero(rows.buffer != rows.buffer[-1:])
    if not len(others):
        return group
    sizes = np.where(sampled, rows.size, 0)
    sizes_before = np.cumsum(sizes) - sizes
    end = int(others[-1]) + 1
    if sizes[end:].sum() < _WORTH:
        end = len(rows)
    group[:end] = np.maximum(group[:end], sizes_before[:end] // _BYTES)
    group[end:] = group[end - 1] + 1 + (before[end:] - before[end : end + 1]) // _SAMPLES
    return group
