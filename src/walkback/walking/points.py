"""Points: an address from which on a step holds, until the next one.

The ranges and rows of a table, made flat: a walk then needs one search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from walkback.base.arrays import I64, U32, U64, Bools, changes, concatenated, distinct, runs
from walkback.base.dataclass import dataclass
from walkback.table.pieces import directory_of
from walkback.table.settle import settled
from walkback.table.spans import Spans

NO_STEP = np.uint32(0xFFFFFFFF)
"""Nothing is known from here on."""
BLOCK = np.uint32(0x80000000)
"""The bit of a step that is the number of a repeating block."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Code that repeats: the rows of block b are those from `first[b]` to `end[b]`."""

    start: U64
    size: U32
    first: I64
    end: I64
    offset: U32
    step: U32


@dataclass(frozen=True, slots=True)
class Points:
    """Rising addresses; the last has `NO_STEP`."""

    start: U64
    step: U32
    blocks: Blocks

    def __len__(self) -> int:
        return len(self.start)

    def directory(self) -> tuple[U32, int]:
        """The first point in or behind each of equally wide buckets of addresses, and how many bits wide these are."""
        return directory_of(self.start, self.start, len(self))

    def moved(self, steps: int, blocks: int, rows: int) -> Points:
        """The same points, with this many steps, blocks and rows of blocks before theirs."""
        their = self.blocks
        moved = replace(their, first=their.first + rows, end=their.end + rows, step=_moved_steps(their.step, steps, 0))
        return Points(self.start, _moved_steps(self.step, steps, blocks), moved)


def empty_blocks() -> Blocks:
    """No repeating code."""
    wide, narrow = np.zeros(0, np.int64), np.zeros(0, np.uint32)
    return Blocks(np.zeros(0, np.uint64), narrow, wide, wide, narrow, narrow)


def points_of(table: Spans, *, unusable: Bools | None = None, signal_steps: int = 0, head: int = -1) -> Points:
    """The points of ranges whose rows have the numbers of steps.

    Rules that are `unusable` have no step. Ranges that are signal frames have steps that are `signal_steps` higher;
    without rows they have the step `head`, if it is not negative.
    """
    table = settled(table, merge=True)
    step = table.row_rule
    if signal_steps and table.range_signal.any():
        step = step + np.repeat(table.range_signal.astype(np.uint32) * np.uint32(signal_steps), table.range_rows)
    if unusable is not None and unusable.any():
        step = np.where(unusable[table.row_rule], NO_STEP, step)
    is_block = table.range_block > 0
    blocks = _blocks(table, np.flatnonzero(is_block), step)
    start: U64 = np.repeat(table.range_start, table.range_rows) + table.row_offset
    end = table.range_start + table.range_size
    # What a range begins with where no row does, and what follows where no other range does.
    heads = np.full(len(table), NO_STEP)
    heads[(table.range_rows == 0) & table.range_signal] = NO_STEP if head < 0 else np.uint32(head)
    heads[is_block] = BLOCK | np.arange(len(blocks.start), dtype=np.uint32)
    some = table.range_rows > 0
    begins = np.ones(len(table), np.bool_)
    begins[some] = table.row_offset[table.range_first_row[some]] > 0
    begins |= is_block
    ends = np.ones(len(table), np.bool_)
    ends[:-1] = end[:-1] != table.range_start[1:]
    ends &= end > table.range_start
    place = np.concatenate((table.range_first_row[begins], (table.range_first_row + table.range_rows)[ends]))
    address = np.concatenate((table.range_start[begins], end[ends]))
    what = np.concatenate((heads[begins], np.full(int(ends.sum()), NO_STEP)))
    if is_block.any():
        kept = ~np.repeat(is_block, table.range_rows)
        before = np.concatenate(([0], np.cumsum(kept)))
        start, step, place = start[kept], step[kept], before[place]
    order = np.lexsort((address, place))
    start = np.insert(start, place[order], address[order])
    step = np.insert(step, place[order], what[order])
    return _without_repeats(start, step, blocks)


def _blocks(table: Spans, ranges: I64, step: U32) -> Blocks:
    """The repeating ranges, and their rows."""
    count = table.range_rows[ranges]
    end = np.cumsum(count)
    row = runs(table.range_first_row[ranges], count)
    return Blocks(
        start=table.range_start[ranges],
        size=table.range_block[ranges],
        first=end - count,
        end=end,
        offset=table.row_offset[row],
        step=step[row],
    )


def _without_repeats(start: U64, step: U32, blocks: Blocks) -> Points:
    """Leave out points that say what the one before says."""
    kept = changes(step)
    return Points(start[kept], step[kept], blocks)


def merged(parts: Sequence[Points], steps: Sequence[int]) -> Points:
    """Where several have points the first that knows a step holds; `steps` is how many steps each has."""
    sizes = [(count, len(part.blocks.start), len(part.blocks.offset)) for part, count in zip(parts, steps, strict=True)]
    before = np.cumsum([(0, 0, 0), *sizes], axis=0).tolist()
    parts = [part.moved(*place) for part, place in zip(parts, before, strict=False)]
    if len(parts) == 1:
        return parts[0]
    start = distinct(np.concatenate([part.start for part in parts] or [np.zeros(0, np.uint64)]))
    step = np.full(len(start), NO_STEP)
    for part in reversed(parts):
        if not len(part):
            continue
        place = np.searchsorted(part.start, start, "right")
        here = np.where(place > 0, part.step[place - 1], NO_STEP)
        step = np.where(here == NO_STEP, step, here)
    blocks = concatenated([part.blocks for part in parts] or [empty_blocks()])
    return _without_repeats(start, step, blocks)


def _moved_steps(step: U32, first: int, first_block: int) -> U32:
    """The numbers of steps and blocks, counted from others."""
    if not first and not first_block:
        return step
    is_block = (step & BLOCK != 0) & (step != NO_STEP)
    moved = np.where(is_block, step + np.uint32(first_block), step + np.uint32(first))
    return np.where(step == NO_STEP, NO_STEP, moved)
