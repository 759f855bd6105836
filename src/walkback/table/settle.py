"""Tables made plain: ranges in order and disjoint.

Which of overlapping ranges holds is the rule of `UnwindTable.find_many`: the one that starts last, and of several with
one start the last in the table that is not empty.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from walkback.base.arrays import I32, I64, U64
from walkback.table import _walk
from walkback.table.pieces import Pieces
from walkback.table.spans import AnySpans, Spans

Disjoint = tuple[I32, U64, U64, I64]
"""Section, first and last address, and number of the range that holds, of disjoint pieces in order."""


def settled(table: AnySpans, *, merge: bool = False) -> AnySpans:
    """The same rule at every address, by ranges that are sorted, disjoint and not empty.

    A range whose middle belongs to another becomes two. `range_origin` still says where each came from. With `merge` a
    row that says the same as the one before it is left out.
    """
    section, start, last, source = pieces = _bordered(table, disjoint(table))
    if not merge and _is_settled(table, pieces):
        return table
    rows, offset, rule = _walk.lay_rows(pieces, table, merge)
    block = table.range_block[source]
    phase = (start - table.range_start[source]) % np.maximum(block, 1).astype(np.uint64)
    return replace(
        table,
        range_section=section,
        range_start=start,
        range_size=last - start + np.uint64(1),
        range_first_row=np.cumsum(rows) - rows,
        range_rows=rows,
        range_signal=table.range_signal[source],
        range_pauth_key=table.range_pauth_key[source],
        range_block=np.where(phase == 0, block, np.uint32(0)),
        range_origin=table.range_origin[source],
        row_offset=offset,
        row_rule=rule,
    )


def _is_settled(table: Spans, pieces: Disjoint) -> bool:
    """Whether there is nothing to settle: each range is one piece, in order, with rows that rise and lie inside."""
    first, rows, offset = table.range_first_row, table.range_rows, table.row_offset
    _, start, last, source = pieces
    if not np.array_equal(source, np.arange(len(table))) or not np.array_equal(first, np.cumsum(rows) - rows):
        return False
    if (last - start != table.range_size - np.uint64(1)).any():
        return False
    some = rows > 0
    rising = np.ones(len(offset), np.bool_)
    np.greater(offset[1:], offset[:-1], out=rising[1:])
    rising[first[some]] = True
    span = np.where(table.range_block > 0, np.minimum(table.range_block, table.range_size), table.range_size)
    return len(offset) == int(rows.sum()) and bool(
        rising.all() and (offset[(first + rows - 1)[some]] < span[some]).all()
    )


def disjoint(table: Spans) -> Disjoint:
    """The stretches of addresses in which one range holds."""
    section, start, size = table.range_section, table.range_start, table.range_size
    order = np.arange(len(table))
    if not _is_ordered(table):
        order = np.lexsort((start, section))
        order = order[size[order] > 0]
        section, start, size = section[order], start[order], size[order]
    last = start + np.minimum(size - np.uint64(1), ~start)
    overlap = (section[1:] == section[:-1]) & (start[1:] <= last[:-1])
    if not overlap.any():
        return section, start, last, order
    parts = []
    border = np.flatnonzero(section[1:] != section[:-1]) + 1
    for ranges in np.split(order, border):
        pieces = Pieces.of(table.range_start[ranges], table.range_size[ranges], ranges)
        parts.append((table.range_section[pieces.ranges], pieces.starts, pieces.lasts, pieces.ranges))
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    return joined[0], joined[1], joined[2], joined[3]


def _is_ordered(table: Spans) -> bool:
    """Whether ranges are in order already, and none is empty."""
    section, start = table.range_section, table.range_start
    if not table.range_size.all() or (section[1:] < section[:-1]).any():
        return False
    return not ((start[1:] < start[:-1]) & (section[1:] == section[:-1])).any()


def _bordered(table: Spans, pieces: Disjoint) -> Disjoint:
    """Cut pieces of repeating blocks that begin within a block at the next border: from there on they repeat."""
    section, start, last, source = pieces
    block = table.range_block[source].astype(np.uint64)
    phase = (start - table.range_start[source]) % np.maximum(block, np.uint64(1))
    border = start + (block - phase)
    cut = np.flatnonzero((phase > 0) & (border <= last))
    if not len(cut):
        return pieces
    place = cut + 1
    section, source = np.insert(section, place, section[cut]), np.insert(source, place, source[cut])
    start, after = np.insert(start, place, border[cut]), np.insert(last, place, last[cut])
    after[cut + np.arange(len(cut))] = border[cut] - np.uint64(1)
    return section, start, after, source
