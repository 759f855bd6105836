"""Both ends of a deep stack: its top and bottom frames, and the number of those between.

What a capture needs that has little room: where the program is and how it came there is at the ends, and a recursion
that went too deep is between.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from walkback.base.arrays import I64, U8, U64, Numbers
from walkback.base.errors import ArgumentError
from walkback.cbf.backtraces import as_offsets, sums_between
from walkback.cbf.layout import FrameCode

_MOST = 2**64 - 1


class Ends:
    """Takes the frames of one stack as they are found, innermost first, and keeps no more than it will give.

    >>> ends = walkback.cbf.Ends(top=2, bottom=1)
    >>> for depth in range(1000):
    ...     ends.add(walkback.cbf.FrameCode.RA, 0x401000 + depth)
    >>> [(kind.name, value) for kind, value in ends.frames()]
    [('RA', 4198400), ('RA', 4198401), ('OMIT', 997), ('RA', 4199399)]
    """

    def __init__(self, top: int, bottom: int) -> None:
        _check_numbers(top, bottom)
        self.omitted = 0
        """Frames that were left out up to now."""
        self._most_on_top = top
        self._top: list[tuple[int, int]] = []
        self._bottom: deque[tuple[int, int]] = deque(maxlen=bottom)

    def __repr__(self) -> str:
        return f"Ends(top={self._most_on_top}, bottom={self._bottom.maxlen}, omitted={self.omitted})"

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
        self.omitted += left_out[1] if left_out[0] == FrameCode.OMIT else 1

    def frames(self) -> list[tuple[int, int]]:
        """The top frames, one omission if anything was left out, and the bottom frames."""
        between = [(FrameCode.OMIT, min(self.omitted, _MOST))] if self.omitted else []
        return [*self._top, *between, *self._bottom]


def kept_ends(first: Numbers, kind: Numbers, value: Numbers, top: int, bottom: int) -> tuple[I64, U8, U64]:
    """The same of many stacks in columns: stack i has the frames from `first[i]` up to `first[i + 1]`.

    >>> import numpy as np
    >>> kind, value = np.full(9, walkback.cbf.FrameCode.RA), np.arange(9)
    >>> kept = walkback.cbf.kept_ends(np.array([0, 9]), kind, value, 2, 1)
    >>> [column.tolist() for column in kept]
    [[0, 4], [2, 2, 4, 2], [0, 1, 6, 8]]
    """
    _check_numbers(top, bottom)
    first = as_offsets(first, min(len(kind), len(value)))
    sizes = np.diff(first)
    long = sizes > top + bottom
    # Places of frames that are left out: from the top ones on, and up to the bottom ones.
    begin = np.where(long, first[:-1] + top, 0)
    end = np.where(long, first[1:] - bottom, 0)
    stands_for = np.where(np.asarray(kind) == FrameCode.OMIT, np.asarray(value, np.uint64), np.uint64(1))
    omitted = sums_between(stands_for, begin, end)
    # A stack where nothing was left out but omissions of no frames gets none.
    marked = long & (omitted > 0)
    edges = np.zeros(len(kind) + 1, np.int64)
    edges[begin[long]] += 1
    edges[end[long]] -= 1
    kept = np.cumsum(edges[:-1]) == 0
    kept[begin[marked]] = True
    new_kind = np.array(kind, np.uint8)
    new_value = np.array(value, np.uint64)
    new_kind[begin[marked]] = FrameCode.OMIT
    new_value[begin[marked]] = omitted[marked]
    places = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept)))
    inside = kept.copy()
    inside[: first[0]] = False
    inside[first[-1] :] = False
    return places[first] - places[first[0]], new_kind[inside], new_value[inside]


def _check_numbers(top: int, bottom: int) -> None:
    if top < 0 or bottom < 0:
        raise ArgumentError("a number of frames cannot be negative")
