"""The walks through the units of a file, which threads share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from walkback.base.arrays import U64, distinct, distinct_rows
from walkback.base.threads import by_threads, threads_for
from walkback.proof._walk import Walk
from walkback.proof.ranges import Units

Result = TypeVar("Result")

_AT_ONCE = 1 << 9
"""Units of a piece. Signals are answered between pieces."""


class Walks:
    """One for each thread that is worth it."""

    def __init__(self, new: Callable[[], Walk], units: Units) -> None:
        """`new` makes a walk, which has nothing in common with others but what it reads."""
        count = len(units.first) - 1
        self._pieces = [(begin, min(begin + _AT_ONCE, count)) for begin in range(0, count, _AT_ONCE)]
        self._walks = [new() for _ in range(threads_for(len(self._pieces)))]

    @property
    def first(self) -> Walk:
        """One of them."""
        return self._walks[0]

    def each(self, work: Callable[[Walk, tuple[int, int]], Result]) -> list[Result]:
        """What the work makes of all units, piece by piece; a piece begins with a unit, and ends before another."""
        return by_threads(self._walks, self._pieces, work)

    def led_to(self) -> U64:
        """The addresses that control goes to with a frame on the stack, outside of the units."""
        return distinct(np.concatenate([walk.led_to() for walk in self._walks]))

    def by_tables(self) -> U64:
        """How tables of jumps lead out of the units: rows of a range, an address, and a `Way`."""
        return distinct_rows(np.concatenate([walk.by_tables() for walk in self._walks]))
