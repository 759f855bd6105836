"""`OrcTable` to `UnwindTable`.

Entries know no functions. So a range is a run of described code; it ends where code is not described, where another
kind of frame begins, and where a symbol says that a function begins.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AMD64
from walkback.base.arrays import I32, I64, U32, U64, Bools
from walkback.base.dataclass import dataclass
from walkback.base.intern import intern_records
from walkback.orc.decoding import OrcTable
from walkback.orc.layout import Base, Kind
from walkback.table.rule import OUTERMOST, UNCHANGED, Part, PartKind, Reason, Rule, inexpressible
from walkback.table.table import UnwindTable, rule_array

REGISTERS = {Base.SP: 7, Base.BP: 6, Base.AX: 0, Base.DX: 1, Base.DI: 5, Base.R10: 10, Base.R13: 13}
"""The number of each in DWARF."""
SAVED_BP, SAVED_IP, SAVED_SP = 32, 128, 152
"""Where the kernel saves registers in a `pt_regs`."""
PARTIAL_IP, PARTIAL_SP = 0, 24
"""Where the processor saves registers in an interrupt's frame."""

_FAR = np.uint64(1 << 60)
"""Bytes that an address may be away from the first one, so that there is room for its rank beside it."""


def to_table(table: OrcTable, starts: U64 | None = None, sections: I32 | None = None) -> UnwindTable:
    """The neutral table; `starts` are where functions begin, in objects each in one of `sections`.

    The last entry of a section only ends the code before it.

    >>> [source] = walkback.orc.read("module.ko")
    >>> walkback.orc.to_table(source.entries).rule_texts()
    ['CFA = rsp+8, RA = *(CFA-8), FP unchanged', 'CFA = rsp+16, RA = *(CFA-8), FP = *(CFA-16)']
    """
    points = _points(table, starts, sections)
    entry, begin, end, section = points.entry, points.begin, points.end, points.section
    signal = table.signal[entry]
    cut = np.ones(len(entry), np.bool_)
    cut[1:] = points.is_start[1:] | (begin[1:] != end[:-1]) | (section[1:] != section[:-1])
    cut[1:] |= signal[1:] != signal[:-1]
    first = np.flatnonzero(cut)
    rows = np.diff(np.append(first, len(entry)))
    rules, row_rule = _rules(table, entry)
    start = begin[first]
    count = len(first)
    return UnwindTable(
        machine=AMD64,
        range_section=section[first],
        range_start=start,
        range_size=end[first + rows - 1] - start if count else start,
        range_first_row=first,
        range_rows=rows,
        range_signal=table.signal[entry[first]],
        range_pauth_key=np.zeros(count, np.uint8),
        range_block=np.zeros(count, np.uint32),
        range_origin=np.arange(count),
        row_offset=(begin - np.repeat(start, rows)).astype(np.uint32),
        row_rule=row_rule,
        rules=rule_array(rules),
    )


@dataclass(frozen=True, slots=True)
class _Points:
    """Code that one entry describes, in order."""

    entry: I64
    section: I32
    begin: U64
    end: U64
    is_start: Bools
    """Whether a function begins there."""


def _points(table: OrcTable, starts: U64 | None, sections: I32 | None) -> _Points:
    """What is described, cut where functions begin."""
    starts = np.zeros(0, np.uint64) if starts is None else starts
    sections = np.full(len(starts), -1, np.int32) if sections is None else sections
    address, section = np.concatenate((table.address, starts)), np.concatenate((table.section, sections))
    # At one address the entry that ends the code before it does not count, where another one is there.
    rank = np.concatenate((1 + (table.kind != Kind.UNDEFINED), np.zeros(len(starts), np.int64)))
    order = _in_order(section, address, rank)
    address, section, is_start = address[order], section[order], order >= len(table)
    number = np.arange(len(order))
    holder = np.maximum.accumulate(np.where(is_start, -1, number))
    following = np.append(np.minimum.accumulate(np.where(is_start, len(order), number)[::-1])[::-1], len(order))
    place = np.flatnonzero(np.append((address[1:] != address[:-1]) | (section[1:] != section[:-1]), True)[: len(order)])
    begins = np.logical_or.reduceat(is_start, np.append(0, place[:-1] + 1)) if len(place) else is_start
    sections_of = np.append(section, np.int32(-2))
    begin, holder, here = address[place], holder[place], section[place]
    end = np.append(begin[1:], np.uint64(0))[: len(place)]
    entry = order[holder]
    kept = (holder >= 0) & (section[holder] == here) & (sections_of[following[place + 1]] == here)
    kept &= np.append(table.kind, np.uint8(Kind.UNDEFINED))[np.minimum(entry, len(table))] != Kind.UNDEFINED
    return _Points(entry[kept], here[kept], begin[kept], end[kept], begins[kept])


