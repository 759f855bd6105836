"""Tables made plain: ranges in order and disjoint, and from them what holds from each address on.

Which of overlapping ranges holds is the rule of `UnwindTable.find_many`: the one that starts last, and of several with
one start the last in the table that is not empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from walkback.arrays import I32, I64, U32, U64, Bools
from walkback.errors import InexpressibleError
from walkback.table.pieces import Pieces
from walkback.table.table import UnwindTable

_LAST_OFFSET = 2**32 - 1
_MOST_BLOCK_ROWS = 1 << 24
"""Rows that repeating blocks may become when they are laid out; real ones are procedure linkage tables."""


def settled(table: UnwindTable, *, merge: bool = False) -> UnwindTable:
    """The same rule at every address, by ranges that are sorted, disjoint and not empty.

    A range whose middle belongs to another becomes two. `range_origin` still tells where each came from. With `merge` a
    row that says the same as the one before it is left out.
    """
    section, start, last, source = _disjoint(table)
    away = start - table.range_start[source]
    block = table.range_block[source].astype(np.uint64)
    # A piece of a repeating block starts somewhere in the block.
    phase = np.where(block > 0, away % np.maximum(block, 1), away)
    keep, rows, offset = _rows(table, source, phase, last - start)
    owner = np.repeat(np.arange(len(source)), rows)
    rule = table.row_rule[keep]
    stays = _latest(owner, offset)
    if merge:
        stays &= _changing(owner, rule)
    rows = np.bincount(owner[stays], minlength=len(source)).astype(np.int64)
    return replace(
        table,
        range_section=section,
        range_start=start,
        range_size=last - start + np.uint64(1),
        range_first_row=np.cumsum(rows) - rows,
        range_rows=rows,
        range_signal=table.range_signal[source],
        range_pauth_key=table.range_pauth_key[source],
        range_block=np.where(phase == 0, block, 0).astype(np.uint32),
        range_origin=table.range_origin[source],
        row_offset=offset[stays],
        row_rule=rule[stays],
        _pieces={},
        _by_section=None,
    )


def _disjoint(table: UnwindTable) -> tuple[I32, U64, U64, I64]:
    """Section, first and last address, and number of the range, of disjoint pieces in order."""
    order = np.lexsort((table.range_start, table.range_section))
    order = order[table.range_size[order] > 0]
    section, start = table.range_section[order], table.range_start[order]
    last = start + np.minimum(table.range_size[order] - np.uint64(1), ~start)
    overlap = (section[1:] == section[:-1]) & (start[1:] <= last[:-1])
    if not overlap.any():
        return _bordered(table, section, start, last, order)
    parts = []
    border = np.flatnonzero(section[1:] != section[:-1]) + 1
    for ranges in np.split(order, border):
        pieces = Pieces.of(table.range_start[ranges], table.range_size[ranges], ranges)
        parts.append((table.range_section[pieces.ranges], pieces.starts, pieces.lasts, pieces.ranges))
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    return _bordered(table, joined[0], joined[1], joined[2], joined[3])


def _bordered(table: UnwindTable, section: I32, start: U64, last: U64, source: I64) -> tuple[I32, U64, U64, I64]:
    """Cut pieces of repeating blocks that begin within a block at the next border."""
    block = table.range_block[source].astype(np.uint64)
    phase = (start - table.range_start[source]) % np.maximum(block, np.uint64(1))
    border = start + (block - phase)
    cut = np.flatnonzero((phase > 0) & (border <= last))
    if not len(cut):
        return section, start, last, source
    last = last.copy()
    after = (section[cut], border[cut], last[cut], source[cut])
    last[cut] = border[cut] - np.uint64(1)
    place = cut + 1
    return (
        np.insert(section, place, after[0]),
        np.insert(start, place, after[1]),
        np.insert(last, place, after[2]),
        np.insert(source, place, after[3]),
    )


def _rows(table: UnwindTable, source: I64, phase: U64, span: U64) -> tuple[I64, I64, U32]:
    """The rows of each piece: their numbers in the table, how many, and their offsets from its start.

    The first is the one that holds where the piece starts, if there is one. `span` is from the first address to the
    last.
    """
    begin, end = np.zeros(len(source), np.int64), table.range_rows[source].copy()
    first = table.range_first_row[source]
    # Cut pieces are looked at one by one: many of one long range must not gather all its rows each.
    for piece in np.flatnonzero((phase > 0) | (span + np.uint64(1) < table.range_size[source])).tolist():
        offsets = table.row_offset[first[piece] : first[piece] + end[piece]]
        low, high = int(phase[piece]), int(phase[piece]) + int(span[piece])
        begin[piece] = max(0, int(np.searchsorted(offsets, min(low, _LAST_OFFSET), "right")) - 1)
        end[piece] = max(int(begin[piece]), int(np.searchsorted(offsets, min(high, _LAST_OFFSET), "right")))
    rows = end - begin
    number = np.repeat(first + begin - np.cumsum(rows) + rows, rows) + np.arange(int(rows.sum()))
    owner = np.repeat(np.arange(len(source)), rows)
    offset = table.row_offset[number].astype(np.uint64)
    offset = np.maximum(offset, phase[owner]) - phase[owner]
    inside = offset <= span[owner]
    rows = np.bincount(owner[inside], minlength=len(source)).astype(np.int64)
    return number[inside], rows, offset[inside].astype(np.uint32)


def _latest(owner: I64, offset: U32) -> Bools:
    """Of rows with one offset only the last holds anywhere."""
    stays = np.ones(len(owner), np.bool_)
    stays[:-1] = (owner[1:] != owner[:-1]) | (offset[1:] != offset[:-1])
    return stays


def _changing(owner: I64, rule: U32) -> Bools:
    """Rows that say something else than the one before them."""
    changing = np.ones(len(owner), np.bool_)
    changing[1:] = (owner[1:] != owner[:-1]) | (rule[1:] != rule[:-1])
    return changing


@dataclass(frozen=True, slots=True)
class Course:
    """What holds from each address on, up to the next: in order of section and address."""

    section: I32
    address: U64
    rule: I64
    """Number of the rule; -1 where there is none."""
    range: I64
    """Number of the range; -1 between ranges."""


def course(table: UnwindTable) -> Course:
    """Lay out a settled table; repeating blocks are laid out block by block."""
    size, block = table.range_size, table.range_block.astype(np.uint64)
    # A block whose rule never changes is no block.
    repeats = np.where((block > 0) & (table.range_rows > 1), (size - 1) // np.maximum(block, 1) + 1, 1).astype(np.int64)
    if int((repeats * table.range_rows)[repeats > 1].sum()) > _MOST_BLOCK_ROWS:
        message = f"repeating blocks of more than {_MOST_BLOCK_ROWS} rows are not laid out"
        raise InexpressibleError(message, rule="block-rows")
    last = table.range_start + (size - np.uint64(1))
    end = last + np.minimum(~last, np.uint64(1))
    joined = np.zeros(len(table), np.bool_)
    joined[:-1] = (table.range_section[1:] == table.range_section[:-1]) & (table.range_start[1:] == end[:-1])
    lead = np.ones(len(table), np.int64)
    has = table.range_rows > 0
    lead[has] = table.row_offset[table.range_first_row[has]] > 0
    entries = lead * repeats + table.range_rows * repeats + ~joined
    base = np.cumsum(entries) - entries
    owner = np.repeat(np.arange(len(table)), entries)
    away = np.arange(len(owner)) - base[owner]
    each = (lead + table.range_rows)[owner]
    turn, position = away // np.maximum(each, 1), away % np.maximum(each, 1) - lead[owner]
    tail = turn >= repeats[owner]
    row = np.where((position >= 0) & ~tail, table.range_first_row[owner] + position, -1)
    known = row >= 0
    address = table.range_start[owner] + turn.astype(np.uint64) * block[owner]
    rule = np.full(len(owner), -1, np.int64)
    if len(table.row_offset):
        address[known] += table.row_offset[row[known]]
        rule[known] = table.row_rule[row[known]]
    address[tail] = end[owner[tail]]
    number = np.where(tail, -1, owner)
    result = Course(table.range_section[owner], address, rule, number)
    if (repeats > 1).any():
        # The last block can be cut off.
        over = (turn > 0) & ~tail & (address >= end[owner])
        result = Course(*(column[~over] for column in (result.section, result.address, result.rule, result.range)))
    return result
