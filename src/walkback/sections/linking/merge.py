"""Functions that several sections describe, described once.

The result does not depend on the order of the sections: of two functions that start at one address the larger holds, of
two of one size the one whose contents come first in an order of their own. Where functions overlap otherwise, the one
that starts last holds, as everywhere.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U64, Bools, changes
from walkback.base.dataclass import dataclass
from walkback.base.errors import MissingError
from walkback.base.text import counted
from walkback.sections.linking.gather import Gathered
from walkback.table.settle import settled
from walkback.table.table import UnwindTable

_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Merged:
    """Disjoint functions in order, and how many others there were."""

    table: UnwindTable
    dead: int
    """Of code that is not there."""
    empty: int
    """Of no code."""
    duplicates: int
    """Which say what another says of the same code."""
    overlapping: int
    """Which say something of code that another describes too."""

    def account(self) -> list[str]:
        """What was said twice or for nothing, in words."""
        counts = (
            (self.dead, "function", "of code that is not there"),
            (self.empty, "function", "of no code"),
            (self.duplicates, "duplicate function", ""),
            (self.overlapping, "function", "beginning inside another, where the one that starts last holds"),
        )
        return [f"{counted(count, noun)} {rest}".rstrip() for count, noun, rest in counts if count]


def merge(gathered: Gathered) -> Merged:
    """Settle what all live functions say."""
    table, live = gathered.table, gathered.live
    refuse_lifeless(gathered)
    some = table.range_size > 0
    kept = table if live.all() and some.all() else table.chosen(np.flatnonzero(live & some))
    kept = _in_order(kept)
    again = _again(kept)
    if again.any():
        kept = kept.chosen(np.flatnonzero(~again))
    overlapping = _overlapping(kept)
    whole = settled(kept)
    if overlapping:
        # The rest of a function that claims too much can begin where there is no code.
        whole = whole.chosen(np.flatnonzero(gathered.live_ones(whole)))
    return Merged(
        table=whole,
        dead=int((~live).sum()),
        empty=int((live & ~some).sum()),
        duplicates=int(again.sum()),
        overlapping=overlapping,
    )


def refuse_lifeless(gathered: Gathered) -> None:
    """Raise an error if there are functions but none has code: more is wrong than that the linker dropped some."""
    if len(gathered.table) and not gathered.live.any():
        message = f"none of the {counted(len(gathered.table), 'function')} describes existing code"
        raise MissingError(message, file=gathered.sources[0].file)


def _in_order(table: UnwindTable) -> UnwindTable:
    """By place, then by size, then by what the functions say."""
    section, start, size = table.range_section, table.range_start, table.range_size
    if (section[1:] != section[:-1]).any() or (start[1:] < start[:-1]).any():
        table = table.chosen(np.lexsort((size, start, section)))
    tied = _tied(table)
    if not tied.any():
        return table
    digest = np.zeros(len(table), np.uint64)
    chosen = np.flatnonzero(tied)
    digest[chosen] = _digests(table.chosen(chosen))
    return table.chosen(np.lexsort((digest, table.range_size, table.range_start, table.range_section)))


def _tied(table: UnwindTable) -> Bools:
    """Which functions begin where a neighbour does."""
    same = (table.range_start[1:] == table.range_start[:-1]) & (table.range_section[1:] == table.range_section[:-1])
    tied = np.zeros(len(table), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    return tied


def _again(table: UnwindTable) -> Bools:
    """Which functions, in order, say what the one before says."""
    again = np.zeros(len(table), np.bool_)
    chosen = np.flatnonzero(_tied(table))
    if len(chosen):
        tied = table.chosen(chosen)
        columns = (tied.range_section, tied.range_start, tied.range_size, _digests(tied))
        again[chosen] = ~changes(*columns)
    return again


def _digests(table: UnwindTable) -> U64:
    """A number for the contents of each function, the same for equal contents wherever they come from.

    It only distinguishes functions with the same place and size; one of those is right in any case.
    """
    of_rule = table.rules["ra_signed"].astype(np.uint64)
    for part in ("cfa", "ra", "fp"):
        for name in ("kind", "register", "offset"):
            of_rule = _mixed(of_rule + table.rules[part][name].astype(np.uint64) + np.uint64(1))
    row = (table.row_offset.astype(np.uint64) + of_rule[table.row_rule] if len(of_rule) else np.zeros(0, np.uint64)) + 1
    row = _mixed(row)
    # Order within a function is that of the offsets, which are in the sum.
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(row)))
    digest: U64 = sums[table.range_first_row + table.range_rows] - sums[table.range_first_row]
    marks = table.range_block.astype(np.uint64) << np.uint64(2)
    marks |= table.range_signal.astype(np.uint64) << np.uint64(1) | table.range_pauth_key
    return _mixed(digest + _mixed(marks + np.uint64(1)))


def _mixed(values: U64) -> U64:
    values = values * _FACTOR
    values ^= values >> np.uint64(29)
    mixed: U64 = values * _FACTOR
    return mixed


def _overlapping(table: UnwindTable) -> int:
    """How many functions begin where another has not ended; they are in order of their places."""
    end = table.range_start + np.minimum(table.range_size, ~table.range_start)
    border = np.flatnonzero(table.range_section[1:] != table.range_section[:-1]) + 1
    first: I64 = np.concatenate(([0], border, [len(table)])).astype(np.int64)
    if not np.any((table.range_start[1:] < end[:-1]) & (table.range_section[1:] == table.range_section[:-1])):
        return 0
    return sum(
        int((table.range_start[low + 1 : high] < np.maximum.accumulate(end[low : high - 1])).sum())
        for low, high in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)
    )
