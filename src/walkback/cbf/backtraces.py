"""Backtraces as columns of runs: a run is a frame and how often it stands there.

Four bytes can repeat a frame a million times, and nine do it 2^64 times. Runs take no more room than the bytes that
they are from; who wants each frame for itself says how many at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from walkback.base.arrays import I64, U8, U64, Bools, Numbers
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, InexpressibleError
from walkback.base.findings import ByteFinding
from walkback.base.oneline import OneLine
from walkback.cbf.layout import BacktraceFault, FrameCode

MOST_FRAMES = 1 << 16
"""Frames of one backtrace that are made of its runs, if nothing else is said."""
MOST_OF_ALL = 1 << 27
"""Frames of all backtraces together."""
_KINDS = {int(kind): kind for kind in FrameCode}
_UNCOUNTABLE = 2**64 - 1
_MOST_SUM = 2**62


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Backtrace(OneLine):
    """One backtrace; to go through it gives the kind and value of each frame, made one by one.

    >>> backtrace = walkback.cbf.decode(bytes.fromhex("021a4010462035608a00"))
    >>> backtrace.frame_count, [(kind.name, hex(value)) for kind, value in backtrace]
    (3, [('PC', '0x401046'), ('RA', '0x40107b'), ('OMIT', '0x8a')])
    """

    kind: U8
    """A `FrameCode` for each run."""
    value: U64
    """The address, or the number of frames that were omitted."""
    times: U64
    """How often the frame stands there: at least once."""
    truncated: bool = False
    """Whether it is known to go on where it ends."""
    word: int = 64
    """Bits of a machine word: 16, 32 or 64."""

    @property
    def frame_count(self) -> int:
        """The number of frames, without any being made."""
        return sum(self.times.tolist())

    def __iter__(self) -> Iterator[tuple[FrameCode, int]]:
        for kind, value, times in zip(self.kind.tolist(), self.value.tolist(), self.times.tolist(), strict=True):
            if times == 1:
                yield _KINDS[kind], value
            else:
                yield from _repeated((_KINDS[kind], value), times)

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same frames, repeats counted in the same way."""
        if not isinstance(other, Backtrace):
            return NotImplemented
        return self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def _content(self) -> tuple[bytes, bytes, bytes, bool, int]:
        return self.kind.tobytes(), self.value.tobytes(), self.times.tobytes(), bool(self.truncated), self.word

    def together(self) -> Backtraces:
        """The same, as one of many."""
        first = np.array([0, len(self.kind)], np.int64)
        truncated = np.array([self.truncated])
        return Backtraces(first, self.kind, self.value, self.times, truncated, np.array([self.word], np.uint8))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Backtraces(OneLine):
    """Many backtraces. The runs of all stand one after the other; `first` says where those of each begin.

    >>> many = walkback.cbf.decode_all(bytes.fromhex("021a40104600021a40104600"))
    >>> len(many), many.frame_counts().tolist()
    (2, [1, 1])
    """

    first: I64
    """One more than there are backtraces."""
    kind: U8
    value: U64
    times: U64
    truncated: Bools
    """Of each backtrace."""
    word: U8
    """Of each backtrace: 16, 32 or 64."""
    fault: U8 | None = None
    """Of each backtrace that was read: a `BacktraceFault`, the first thing that is wrong with its bytes."""
    at: I64 | None = None
    """Where that is."""

    def __len__(self) -> int:
        return len(self.word)

    def __getitem__(self, number: int) -> Backtrace:
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} backtraces")
        number %= len(self)
        runs = slice(int(self.first[number]), int(self.first[number + 1]))
        return Backtrace(
            self.kind[runs],
            self.value[runs],
            self.times[runs],
            bool(self.truncated[number]),
            int(self.word[number]),
        )

    def __iter__(self) -> Iterator[Backtrace]:
        return (self[number] for number in range(len(self)))

    def frame_counts(self) -> U64:
        """The number of frames of each, without any being made; the largest number of 64 bits at most."""
        return sums_between(self.times, self.first[:-1], self.first[1:])

    def findings(self) -> Iterator[ByteFinding]:
        """What is wrong, of each backtrace the first thing."""
        if self.fault is None or self.at is None:
            return
        for number in np.flatnonzero(self.fault).tolist():
            yield BacktraceFault(int(self.fault[number])).at(int(self.at[number]))

    def expanded(self, limit: int = MOST_FRAMES, *, total: int = MOST_OF_ALL, cut: bool = False) -> Backtraces:
        """The same with a run for each frame.

        A backtrace of more than `limit` frames raises InexpressibleError, or with `cut` keeps its first ones and is
        truncated. So do more than `total` frames in all, `cut` or not.
        """
        counts = self.frame_counts()
        over = counts > np.uint64(min(limit, _UNCOUNTABLE))
        if over.any() and not cut:
            number = int(over.argmax())
            message = f"backtrace {number} has {int(counts[number])} frames, and {limit} are the most wanted"
            raise InexpressibleError(message)
        wanted = np.minimum(counts, np.uint64(min(limit, _UNCOUNTABLE))).astype(np.float64).sum()
        if wanted > total:
            message = f"the backtraces have {int(wanted)} frames together, and {total} are the most wanted"
            raise InexpressibleError(message)
        limit = min(limit, total, _MOST_SUM)
        # Of each run what the limit leaves; clipped first, so that sums stay small.
        clipped = np.minimum(self.times, np.uint64(limit) + np.uint64(1)).astype(np.int64)
        sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(clipped)))
        before = sums[:-1] - np.repeat(sums[self.first[:-1]], np.diff(self.first))
        times = np.clip(limit - before, 0, clipped)
        kept = np.concatenate((np.zeros(1, np.int64), np.cumsum(times)))
        return Backtraces(
            kept[self.first],
            np.repeat(self.kind, times),
            np.repeat(self.value, times),
            np.ones(int(kept[-1]), np.uint64),
            self.truncated | over,
            self.word,
            self.fault,
            self.at,
        )


def sums_between(numbers: U64, begin: I64, end: I64) -> U64:
    """The sum between each two places; the largest number of 64 bits at most."""
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(numbers, dtype=np.uint64)))
    rough = np.concatenate((np.zeros(1), np.cumsum(numbers.astype(np.float64))))
    between: U64 = sums[end] - sums[begin]
    # Sums go around without harm, but what goes around between two of them is more than 64 bits.
    for place in np.flatnonzero(rough[end] - rough[begin] > 2.0**62).tolist():
        between[place] = min(sum(numbers[begin[place] : end[place]].tolist()), _UNCOUNTABLE)
    return between


def as_offsets(first: Numbers, frames: int) -> I64:
    """Where each of many begins and the last ends, as the kernels take it; raises ArgumentError."""
    first = np.ascontiguousarray(first, np.int64)
    if not len(first) or first[0] < 0 or first[-1] > frames or (np.diff(first) < 0).any():
        raise ArgumentError("first has to rise, from 0 on, to at most the number of frames")
    return first


def _repeated(frame: tuple[FrameCode, int], times: int) -> Iterator[tuple[FrameCode, int]]:
    most = 1 << 62  # of `itertools.repeat`
    while times > most:
        yield from repeat(frame, most)
        times -= most
    yield from repeat(frame, times)
