"""Where call frame information says that registers are saved which the table of a file does not follow.

The table has the CFA, the return address and the frame pointer. A drawing of a frame shows the others too, also the
stack pointer where a machine saves it as s390x does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from walkback.base.arrays import I32, I64, U16, U32, U64, Records, ranked
from walkback.base.dataclass import dataclass
from walkback.base.errors import DwarfError
from walkback.dwarf.expressions import block_at, part_of, value
from walkback.dwarf.files import FrameSource, in_code
from walkback.dwarf.others import SideTable, side_table
from walkback.dwarf.rulewords import RuleKind
from walkback.elf import ElfFile
from walkback.table.rule import PART, Part, PartKind, Reason
from walkback.table.settle import settled
from walkback.table.spans import Spans, joined_spans
from walkback.table.table import UnwindTable

_KINDS = {
    RuleKind.UNDEFINED: PartKind.UNDEFINED,
    RuleKind.SAME_VALUE: PartKind.UNCHANGED,
    RuleKind.REGISTER: PartKind.REGISTER,
    RuleKind.AT_CFA: PartKind.AT_CFA,
    RuleKind.CFA: PartKind.CFA,
}
_MOST_EXPRESSIONS = 1 << 14
"""Distinct ones that are worked out; compilers come to some dozens."""


@dataclass(slots=True)
class Saved:
    """Stretches of each function's code, each with the number of a set of rules."""

    first: I64
    """For each function its first stretch, and behind the last how many there are."""
    offset: U64
    """Where a stretch begins, from the function's start."""
    set: U32
    set_first: I64
    """Set s are the entries from `set_first[s]` to `set_first[s + 1]`."""
    register: U16
    part: Records
    """Entries of dtype `PART`: where the register's value is."""


def saved_registers(elf: ElfFile, sources: Sequence[FrameSource], table: UnwindTable) -> Saved | None:
    """The rules of other registers for the ranges of a settled table; None where they are too many to be kept."""
    try:
        sides = [_with_stack_pointer(side_table(source.frames)) for source in sources]
    except DwarfError:
        return None
    all_ranges = joined_spans([_spans(side) for side in sides], [len(side) for side in sides])
    ranges = settled(all_ranges.chosen(np.flatnonzero(in_code(elf, all_ranges))), merge=True)
    section, address, chosen = _points(ranges)
    last = table.range_start + np.maximum(table.range_size, np.uint64(1)) - np.uint64(1)
    keys = _keys((section, address), (table.range_section, table.range_start), (table.range_section, last))
    # From the stretch that holds at a function's start to the last that begins in it.
    begin = np.maximum(np.searchsorted(keys[0], keys[1], "right") - 1, 0)
    count = np.searchsorted(keys[0], keys[2], "right") - begin
    first = np.concatenate(([0], np.cumsum(count)))
    number = np.arange(int(first[-1])) + np.repeat(begin - first[:-1], count)
    start = np.repeat(table.range_start, count)
    counts = np.concatenate([np.diff(side.first) for side in sides])
    return Saved(
        first=first,
        offset=np.maximum(address[number], start) - start,
        set=chosen[number],
        set_first=np.concatenate(([0], np.cumsum(counts))),
        register=np.concatenate([side.register for side in sides]),
        part=np.concatenate([_parts(side) for side in sides]),
    )


