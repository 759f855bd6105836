"""The ranges of a table, as the walk takes them: their code, how they are entered, and which belong together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from walkback.base.arrays import I64, U8, U32, U64, Bools, are_among, distinct, distinct_rows, runs
from walkback.base.dataclass import dataclass
from walkback.proof.values import UNCALLED, Way


class Pieces(NamedTuple):
    """Code that is looked at before it is known what a table says of it."""

    start: U64
    size: I64
    pos: I64
    """Where it is in the image."""


@dataclass(slots=True)
class Ranges:
    """One element a range, in the order of addresses."""

    start: U64
    size: I64
    hidden: I64
    """Bytes behind that in which another range begins: of these no rule can be found."""
    pos: I64
    """Where the code is in the image."""
    first_row: I64
    rows: I64
    block: U32
    is_entry: U8
    is_likely: U8
    """Whether ranges look like functions that nothing calls and no table describes."""
    may_be_part: U8
    """Whether it looks like an entry, and nothing is seen to call it, but others lead to it."""
    is_stub: U8
    """Whether it is part of a procedure linkage table."""
    is_target: U8
    """Whether others jump to where it begins."""
    leaps: U8
    """Whether its unit jumps to an address in a register or in memory, so that labels may be anywhere."""
    is_unprovable: U8
    """Whether what its code does is not all: others write over what it saved, or put something on the stack before."""
    kept_below: U8
    """How many bytes below its stack pointer the functions that it calls leave alone."""
    stubs: U64
    """Where the entries of that begin."""
    row_offset: U32
    row_claims: U32
    pad_first: I64
    """For each range its first row of `pads`, and behind the last how many there are."""
    pads: U64
    """Where calls begin and end whose exceptions go on at the third address."""
    arguments: U64
    """Rows of an address, rising, and the bytes of arguments on the stack at calls from there on."""
    patched: U64
    """Rows of the address of an instruction, rising, and of a place where control may go on without executing it."""


@dataclass(slots=True)
class Units:
    """Ranges that jump into each other, together."""

    members: I64
    first: I64
    """For each unit its first member, and behind the last how many there are."""

    @property
    def count(self) -> I64:
        """How many ranges each unit has."""
        return np.diff(self.first)

    @property
    def number(self) -> I64:
        """The unit of each range."""
        found = np.zeros(len(self.members), np.int64)
        found[self.members] = np.repeat(np.arange(len(self.first) - 1), self.count)
        return found

    def unchanged(self, former: I64, count: I64) -> Bools:
        """Which have the same ranges as before: for each range the number of its unit then, or -1, and their counts."""
        if not len(former):
            return np.zeros(0, np.bool_)
        former = former[self.members]
        lowest = np.minimum.reduceat(former, self.first[:-1])
        same: Bools = (lowest >= 0) & (lowest == np.maximum.reduceat(former, self.first[:-1]))
        same[same] = count[lowest[same]] == self.count[same]
        return same


def in_pieces(size: I64, at_once: int, may_begin: Bools | None = None) -> list[slice]:
    """Ranges of these sizes in pieces of about this number of bytes, one behind the other.

    With `may_begin` a piece begins only with those.
    """
    places = np.arange(len(size)) if may_begin is None else np.flatnonzero(may_begin)
    number = (np.cumsum(size) - size)[places] // at_once
    begins = places[1:][np.diff(number) > 0]
    return [slice(begin, end) for begin, end in pairwise([0, *begins.tolist(), len(size)])]


def spread(marks: Bools, units: Units) -> U8:
    """The marks, of all ranges of each unit where one of them has it."""
    found = np.zeros(len(marks), np.uint8)
    if len(marks):
        any_of = np.logical_or.reduceat(marks[units.members], units.first[:-1])
        found[units.members] = np.repeat(any_of, units.count)
    return found


def ways_to_parts(ranges: Ranges, ways: U64) -> U64:
    """Those of the ways, rows of a range, an address, and a `Way`, that lead where a range begins which is no entry."""
    target = range_at(ranges, ways[:, 1])
    begins = (target >= 0) & (ranges.start[target] == ways[:, 1]) & (ranges.is_entry[target] == 0)
    return distinct_rows(ways[begins & (ranges.is_stub[target] == 0)])


def together(ranges: Ranges, ways: U64) -> Units:
    """Units of ranges: two are together where one leads into the other, but not to its entry."""
    count = len(ranges.start)
    source, target = ways[:, 0].astype(np.int64), range_at(ranges, ways[:, 1])
    inside = (target >= 0) & (target != source) & (ways[:, 2] != Way.LAST_CALL)
    at_entry = (ranges.start[target] == ways[:, 1]) & (ranges.is_entry[target] != 0) & (ranges.block[target] == 0)
    at_entry |= ranges.is_stub[target] != 0
    pairs = distinct_rows(np.stack((source, target), 1)[inside & ~at_entry])
    own, pads = np.repeat(np.arange(count), np.diff(ranges.pad_first)), range_at(ranges, ranges.pads[:, 2])
    pairs = np.concatenate((pairs, np.stack((own, pads), 1)[(pads >= 0) & (pads != own)]))
    lowest = _lowest(count, *pairs.T)
    members = np.argsort(lowest, kind="stable").astype(np.int64)
    begins = np.flatnonzero(np.diff(lowest[members], prepend=-1))
    return Units(members, np.append(begins, count).astype(np.int64))


def _lowest(count: int, one: I64, other: I64) -> I64:
    """For each of `count` numbers the lowest of those that pairs of `one` and the `other` connect it with."""
    found = np.arange(count)
    while not np.array_equal(found[one], found[other]):
        low = np.minimum(found[one], found[other])
        np.minimum.at(found, found[one], low)
        np.minimum.at(found, found[other], low)
        while not np.array_equal(found, above := found[found]):
            found = above
    return found


def walked_again(ranges: Ranges, former: Units, units: Units, changed: Bools) -> Bools:
    """Which ranges are in units that are not what they were: with other members, or with some that are `changed`.

    What a range that nothing calls is taken for depends on those that it jumps to.
    """
    same = units.unchanged(np.where(changed | (ranges.is_entry == UNCALLED), -1, former.number), former.count)
    return ~same[units.number]


def range_at(ranges: Ranges, addresses: U64) -> I64:
    """The range that holds each address; -1 for none."""
    if not len(ranges.start):
        return np.full(len(addresses), -1, np.int64)
    number = np.searchsorted(ranges.start, addresses, "right").astype(np.int64) - 1
    held = addresses - ranges.start[number] < ranges.size[number].astype(np.uint64)
    return np.where((number >= 0) & held, number, -1)


def come_back(ranges: Ranges, returns: Bools, ways: U64, silent: Sequence[int]) -> Bools:
    """Which ranges can come back to their caller: by themselves, or by going on in one that can.

    What a range leads to outside of the table can, unless its address is among the `silent`.
    """
    may = returns.copy()
    leads = ways[ways[:, 2] != Way.LAST_CALL]
    source, target = leads[:, 0].astype(np.int64), range_at(ranges, leads[:, 1])
    outside = (target < 0) & ~are_among(leads[:, 1], np.array(silent, np.uint64))
    may[source[outside]] = True
    source, target = source[target >= 0], target[target >= 0]
    return reached_from(may, target, source)


def reached_from(marks: Bools, source: I64, target: I64) -> Bools:
    """The marks, spread from each source to its target; an edge is looked at once."""
    order = np.argsort(source, kind="stable")
    source, target = source[order], target[order]
    found, new = marks.copy(), np.flatnonzero(marks)
    while len(new):
        first, end = np.searchsorted(source, new, "left"), np.searchsorted(source, new, "right")
        new = distinct(target[runs(first, end - first)])
        new = new[~found[new]]
        found[new] = True
    return found
