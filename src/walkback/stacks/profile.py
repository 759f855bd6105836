"""What all formats are written from: distinct frames, distinct stacks of them, and how often which stack was seen.

Formats that sum up take a `Profile`; formats that list each sample take one `SampleBatch` after the other, and so
never need all samples at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Self

import numpy as np

from walkback.base.arrays import I64, U8, U64, Bools, Numbers, distinct, runs
from walkback.base.columns import Columnar, NamedColumns
from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.base.text import base_name
from walkback.stacks.distinct import Distinct
from walkback.stacks.stacks import END_WORDS, End

_CLOCK = re.compile(r"(?:cpu-clock|task-clock|off-cpu|stops)(:|$)")
"""The events whose periods are times."""
_LOW_32 = np.uint64(2**32 - 1)


@dataclass(slots=True, repr=False)
class NamedFrames(OneLine):
    """Distinct frames, by number; while a recording is read they may become more."""

    symbol: list[str | None]
    module: list[str]
    """The path of the file, a name in brackets as `[kernel.kallsyms]`, or nothing."""
    address: U64
    """The lookup address as the module's file counts; where there is no module as it is."""
    kernel: Bools
    offset: U64 | None = None
    """Of the address from the start of its symbol."""
    file: list[str | None] | None = None
    """The source file."""
    line: list[int] | None = None
    """In the source file; 0 where it is not known."""
    inlined: Bools | None = None
    """Which are calls that are inlined in another frame at the same address."""

    def __len__(self) -> int:
        return len(self.symbol)

    @property
    def is_inlined(self) -> Bools:
        """Which are calls that are inlined in another frame: in the one before them that is none."""
        return np.zeros(len(self), np.bool_) if self.inlined is None else self.inlined

    def label(self, number: int) -> str:
        """The name to show for a frame."""
        symbol = self.symbol[number]
        if symbol:
            return symbol
        module = base_name(self.module[number])
        return module if module.startswith("[") else f"[{module or 'unknown'}]"

    def labels(self) -> list[str]:
        """The names to show for all frames."""
        return [symbol or self.label(number) for number, symbol in enumerate(self.symbol)]

    def with_markers(self, labels: Sequence[str]) -> NamedFrames:
        """These frames, and after them some that stand for no code."""
        more = len(labels)
        zeros = np.zeros(more, np.uint64)
        return NamedFrames(
            [*self.symbol, *labels],
            [*self.module, *[""] * more],
            np.concatenate((self.address, zeros)),
            np.concatenate((self.kernel, np.zeros(more, np.bool_))),
            None if self.offset is None else np.concatenate((self.offset, zeros)),
            None if self.file is None else [*self.file, *[None] * more],
            None if self.line is None else [*self.line, *[0] * more],
            None if self.inlined is None else np.concatenate((self.inlined, np.zeros(more, np.bool_))),
        )


def unit_of_periods(events: Iterable[str]) -> str:
    """What the periods of samples of these events count, added up."""
    units = {"nanoseconds" if _CLOCK.match(event) else event for event in events}
    return units.pop() if len(units) == 1 else "weight"


@dataclass(frozen=True, slots=True, repr=False)
class SampleBatch(OneLine):
    """Some samples with the frames of each, in columns."""

    frames: NamedFrames
    """All distinct frames that there are so far; later batches may have more, with the same numbers for these."""
    comms: Sequence[str]
    events: Sequence[str]
    pid: Numbers
    tid: Numbers
    time: U64
    """In nanoseconds."""
    period: U64
    comm: Numbers
    end: U8
    """An `End` for each sample."""
    first: I64
    """Where the frames of each sample begin; one more than there are samples."""
    frame: Numbers
    """The number of each frame, innermost first."""
    pc: U64
    lookup: U64
    how: U8
    """A `How` for each frame."""
    event: Numbers | None = None
    cpu: Numbers | None = None

    def __len__(self) -> int:
        return len(self.pid)


