"""Both ends of a deep stack: its top and bottom frames, and the number of those between.

What a capture needs that has little room: where the program is and how it came there is at the ends, and a recursion
that went too deep is between.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from walkback.arrays import I64, U8, U64, Numbers
from walkback.cbf.backtraces import as_offsets
from walkback.cbf.layout import Kind
from walkback.errors import ArgumentError

_MOST = 2**64 - 1


class Ends:
    """Takes the frames of one stack as they are found, innermost first, and keeps no more than it will give."""

    def __init__(self, top: int, bottom: int) -> None:
        if top < 0 or bottom < 0:
            message = "a number of frames cannot be negative"
            raise ArgumentError(message)
        self.omitted = 0
        """Frames that were left out up to now."""
        self._most_on_top = top
        self._top: list[tuple[int, int]] = []
        self._bottom: deque[tuple[int, int]] = deque(maxlen=bottom)

    def add(self, kind: int, value: int) -> None:
        """The next frame outwards; one that is an omission itself counts as those that it stands for."""
        if len(self._top) < self._most_on_top:
            self._top.append((kind, value))
            return
        left_out = (kind, value)
        if self._bottom.maxlen:
            kept = self._bottom[0] if len(self._bottom) == self._bottom.maxlen else None
            self._bottom.append(left_out)
            if kept is None:
                return
            left_out = kept
        self.omitted += left_out[1] if left_out[0] == Kind.OMIT else 1

    def frames(self) -> list[tuple[int, int]]:
        """The top frames, one omission if anything was left out, and the bottom frames."""
        between = [(Kind.OMIT, min(self.omitted, _MOST))] if self.omitted else []
        return [*self._top, *between, *self._bottom]


def kept_ends(first: Numbers, kind: Numbers, value: Numbers, top: int, bottom: int) -> tuple[I64, U8, U64]:
    """The same of many stacks in columns: stack i has the frames from `first[i]` up to `first[i + 1]`."""
    if top < 0 or bottom < 0:
        message = "a number of frames cannot be negative"
        raise ArgumentError(message)
    first = as_offsets(first, min(len(kind), len(value)))
    sizes = np.diff(first)
    long = sizes > top + bottom
    # Places of frames that are left out: from the top ones on, and up to the bottom ones.
    begin = np.where(long, first[:-1] + top, 0)
    end = np.where(long, first[1:] - bottom, 0)
    stands_for = np.where(np.asarray(kind) == Kind.OMIT, np.asarray(value, np.uint64), np.uint64(1))
    omitted = _sums(stands_for, begin, end)
    # A stack where nothing was left out but omissions of no frames gets none.
    marked = long & (omitted > 0)
    edges = np.zeros(len(kind) + 1, np.int64)
    edges[begin[long]] += 1
    edges[end[long]] -= 1
    kept = np.cumsum(edges[:-1]) == 0
    kept[begin[marked]] = True
    new_kind = np.array(kind, np.uint8)
    new_value = np.array(value, np.uint64)
    new_kind[begin[marked]] = Kind.OMIT
    new_value[begin[marked]] = omitted[marked]
    places = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept)))
    inside = kept.copy()
    inside[: first[0]] = False
    inside[first[-1] :] = False
    return places[first] - places[first[0]], new_kind[inside], new_value[inside]


def _sums(numbers: U64, begin: I64, end: I64) -> U64:
    """The sum between each two places; more than 64 bits can say is their most."""
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(numbers, dtype=np.uint64)))
    rough = np.concatenate((np.zeros(1), np.cumsum(numbers.astype(np.float64))))
    found: U64 = sums[end] - sums[begin]
    for number in np.flatnonzero(rough[end] - rough[begin] > 2.0**62).tolist():
        found[number] = min(sum(numbers[begin[number] : end[number]].tolist()), _MOST)
    return found