def _in_order(section: I32, address: U64, rank: I64) -> I64:
    """The order by all three; entries and functions are mostly in order, each by themselves."""
    away = address - address.min() if len(address) else address
    if len(address) and section.min() == section.max() and away.max() < _FAR:
        return np.argsort(away << np.uint64(2) | rank.astype(np.uint64), kind="stable")
    return np.lexsort((rank, address, section))


def _rules(table: OrcTable, entry: I64) -> tuple[list[Rule], U32]:
    """The distinct rules, and the number of each row's."""
    keys = table.sp_offset[entry].astype(np.int64) << 32
    keys |= (table.bp_offset[entry].astype(np.int64) & 0xFFFF) << 16
    keys |= table.sp_base[entry].astype(np.int64) << 12 | table.bp_base[entry].astype(np.int64) << 8
    keys |= table.kind[entry]
    firsts, numbers = intern_records(keys)
    return [_rule(table, one) for one in entry[firsts].tolist()], numbers.astype(np.uint32)


def _rule(table: OrcTable, entry: int) -> Rule:
    """The rule of one entry."""
    kind, base = Kind(int(table.kind[entry])), Base(int(table.sp_base[entry]))
    offset = int(table.sp_offset[entry])
    fp = _frame_pointer(Base(int(table.bp_base[entry])), int(table.bp_offset[entry]))
    if kind is Kind.END_OF_STACK:
        return OUTERMOST
    if kind is Kind.CALL:
        cfa = _stack_pointer(base, offset)
        return inexpressible(Reason.EXPRESSION) if cfa is None else Rule(cfa, Part(PartKind.AT_CFA, 0, -8), fp)
    if base not in REGISTERS:
        return inexpressible(Reason.EXPRESSION)
    register = REGISTERS[base]
    if table.bp_base[entry] == Base.PREV_SP:  # here the kernel counts from the saved registers, and not from the CFA
        fp = _at(register, offset + int(table.bp_offset[entry]))
    if kind is Kind.REGS:
        fp = _at(register, offset + SAVED_BP) if fp == UNCHANGED else fp
        return Rule(_at(register, offset + SAVED_SP), _at(register, offset + SAVED_IP), fp)
    return Rule(_at(register, offset + PARTIAL_SP), _at(register, offset + PARTIAL_IP), fp)


def _stack_pointer(base: Base, offset: int) -> Part | None:
    """Where the CFA is; None if no rule of the table can say it."""
    if base in REGISTERS:
        return Part(PartKind.REGISTER, REGISTERS[base], offset)
    if base is Base.BP_INDIRECT:
        return _at(REGISTERS[Base.BP], offset)
    return _at(REGISTERS[Base.SP], 0) if base is Base.SP_INDIRECT and offset == 0 else None


def _frame_pointer(base: Base, offset: int) -> Part:
    if base is Base.UNDEFINED:
        return UNCHANGED
    if base is Base.PREV_SP:
        return Part(PartKind.AT_CFA, 0, offset)
    if base is Base.BP:
        return _at(REGISTERS[Base.BP], offset)
    return Part(PartKind.INEXPRESSIBLE, 0, int(Reason.EXPRESSION))


def _at(register: int, offset: int) -> Part:
    return Part(PartKind.AT_REGISTER, register, offset)