class Totals:
    """Sums samples: a row for each distinct comm, stack and end, and if wanted process and thread."""

    def __init__(self, *, threads: bool = False) -> None:
        self._threads = threads
        self._distinct = Distinct()
        self._weight = np.zeros(256, np.uint64)
        self._count = np.zeros(256, np.uint64)

    def __len__(self) -> int:
        return len(self._distinct)

    def add(
        self,
        comm: Numbers,
        stack: Numbers,
        weight: Numbers | None = None,
        *,
        end: Numbers | None = None,
        pid: Numbers | None = None,
        tid: Numbers | None = None,
    ) -> None:
        """Add samples; without weights each weighs 1, and without ends all are complete."""
        key = np.empty((len(stack), 3 if self._threads else 2), np.uint64)
        key[:, 0] = comm.astype(np.uint64) << np.uint64(8)
        if end is not None:
            key[:, 0] |= end.astype(np.uint64)
        key[:, 1] = stack
        if self._threads:
            key[:, 2] = _halves(pid, tid, len(stack))
        rows = self._distinct.add_records(key)
        if len(self) > len(self._weight):
            more = np.zeros(2 * len(self) - len(self._weight), np.uint64)
            self._weight = np.concatenate((self._weight, more))
            self._count = np.concatenate((self._count, more))
        np.add.at(self._count, rows, np.uint64(1))
        np.add.at(self._weight, rows, np.uint64(1) if weight is None else weight.astype(np.uint64))

    @property
    def comm(self) -> I64:
        """The number of the comm of each row."""
        return (self._column(0) >> np.uint64(8)).astype(np.int64)

    @property
    def end(self) -> U8:
        """The `End` of each row."""
        return (self._column(0) & np.uint64(255)).astype(np.uint8)

    @property
    def stack(self) -> I64:
        """The number of the stack of each row."""
        return self._column(1).astype(np.int64)

    @property
    def pid(self) -> I64 | None:
        """The process of each row, if that was wanted."""
        return _signed(self._column(2) >> np.uint64(32)) if self._threads else None

    @property
    def tid(self) -> I64 | None:
        """The thread of each row, if that was wanted."""
        return _signed(self._column(2) & _LOW_32) if self._threads else None

    @property
    def weight(self) -> U64:
        """The sum of the weights of each row."""
        return self._weight[: len(self)].copy()

    @property
    def count(self) -> U64:
        """The number of samples of each row."""
        return self._count[: len(self)].copy()

    def _column(self, number: int) -> U64:
        return self._distinct.table[:, number] if len(self) else np.zeros(0, np.uint64)


def _halves(high: Numbers | None, low: Numbers | None, count: int) -> U64:
    """Two columns of 32 bits in one of 64."""
    columns = [np.zeros(count, np.uint64) if one is None else one.astype(np.uint64) & _LOW_32 for one in (high, low)]
    return columns[0] << np.uint64(32) | columns[1]


def _signed(column: U64) -> I64:
    """Thread numbers as they were before 32 bits of them were kept: some sources have -1."""
    return column.astype(np.uint32).view(np.int32).astype(np.int64)


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(OneLine):
    """Samples in columns, for the formats that show time and sum nothing up."""

    pid: Numbers
    tid: Numbers
    time: U64
    """In nanoseconds."""
    weight: U64
    comm: Numbers
    stack: Numbers
    end: U8

    def __len__(self) -> int:
        return len(self.pid)


@dataclass(frozen=True, slots=True)
class CodeMapping:
    """Where a file's code was mapped."""

    file: str
    """As frames name their module."""
    build_id: bytes | None = None
    start: int = 0
    """The addresses are the file's own, as those of frames are."""
    limit: int = 0
    """The first address behind it; 0 where that is not known."""
    offset: int = 0
    """The place in the file that is mapped at `start`."""


