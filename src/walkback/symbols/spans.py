"""Names of address ranges that came in some order and may overlap: of two the later holds."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from walkback.base.arrays import I64, U64


class SettledSpans:
    """Disjoint ranges, each with the number of the one of the given ranges that holds there."""

    def __init__(self, start: U64, end: U64) -> None:
        """The given ranges, in their order; empty ones hold nowhere."""
        self.number: I64 = np.flatnonzero(start < end)
        order = np.argsort(start[self.number], kind="stable")
        self.number = self.number[order]
        self.start, self.end = start[self.number], end[self.number]
        if len(self.start) > 1 and (self.start[1:] < self.end[:-1]).any():
            self._settle()

    def find(self, addresses: U64) -> I64:
        """For each address the number of the range that holds it, or -1."""
        if not len(self.start):
            return np.full(len(addresses), -1, np.int64)
        rows = np.searchsorted(self.start, addresses, "right") - 1
        inside = (rows >= 0) & (addresses < self.end[rows])
        return np.where(inside, self.number[rows], -1)

    def _settle(self) -> None:
        """Cut what overlaps into pieces; what does not is left alone."""
        reach = np.maximum.accumulate(self.end)
        begins = np.ones(len(self.start), np.bool_)
        begins[1:] = self.start[1:] >= reach[:-1]
        group = np.cumsum(begins) - 1
        alone = np.bincount(group)[group] == 1
        tangled = np.flatnonzero(~alone)
        pieces = list(_pieces(self.start[tangled].tolist(), self.end[tangled].tolist(), self.number[tangled].tolist()))
        cut_start, cut_end, cut_number = (list(column) for column in zip(*pieces, strict=True))
        start = np.concatenate([self.start[alone], np.array(cut_start, np.uint64)])
        end = np.concatenate([self.end[alone], np.array(cut_end, np.uint64)])
        number = np.concatenate([self.number[alone], np.array(cut_number, np.int64)])
        order = np.argsort(start, kind="stable")
        self.start, self.end, self.number = start[order], end[order], number[order]


def _pieces(starts: list[int], ends: list[int], numbers: list[int]) -> Iterator[tuple[int, int, int]]:
    """Start, end and number of each piece; `starts` rise. A heap has the ranges that reach over, the latest on top."""
    open_ranges: list[tuple[int, int]] = []
    position, following = 0, 0
    while following < len(starts) or open_ranges:
        while open_ranges and open_ranges[0][1] <= position:
            heapq.heappop(open_ranges)
        if not open_ranges:
            if following == len(starts):
                return
            position = max(position, starts[following])
        while following < len(starts) and starts[following] <= position:
            if ends[following] > position:
                heapq.heappush(open_ranges, (-numbers[following], ends[following]))
            following += 1
        if not open_ranges:
            continue
        latest, end = open_ranges[0]
        until = min(end, starts[following]) if following < len(starts) else end
        yield position, until, -latest
        position = until
