"""Ranges made disjoint and put in order, and what is read to find one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Self

import numpy as np

from walkback.base.arrays import I64, U32, U64
from walkback.base.dataclass import dataclass

_LAST = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Pieces:
    """Disjoint intervals in order, each with the number of the range that holds in it."""

    starts: U64
    lasts: U64
    """The last address of each: an end can be one more than 64 bits hold."""
    ranges: I64

    @classmethod
    def of(cls, starts: U64, sizes: U64, ranges: I64) -> Self:
        """Of overlapping ranges the one that starts last holds, of those with one start the last given."""
        order = np.argsort(starts, kind="stable")
        order = order[sizes[order] > 0]
        starts, sizes, ranges = starts[order], sizes[order], ranges[order].astype(np.int64)
        lasts = starts + np.minimum(sizes - np.uint64(1), np.uint64(_LAST) - starts)
        if np.any(lasts[:-1] >= starts[1:]):
            starts, lasts, ranges = _without_overlap(starts, lasts, ranges)
        return cls(starts, lasts, ranges)


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """What a search reads of pieces and their ranges: for one address hardly more than a cache line each."""

    entries: U64
    """For each piece: its start; the start of its range; the number of the range, shifted by 32 bits, and how many rows
    that has; its first row, also shifted, and its block."""
    lasts: U64
    directory: U32
    """For each of equally wide buckets over the addresses the first piece that ends in it or later; and one more."""
    shift: int
    """Bits of a bucket's width."""

    @classmethod
    def of(cls, pieces: Pieces, range_start: U64, first_row: I64, rows: I64, block: U32) -> Self:
        """Of pieces, with the columns of all ranges. No table has 2^32 ranges or rows."""
        of_range = (column[pieces.ranges].astype(np.uint64) for column in (rows, first_row, block))
        rows_here, first_here, block_here = of_range
        high = np.uint64(32)
        columns = (
            pieces.starts,
            range_start[pieces.ranges],
            pieces.ranges.astype(np.uint64) << high | rows_here,
            first_here << high | block_here,
        )
        directory, shift = directory_of(pieces.starts, pieces.lasts, 2 * len(pieces.starts))
        return cls(np.column_stack(columns), pieces.lasts, directory, shift)


def directory_of(starts: U64, lasts: U64, buckets: int) -> tuple[U32, int]:
    """For equally wide buckets of addresses, the first interval that ends in each or later; and their width in bits.

    There are about `buckets` of them. Intervals are disjoint and in order; their number follows the last bucket.
    """
    if not len(starts):
        return np.zeros(2, np.uint32), 0
    span = int(lasts[-1]) - int(starts[0])
    shift = (span // buckets).bit_length()
    edges = starts[0] + (np.arange((span >> shift) + 1, dtype=np.uint64) << np.uint64(shift))
    return np.append(np.searchsorted(lasts, edges), len(lasts)).astype(np.uint32), shift


def _without_overlap(starts: U64, lasts: U64, ranges: I64) -> tuple[U64, U64, I64]:
    """Cut ranges where a later one begins, and go on with them where it ends."""
    is_behind = np.append(True, starts[1:] > np.maximum.accumulate(lasts)[:-1])
    is_alone = is_behind & np.append(is_behind[1:], True)
    others = np.flatnonzero(~is_alone)
    first, last, number = _cut(starts[others].tolist(), lasts[others].tolist())
    starts = np.concatenate((starts[is_alone], np.array(first, np.uint64)))
    order = np.argsort(starts, kind="stable")
    lasts = np.concatenate((lasts[is_alone], np.array(last, np.uint64)))
    return starts[order], lasts[order], np.concatenate((ranges[is_alone], ranges[others[list(number)]]))[order]


def _cut(starts: list[int], lasts: list[int]) -> tuple[Sequence[int], ...]:
    """The first and last addresses of the pieces of some ranges, and the numbers of these."""
    cut: list[tuple[int, int, int]] = []
    open_ranges: list[tuple[int, int]] = []  # (-number, end): the top is the one that started last
    position = 0

    def advance(to: int) -> None:
        nonlocal position
        while open_ranges and position < to:
            number, end = open_ranges[0]
            if end <= position:
                heapq.heappop(open_ranges)
                continue
            stop = min(end, to)
            cut.append((position, stop - 1, -number))
            position = stop
        position = max(position, to)

    for number, (start, last) in enumerate(zip(starts, lasts, strict=True)):
        advance(start)
        heapq.heappush(open_ranges, (-number, last + 1))
    advance(max(lasts) + 1)
    return tuple(zip(*cut, strict=True))