def _with_stack_pointer(side: SideTable) -> SideTable:
    """The same table with the rules of the stack pointer in its sets, where there are any."""
    frames = side.frames
    distinct, numbers = ranked(np.append(frames.rule_words[:, 3], np.uint64(0)))
    if len(distinct) == 1:
        return side
    # Set 0 stays the one of rows that have no rule of either.
    keys = side.row_set.astype(np.int64) * len(distinct) + numbers[frames.row_rule]
    pairs, row_set = ranked(np.append(keys, 0))
    former, word = pairs // len(distinct), distinct[pairs % len(distinct)]
    count = np.diff(side.first)[former]
    entry = np.arange(int(count.sum())) + np.repeat(side.first[former] - (np.cumsum(count) - count), count)
    stated = np.flatnonzero(word)
    kind = word[stated] & np.uint64(15)
    operand = word[stated].view(np.int64) >> 20
    operand = np.where(kind == RuleKind.REGISTER, (word[stated] >> np.uint64(4)).astype(np.int64) & 0xFFFF, operand)
    owner = np.concatenate((np.repeat(np.arange(len(pairs)), count), stated))
    register = np.append(side.register[entry], np.full(len(stated), frames.machine.sp, np.uint16))
    order = np.lexsort((register, owner))
    return replace(
        side,
        row_set=row_set[:-1].astype(np.uint32),
        first=np.concatenate(([0], np.cumsum(count + (word != 0)))),
        register=register[order],
        kind=np.append(side.kind[entry], kind.astype(np.uint8))[order],
        operand=np.append(side.operand[entry], operand)[order],
    )


def _parts(side: SideTable) -> Records:
    """The rules of a side table in the words of the table."""
    parts = np.zeros(len(side.kind), PART)
    parts["kind"], parts["offset"] = PartKind.INEXPRESSIBLE, Reason.TOO_LARGE
    for kind, meaning in _KINDS.items():
        chosen = side.kind == kind
        parts["kind"][chosen], parts["offset"][chosen] = meaning, 0
        if meaning is PartKind.REGISTER:
            parts["register"][chosen] = side.operand[chosen]
        elif meaning in {PartKind.AT_CFA, PartKind.CFA}:
            parts["offset"][chosen] = side.operand[chosen]
    known: dict[tuple[bytes, bool], Part] = {}
    unknown = Part(PartKind.INEXPRESSIBLE, 0, Reason.EXPRESSION)
    for number in np.flatnonzero(side.is_expression()).tolist():
        key = block_at(side.frames.data, int(side.operand[number])), int(side.kind[number]) == RuleKind.AT_EXPRESSION
        if key not in known and len(known) < _MOST_EXPRESSIONS:
            found = value(key[0], side.frames.byteorder, cfa=True)
            known[key] = part_of(found, location=key[1]) or unknown
        parts[number] = known.get(key, unknown).record()
    return parts


def _spans(side: SideTable) -> Spans:
    """The ranges of a side table, whose rows have the numbers of sets."""
    frames, count = side.frames, len(side.frames.fdes)
    return Spans(
        range_section=frames.code_section,
        range_start=frames.fdes.start,
        range_size=frames.fdes.size,
        range_first_row=frames.fdes.first_row,
        range_rows=np.where(frames.fdes.fault == 0, frames.fdes.rows, 0),
        range_signal=np.zeros(count, np.bool_),
        range_pauth_key=np.zeros(count, np.uint8),
        range_block=np.zeros(count, np.uint32),
        range_origin=np.arange(count),
        row_offset=frames.row_offset,
        row_rule=side.row_set,
    )


def _points(ranges: Spans) -> tuple[I32, U64, U32]:
    """Section, address and set wherever the set may change; a range has set 0 before its first row."""
    owner = np.repeat(np.arange(len(ranges)), ranges.range_rows)
    bare = ranges.range_rows == 0
    some = np.flatnonzero(~bare)
    bare[some] = ranges.row_offset[ranges.range_first_row[some]] > 0
    added = np.flatnonzero(bare)
    place = ranges.range_first_row[added]
    offset = np.insert(ranges.row_offset.astype(np.uint64), place, 0)
    owner = np.insert(owner, place, added)
    return ranges.range_section[owner], ranges.range_start[owner] + offset, np.insert(ranges.row_rule, place, 0)


def _keys(*places: tuple[I32, U64]) -> list[I64 | U64]:
    """One number for each place, in the order of sections and addresses."""
    sections = [section for section, _ in places]
    if all((section == -1).all() for section in sections):
        return [address for _, address in places]
    distinct, rank = ranked(np.concatenate([address for _, address in places]))
    ranks = np.split(rank, np.cumsum([len(section) for section in sections])[:-1])
    return [section.astype(np.int64) * len(distinct) + its for section, its in zip(sections, ranks, strict=True)]