@dataclass(frozen=True, slots=True, repr=False)
class Profile(OneLine, Columnar):
    """Samples, summed up: a row for each distinct comm, stack and end, and perhaps process and thread.

    >>> profile = walkback.unwind("perf.data")
    >>> profile.unit, int(profile.weight.sum())
    ('samples', 6)
    """

    frames: NamedFrames
    stack_first: I64
    """Where each distinct stack begins among `stack_frames`; one more than there are stacks."""
    stack_frames: Numbers
    """Numbers of frames, innermost first."""
    comms: Sequence[str]
    comm: Numbers
    stack: Numbers
    end: U8
    weight: U64
    count: U64
    """Samples."""
    pid: Numbers | None = None
    tid: Numbers | None = None
    unit: str = "samples"
    """What weights count: "samples", "nanoseconds", the name of an event, or "weight" for what has several units."""
    title: str = ""
    """What was recorded, for a person."""
    start: int = 0
    """When the recording began, in nanoseconds since 1970; 0 where that is not known."""
    duration: int = 0
    """In nanoseconds; 0 where it is not known."""
    period: int = 0
    """What a sample should weigh; 0 where that is not known."""
    mappings: Sequence[CodeMapping] = ()
    """Where that is known; the program's own comes first."""
    timeline: Timeline | None = field(default=None, repr=False)

    @classmethod
    def of(cls, frames: NamedFrames, stacks: Distinct, comms: Sequence[str], totals: Totals) -> Self:
        """What was summed up; the stacks are lists of numbers of frames."""
        return cls(
            frames,
            stacks.first,
            stacks.words.astype(np.int64),
            comms,
            totals.comm,
            totals.stack,
            totals.end,
            totals.weight,
            totals.count,
            totals.pid,
            totals.tid,
        )

    def columns(self) -> NamedColumns:
        """A row each: the process, the stack with the outermost function first, how it ends, weight and samples."""
        labels = self.frames.labels()
        frames, first = self.stack_frames.tolist(), self.stack_first.tolist()
        stacks = [";".join(labels[frame] for frame in reversed(frames[start:end])) for start, end in pairwise(first)]
        return NamedColumns(
            process=np.array([*self.comms, None], object)[self.comm],
            stack=np.array([*stacks, None], object)[self.stack],
            end=np.array([END_WORDS[End(end)] for end in self.end.tolist()], object),
            weight=self.weight,
            count=self.count,
        )

    @property
    def incomplete(self) -> Bools:
        """Of each row whether its stack is known to go on where it ends."""
        found: Bools = self.end != End.COMPLETE
        return found

    def marked(self) -> Self:
        """The same with an outermost frame such as `[incomplete: no-table]` for stacks that are not complete."""
        ends = self.end if self.timeline is None else np.concatenate((self.end, self.timeline.end))
        used = distinct(ends[ends != End.COMPLETE]).tolist()
        if not used:
            return self
        frame_of_end = np.full(256, -1, np.int64)
        frame_of_end[used] = len(self.frames) + np.arange(len(used))
        pairs = Distinct()
        rows = pairs.add_records(np.stack((self.stack.astype(np.uint64), self.end), axis=1))
        timeline = self.timeline
        if timeline is not None:
            its = pairs.add_records(np.stack((timeline.stack.astype(np.uint64), timeline.end), axis=1))
            timeline = replace(timeline, stack=its)
        table = pairs.table.astype(np.int64)
        first, frames = _with_last(self.stack_first, self.stack_frames, table[:, 0], frame_of_end[table[:, 1]])
        frames_of_all = self.frames.with_markers([incomplete_label(end) for end in used])
        return replace(
            self, frames=frames_of_all, stack_first=first, stack_frames=frames, stack=rows, timeline=timeline
        )


def incomplete_label(end: int) -> str:
    """The name of the outermost frame of a stack that ended there."""
    return f"[incomplete: {END_WORDS[End(end)] if end in END_WORDS else 'unknown'}]"


def chosen_stacks(first: I64, frames: Numbers, stacks: I64) -> tuple[I64, Numbers]:
    """Some of the stacks, in the order given."""
    sizes = (first[1:] - first[:-1])[stacks]
    new_first = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    return new_first, frames[runs(first[:-1][stacks], sizes)]


def _with_last(first: I64, frames: Numbers, stacks: I64, last: I64) -> tuple[I64, I64]:
    """Some of the stacks, each with one more frame at its end where that is not -1."""
    old_first, old = chosen_stacks(first, frames, stacks)
    more = last >= 0
    shift = np.concatenate((np.zeros(1, np.int64), np.cumsum(more, dtype=np.int64)))
    new_first = np.add(old_first, shift)
    new = np.empty(int(new_first[-1]), np.int64)
    new[runs(new_first[:-1], np.diff(old_first))] = old
    new[new_first[1:][more] - 1] = last[more]
    return new_first, new
