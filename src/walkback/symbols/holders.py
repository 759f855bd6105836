"""Which of many intervals holds each of many addresses, the innermost first.

The intervals are ordered by their first addresses. Of those that hold an address the innermost is the one that begins
last, so what is wanted is the last place in a column, not behind a given one, whose value is above a bound. A tree of
maxima finds it for all addresses at once, in steps that grow with the logarithm of the column however it is nested.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U64


class LastAbove:
    """Over one column of values."""

    def __init__(self, values: U64) -> None:
        self._levels = [values]
        while len(self._levels[-1]) > 1:
            below = self._levels[-1]
            above = below[::2].copy()
            pairs = len(below) // 2
            np.maximum(above[:pairs], below[1::2], out=above[:pairs])
            self._levels.append(above)

    def find(self, up_to: I64, bound: U64) -> I64:
        """For each question the last row, not behind `up_to`, whose value is above `bound`; -1 if there is none."""
        found_level = np.full(len(up_to), -1, np.int64)
        place = np.full(len(up_to), -1, np.int64)
        asked = np.flatnonzero(up_to >= 0)
        at = up_to[asked]
        for level, maxima in enumerate(self._levels):
            # Blocks 0 to `at` of this level are to be searched. An even one stands alone in the block above.
            here = ((at & 1) == 0) & (maxima[at] > bound[asked])
            found_level[asked[here]] = level
            place[asked[here]] = at[here]
            at = np.where((at & 1) == 0, at - 1, at)
            onward = ~here & (at >= 0)
            asked, at = asked[onward], at[onward] >> 1
            if not len(asked):
                break
        for level in range(len(self._levels) - 1, 0, -1):
            chosen = np.flatnonzero(found_level >= level)
            if len(chosen):
                place[chosen] = self._descend(level - 1, place[chosen], bound[chosen])
        return place

    def _descend(self, level: int, place: I64, bound: U64) -> I64:
        """The later of the two blocks below each that has a value above the bound."""
        maxima = self._levels[level]
        right = 2 * place + 1
        inside = np.minimum(right, len(maxima) - 1)
        return np.where((right < len(maxima)) & (maxima[inside] > bound), right, 2 * place)
