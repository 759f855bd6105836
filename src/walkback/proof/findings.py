"""What the rounds of a search found. Most ranges are as they were in the first round, so only what is new is moved."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from walkback.base.arrays import I64, U16, U64, Bools, ranked
from walkback.proof._found import Found
from walkback.proof._scan import renumbered
from walkback.proof.known import KnownCode

_LARGER = 4
"""What is found is put together with what was found before, unless there is this many times as much of that."""

_Rows = tuple[U64, U64, U64]
"""Rows, tails and calls, as `Found` has them."""


class _Part:
    """What was found of some ranges, by their numbers at that time."""

    def __init__(self, rows: _Rows, number: I64, places: U64) -> None:
        self.rows, self.tails, self.calls = rows
        self._places = places
        self.number = number
        """For each range of that time its number now; -1 if it is another one now, or was not walked."""

    @cached_property
    def _called(self) -> tuple[U64, I64]:
        """The addresses that are called, and for each call the number of its own."""
        return ranked(self.calls[:, 1])

    @cached_property
    def _by_address(self) -> tuple[U64, I64, Bools]:
        """The rows by address: that, the range, and whether there is a rule.

        Where one range ends and the next begins, the row of the next comes behind.
        """
        address, of_range = self.rows[:, 1], self.rows[:, 0].astype(np.int64)
        order = np.lexsort((of_range, address))
        return address[order], of_range[order], self.rows[:, 3][order] != 0

    @cached_property
    def _before(self) -> I64:
        """How many of these are in front of each place or there."""
        before: I64 = np.searchsorted(self._by_address[0], self._places, "right")
        return before

    def calling(self, known: KnownCode, before: KnownCode) -> I64:
        """The ranges that call functions about which something else is known than before."""
        targets, number = self._called
        is_other = (known.of_calls(targets) != before.of_calls(targets)).any(axis=1)
        ranges: I64 = self.number[self.calls[is_other[number], 0].astype(np.int64)]
        return np.extract(ranges >= 0, ranges)

    def last_rows(self) -> tuple[I64, I64, Bools]:
        """For each place the last row in front of it or there, by a number of its own.

        With it come the range that it is of now, and whether it has a rule. Both numbers are -1 where there is none.
        """
        _, of_range, has_rule = self._by_address
        now = self.number[of_range]
        last = np.maximum.accumulate(np.where(now >= 0, np.arange(len(now)), -1))
        row = np.append(-1, last)[self._before]
        return row, np.append(now, -1)[row], np.append(has_rule, False)[row]

    def renumbered(self) -> _Rows:
        """Rows, tails and calls of the ranges that are as they were, by their numbers now."""
        rows = renumbered(self.rows, self.number)
        rows[:, 4] = self.number[rows[:, 4].astype(np.int64)]
        return rows, renumbered(self.tails, self.number), renumbered(self.calls, self.number)


class Findings:
    """What is known of all ranges, by their numbers in the last round."""

    def __init__(self, places: U64) -> None:
        """For `places`, rising, there is `last_rows`."""
        self._places = places
        self.seen: U16 = np.zeros(0, np.uint16)
        self.ends: U64 = np.zeros(0, np.uint64)
        self.straight: U64 = np.zeros(0, np.uint64)
        self._parts: list[_Part] = []

    def add(self, found: Found, former: I64) -> None:
        """Take what a round found of all ranges but of those that have a `former` number: they are as they were."""
        kept = np.flatnonzero(former >= 0)
        number = np.full(len(self.seen), -1, np.int64)
        number[former[kept]] = kept
        for new, old in (found.seen, self.seen), (found.ends, self.ends), (found.straight, self.straight):
            new[kept] = old[former[kept]]
        self.seen, self.ends, self.straight = found.seen, found.ends, found.straight
        for part in self._parts:
            part.number = np.where(part.number < 0, -1, number[part.number])
        own = np.where(former < 0, np.arange(len(former)), -1)
        self._parts.append(_Part((found.rows, found.tails, found.calls), own, self._places))
        while len(self._parts) > 1 and len(self._parts[-2].rows) <= _LARGER * len(self._parts[-1].rows):
            last, one = self._parts.pop(), self._parts.pop()
            rows, tails, calls = map(np.concatenate, zip(one.renumbered(), last.renumbered(), strict=True))
            self._parts.append(_Part((rows, tails, calls), np.arange(len(former)), self._places))

    def calling(self, known: KnownCode, before: KnownCode) -> Bools:
        """Which ranges call functions about which something else is known than before."""
        found = np.zeros(len(self.seen), np.bool_)
        for part in self._parts:
            found[part.calling(known, before)] = True
        return found

    def last_rows(self) -> tuple[I64, Bools]:
        """For each place the last row in front of it or there, by a number of its own, and whether it has a rule.

        The number is -1 where there is none.
        """
        count, first = len(self._places), 0
        row, of_range, has_rule = np.full(count, -1, np.int64), np.full(count, -1, np.int64), np.zeros(count, np.bool_)
        for part in self._parts:
            own, own_range, own_rule = part.last_rows()
            is_last = own_range > of_range
            row = np.where(is_last, own + first, row)
            of_range = np.where(is_last, own_range, of_range)
            has_rule = np.where(is_last, own_rule, has_rule)
            first += len(part.rows)
        return row, has_rule

    def rows(self) -> U64:
        """As `Found` has them."""
        return np.concatenate([part.renumbered()[0] for part in self._parts])

    def tails(self) -> U64:
        """Rows of a range, and an address to which it jumps with the stack as it was at its entry."""
        found = self.jumps()
        return found[found[:, 2] != 0, :2]

    def jumps(self) -> U64:
        """The tails as `Found` has them."""
        return np.concatenate([renumbered(part.tails, part.number) for part in self._parts])

    def calls(self) -> U64:
        """As `Found` has them."""
        return np.concatenate([renumbered(part.calls, part.number) for part in self._parts])
