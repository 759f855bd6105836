"""Some samples of a recording as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from walkback.base.arch import AARCH64, AMD64, S390X, Machine
from walkback.base.arrays import I32, I64, U8, U16, U64, Bools
from walkback.base.dataclass import dataclass
from walkback.capture.perfdata._records import gather
from walkback.capture.perfdata._samples import chains, extract
from walkback.capture.perfdata.deferred import DeferredChains
from walkback.capture.perfdata.events import Event
from walkback.capture.perfdata.layout import SampleStatus
from walkback.capture.perfdata.order import Records
from walkback.capture.perfdata.source import RecordChunk
from walkback.walking.samples import COLUMNS, PC, Memory, Samples


@dataclass(frozen=True, slots=True)
class RecordedBatch:
    """Samples in the order of their times."""

    samples: Samples
    """A sample without user registers has none known."""
    pid: I32
    tid: I32
    time: U64
    """In nanoseconds; 0 where none was recorded."""
    period: U64
    cpu: I32
    """-1 where none was recorded."""
    event: I32
    """The number of each one's event in `Recording.events`."""
    comm: I32
    """The number of each thread's name in `Recording.comms`."""
    chain_first: I64
    """Where the call chain of each sample begins; one more than there are samples."""
    chain_pc: U64
    """The recorded call chains, innermost first: of the kernel, and of the program where that was recorded so. Where
    the event records no call chains there is the address that was interrupted."""
    chain_kernel: Bools
    """Which of these addresses are the kernel's."""
    in_kernel: Bools
    """Which samples are of threads of the kernel, and have its call chain: their whole stack."""

    def __len__(self) -> int:
        return len(self.pid)


class SampleColumns:
    """Where the fields of samples go."""

    def __init__(self, count: int) -> None:
        self.pid: I32 = np.full(count, -1, np.int32)
        self.tid: I32 = np.full(count, -1, np.int32)
        self.time: U64 = np.zeros(count, np.uint64)
        self.period: U64 = np.zeros(count, np.uint64)
        self.cpu: I32 = np.full(count, -1, np.int32)
        self.ip: U64 = np.zeros(count, np.uint64)
        self.registers: U64 = np.zeros((count, COLUMNS), np.uint64)
        self.known: U64 = np.zeros(count, np.uint64)
        self.stack_start: U64 = np.zeros(count, np.uint64)
        self.stack_size: U64 = np.zeros(count, np.uint64)
        self.stack_offset: I64 = np.zeros(count, np.int64)
        self.cut: U64 = np.zeros(count, np.uint64)
        self.chain_at: I64 = np.zeros(count, np.int64)
        self.chain_length: I64 = np.zeros(count, np.int64)
        self.reading_at: I64 = np.full(count, -1, np.int64)
        self.misc: U16 = np.zeros(count, np.uint16)
        self.status: U8 = np.zeros(count, np.uint8)


def _register_columns(machine: Machine) -> I64:
    """For each bit of `sample_regs_user` the column of the register; -1 for those that no table speaks of."""
    columns = np.full(64, -1, np.int64)
    if machine is AARCH64:
        columns[: PC + 1] = np.arange(PC + 1)
    elif machine is S390X:
        columns[:16] = np.arange(16)
        names = machine.register_names
        columns[16:32] = [names.index(f"f{number}") for number in range(16)]
        columns[33] = PC
    else:
        order = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp")
        columns[: len(order)] = [AMD64.register_names.index(name) for name in order]
        columns[8] = PC
        columns[16:24] = np.arange(8, 16)
    return columns


class Extractor:
    """Makes columns of samples."""

    def __init__(self, machine: Machine, events: Sequence[Event], *, big: bool) -> None:
        self._events = events
        self._big = big
        self._sp = machine.sp
        self._columns = _register_columns(machine)
        self._copy_of_pc = machine.ra if machine is AMD64 else -1

    def read(
        self, rows: Records, buffers: Mapping[int, RecordChunk]
    ) -> tuple[SampleColumns, memoryview | U64, memoryview]:
        """The fields of samples, and the buffer that holds them, as words and as bytes."""
        numbers = rows.buffers()
        if len(numbers) == 1 and len(buffers[numbers[0]].data):
            data, offset = buffers[numbers[0]].data, rows.offset
            words: memoryview | U64 = buffers[numbers[0]].words
        else:
            padded = (rows.size + 7) & ~7
            offset = np.cumsum(padded) - padded
            copy = np.empty(int(padded.sum()) >> 3, np.uint64)
            for number in numbers:
                of_it = np.flatnonzero(rows.buffer == number)
                if len(buffers[number].data):
                    gather(buffers[number].words, rows.offset[of_it], rows.size[of_it], offset[of_it], copy)
                else:
                    _read_again(buffers[number], rows, of_it, offset, copy)
            words, data = copy, copy.view(np.uint8).data
        out = SampleColumns(len(rows))
        out.misc = rows.misc
        shapes: dict[tuple[int, int, int, int, int], list[int]] = {}
        for number in np.flatnonzero(np.bincount(rows.event)).tolist():
            shapes.setdefault(self._events[number].shape, []).append(number)
        for shape, events in shapes.items():
            which = np.flatnonzero(np.isin(rows.event, events))
            extract(
                words, self._big, which, offset, rows.size, shape, self._columns, self._sp,
                self._copy_of_pc, out,
            )  # fmt: skip
        return out, words, data

    def batch(
        self,
        columns: SampleColumns,
        words: memoryview | U64,
        data: memoryview,
        numbers: tuple[I32, I32, I32],
        deferred: DeferredChains,
    ) -> RecordedBatch:
        """A batch of what was read; `numbers` are those of events, names and spaces."""
        event, comm, space = numbers
        found = chains(words, self._big, columns.misc, columns.ip, columns.chain_at, columns.chain_length)
        found = deferred.completed(words, columns.chain_at, columns.chain_length, found)
        segment = np.arange(len(columns.pid), dtype=np.int64)
        samples = Samples(
            registers=columns.registers,
            known=columns.known,
            space=space,
            memory=Memory(data, columns.stack_start, columns.stack_size, columns.stack_offset),
            first_segment=segment,
            end_segment=segment + (columns.stack_size > 0),
            cut=columns.cut,
        )
        return RecordedBatch(
            samples, columns.pid, columns.tid, columns.time, columns.period, columns.cpu, event, comm,
            *found, _in_kernel(columns, *found),
        )  # fmt: skip


def _in_kernel(columns: SampleColumns, chain_first: I64, _: U64, chain_kernel: Bools) -> Bools:
    """Which samples have all of their stack in the kernel's call chain."""
    has_none: Bools = (columns.status == SampleStatus.NO_PROGRAM) & (columns.chain_length > 0)
    if has_none.any():
        owner = np.repeat(np.arange(len(has_none)), np.diff(chain_first))
        has_none[owner[~chain_kernel]] = False
    return has_none


def _read_again(piece: RecordChunk, rows: Records, chosen: I64, offset: I64, copy: U64) -> None:
    """Bring records back that were kept in their file alone."""
    there = copy.view(np.uint8).data
    for i in chosen.tolist():
        place, size = int(offset[i]), int(rows.size[i])
        there[place : place + size] = piece.record(int(rows.offset[i]), size)


def keep(columns: SampleColumns, chosen: I64) -> None:
    """Leave the others out."""
    for name, column in vars(columns).items():
        setattr(columns, name, column[chosen])
