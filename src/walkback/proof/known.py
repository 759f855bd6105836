"""What is known of the functions of a file before its code is walked through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from walkback.base.arrays import I64, U8, U16, U64, are_among, distinct, ranked
from walkback.base.bits import WORD
from walkback.base.dataclass import dataclass
from walkback.proof._scan import Scan, bits_at
from walkback.proof.ranges import Ranges, come_back, range_at
from walkback.proof.values import Back, Way

_SELDOM = 8
"""One in this number of calls of a function that does not come back may have code behind it that no jump leads to."""


def _nothing() -> U64:
    return np.zeros(0, np.uint64)


@dataclass(slots=True)
class KnownCode:
    """An element a function, in the order of addresses, and what the code says of its data."""

    functions: U64 = field(default_factory=_nothing)
    """The addresses of functions."""
    back: U8 = field(default_factory=lambda: np.zeros(0, np.uint8))
    """Whether each comes back: a `Back`."""
    written: U64 = field(default_factory=_nothing)
    """The registers that each changes, as bits, if its code is known."""
    kept: U64 = field(default_factory=_nothing)
    """Those that it stores or copies."""
    size: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    """Its bytes."""
    named: U64 = field(default_factory=_nothing)
    """The addresses of data that the code names."""
    targets: U8 = field(default_factory=lambda: np.zeros(0, np.uint8))
    """A bit for each byte of the image that is jumped to."""
    brief: U16 = field(default_factory=lambda: np.zeros(0, np.uint16))
    """For each two bytes of the image the instruction `in_brief` that begins there."""
    pointed: U64 = field(default_factory=_nothing)
    """Places in code that data points to, rising; where only symbols and calls say what functions there are."""
    returning: U64 = field(default_factory=_nothing)
    """The addresses of functions outside of the table that come back, as their calls show."""
    silent_words: U64 = field(default_factory=_nothing)
    """Where addresses of functions are that do not come back, rising."""
    highest: int = 0
    """The highest number of a register that any instruction has first."""

    def of_calls(self, targets: U64) -> U64:
        """What is known of the function at each address: a row of numbers that all together say what a call does."""
        rows = np.zeros((len(targets), 5), np.uint64)
        if len(self.functions):
            part = np.searchsorted(self.functions, targets, "right") - 1
            away = targets - self.functions[part]
            inside, begins = (part >= 0) & (away < self.size[part].astype(np.uint64)), (part >= 0) & (away == 0)
            rows[:, 0] = inside
            rows[:, 1] = np.where(begins, self.back[part] + 1, 0)
            rows[:, 2] = np.where(inside, self.written[part], 0)
            counts = begins & (self.written[part] != WORD)
            rows[:, 3] = np.where(counts, self.kept[part], 0)
            rows[:, 4] = np.where(counts, self.size[part], 0)
        return rows


def known_code(
    ranges: Ranges,
    seen: Scan,
    silent_by_name: Sequence[int],
    seldom: U64,
    keeping: U64,
    again: U64,
    beyond: U64,
    replaceable: U64,
) -> KnownCode:
    """What a first look at the ranges of a table has seen, and which functions are known by their names.

    Of functions that are `replaceable` the code says nothing.
    """
    is_replaceable = are_among(ranges.start, replaceable)
    returns = seen.returns | are_among(ranges.start, again) | is_replaceable
    may = come_back(ranges, returns, seen.ways, silent_by_name)
    by_name = np.array(silent_by_name, np.uint64)
    silent = distinct(np.concatenate((by_name, ranges.start[~may], _ends(seen, ranges.start))))
    keeping = distinct(keeping)
    back = may & ~are_among(ranges.start, silent) & ~are_among(ranges.start, keeping) & ~is_replaceable
    start = ranges.start[back]
    named = np.concatenate((seldom, beyond))
    others = distinct(named[~are_among(named, silent) & ~are_among(named, start)])
    functions = np.concatenate((silent, others, keeping, start))
    kind = np.full(len(functions), Back.ALWAYS, np.uint8)
    kind[are_among(functions, seldom)] = Back.SELDOM
    kind[are_among(functions, again)] = Back.AGAIN
    kind[are_among(functions, beyond)] = Back.BEYOND
    kind[: len(silent)] = Back.NEVER
    order = np.argsort(functions, kind="stable")
    bare = len(silent) + len(others)
    nothing = np.zeros(len(keeping), np.uint64)
    return KnownCode(
        functions[order],
        kind[order],
        np.concatenate((np.full(bare, WORD, np.uint64), nothing, seen.written[back]))[order],
        np.concatenate((np.zeros(bare, np.uint64), nothing, seen.kept[back]))[order],
        np.concatenate((np.zeros(bare, np.int64), np.ones(len(keeping), np.int64), ranges.size[back]))[order],
        seen.named,
        seen.targets,
        seen.brief,
        returning=_returning(seen, ranges, np.concatenate((silent, others))),
        highest=int(seen.highest.max(initial=0)),
    )


def _returning(seen: Scan, ranges: Ranges, silent: U64) -> U64:
    """The functions outside of the table that come back, but for those that mostly do not.

    Behind half of their calls, at least, is code to which nothing jumps. Where tables of jumps may lead nobody knows.
    """
    calls = seen.calls[~seen.leaps[seen.calls[:, 0].astype(np.int64)]]
    within = range_at(ranges, calls[:, 1])
    is_inside = (within >= 0) & (ranges.is_stub[within] == 0)
    target, goes_on, count = _followed(seen, calls[~is_inside & ~are_among(calls[:, 1], distinct(silent))])
    return target[goes_on * 2 >= count]


def _ends(seen: Scan, start: U64) -> U64:
    """The functions outside of the table that do not come back, as their calls show.

    One of them is the last instruction of a range, and behind almost all others is padding, or what is jumped to.
    """
    last = seen.ways[seen.ways[:, 2] == Way.LAST_CALL, 1]
    target, goes_on, count = _followed(seen, seen.calls[are_among(seen.calls[:, 1], last[~are_among(last, start)])])
    return target[goes_on * _SELDOM <= count]


def _followed(seen: Scan, calls: U64) -> tuple[U64, I64, I64]:
    """The functions that are called, how many of the calls have code behind them to which nothing jumps, and all."""
    target, number = ranked(calls[:, 1])
    behind = calls[:, 2].astype(np.int64)
    goes_on = (behind > 0) & ~bits_at(seen.targets, behind)
    return target, np.bincount(number, goes_on, len(target)), np.bincount(number, minlength=len(target))
