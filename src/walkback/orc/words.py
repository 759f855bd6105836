"""`UnwindTable` to `OrcTable`: rules as entries."""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AMD64
from walkback.base.arrays import Bools
from walkback.base.dataclass import dataclass
from walkback.base.errors import InexpressibleError
from walkback.orc.decoding import OrcTable
from walkback.orc.layout import SHAPES, Base, Kind, Layout
from walkback.orc.rules import PARTIAL_IP, PARTIAL_SP, REGISTERS, SAVED_BP, SAVED_IP, SAVED_SP
from walkback.table.rule import OUTERMOST, UNCHANGED, Part, PartKind, Rule
from walkback.table.settle import settled
from walkback.table.table import UnwindTable

_BASES = {number: base for base, number in REGISTERS.items()}
_LIMITS = np.iinfo(np.int16)


@dataclass(frozen=True, slots=True)
class _Entry:
    """The fields of an entry."""

    sp_offset: int = 0
    bp_offset: int = 0
    sp_base: Base = Base.UNDEFINED
    bp_base: Base = Base.UNDEFINED
    kind: Kind = Kind.UNDEFINED


_UNDEFINED = _Entry()


def from_table(table: UnwindTable, layout: Layout, *, leave_out: bool = False) -> OrcTable:
    """The entries that say the same. Equal ones in a row are one, and behind described code stands one that ends it.

    A rule without an entry is an error; with `leave_out` its code is not described.

    >>> [source] = walkback.orc.read("module.ko")
    >>> entries = walkback.orc.from_table(source.table, source.layout)
    >>> walkback.orc.encode(entries).entries == bytes(source.data)
    True
    """
    if table.machine is not AMD64:
        raise InexpressibleError(f"ORC tables are for AMD64, not {table.machine.name}")
    table = settled(table)
    found = [_entry(Rule.from_record(record), layout) for record in table.rules]
    ranges = np.repeat(np.arange(len(table)), table.range_rows)
    expressible = np.array([one is not None for one in found], np.bool_)[table.row_rule]
    expressible &= table.range_block[ranges] == 0
    if not leave_out and not expressible.all():
        row = int(np.argmin(expressible))
        place = int(table.range_start[ranges[row]]) + int(table.row_offset[row])
        text = table.rule(row).text(AMD64)
        raise InexpressibleError(f"no entry of this layout can say the rule at {place:#x}: {text}")
    rule = np.where(expressible, table.row_rule.astype(np.int64), len(found))
    address = table.range_start[ranges] + table.row_offset
    section, signal = table.range_section[ranges], table.range_signal[ranges]
    ends = table.range_start + table.range_size
    # What stands at the end of each range, if nothing begins there.
    address, section = np.concatenate((ends, address)), np.concatenate((table.range_section, section))
    rule = np.concatenate((np.full(len(ends), len(found)), rule))
    signal = np.concatenate((np.zeros(len(ends), np.bool_), signal & expressible))
    order = np.lexsort((np.arange(len(address)), address, section))
    address, section, rule, signal = address[order], section[order], rule[order], signal[order]
    last = _differs(section, address, towards_next=True)
    address, section, rule, signal = address[last], section[last], rule[last], signal[last]
    new = _differs(section, rule, signal)
    fields = [one or _UNDEFINED for one in found] + [_UNDEFINED]
    chosen = rule[new]
    return OrcTable(
        layout=layout,
        section=section[new],
        address=address[new],
        sp_offset=np.array([one.sp_offset for one in fields], np.int16)[chosen],
        bp_offset=np.array([one.bp_offset for one in fields], np.int16)[chosen],
        sp_base=np.array([one.sp_base for one in fields], np.uint8)[chosen],
        bp_base=np.array([one.bp_base for one in fields], np.uint8)[chosen],
        kind=np.array([one.kind for one in fields], np.uint8)[chosen],
        signal=signal[new],
    )


def _differs(*columns: np.ndarray, towards_next: bool = False) -> Bools:
    """Which elements differ in some column from the one before them, or from the next one."""
    found = np.ones(len(columns[0]), np.bool_)
    ours = found[:-1] if towards_next else found[1:]
    ours[:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return found


def _entry(rule: Rule, layout: Layout) -> _Entry | None:
    """The entry that says a rule; None if there is none."""
    if rule == OUTERMOST:
        return _Entry(kind=Kind.END_OF_STACK)
    interrupted = _interrupted(rule)
    entry = _of_call(rule) if interrupted is None else interrupted
    if entry is None or not {entry.sp_base, entry.bp_base} <= set(SHAPES[layout].bases):
        return None
    fits = all(_LIMITS.min <= offset <= _LIMITS.max for offset in (entry.sp_offset, entry.bp_offset))
    return entry if fits else None


def _of_call(rule: Rule) -> _Entry | None:
    """The entry of a rule whose return address is below the CFA."""
    cfa, fp = rule.cfa, _frame_pointer(rule.fp)
    if rule.ra != Part(PartKind.AT_CFA, 0, AMD64.ra_from_cfa) or fp is None:
        return None
    if cfa.kind is PartKind.REGISTER and cfa.register in _BASES:
        return _Entry(cfa.offset, fp[1], _BASES[cfa.register], fp[0], Kind.CALL)
    if cfa.kind is PartKind.AT_REGISTER and _BASES.get(cfa.register) is Base.BP:
        return _Entry(cfa.offset, fp[1], Base.BP_INDIRECT, fp[0], Kind.CALL)
    if cfa == Part(PartKind.AT_REGISTER, AMD64.sp, 0):
        return _Entry(0, fp[1], Base.SP_INDIRECT, fp[0], Kind.CALL)
    return None


def _interrupted(rule: Rule) -> _Entry | None:
    """The entry of a rule that finds all in registers that were saved when code was interrupted."""
    cfa, ra = rule.cfa, rule.ra
    saved = cfa.kind is ra.kind is PartKind.AT_REGISTER and cfa.register == ra.register
    if not saved or cfa.register not in _BASES:
        return None
    base = _BASES[cfa.register]
    fp = None if rule.fp.kind is PartKind.AT_CFA else _frame_pointer(rule.fp)
    if fp is None and rule.fp.kind is PartKind.AT_REGISTER and rule.fp.register == cfa.register:
        fp = Base.PREV_SP, rule.fp.offset - (ra.offset - PARTIAL_IP)
    if cfa.offset - ra.offset == SAVED_SP - SAVED_IP:
        offset = cfa.offset - SAVED_SP
        if rule.fp == Part(PartKind.AT_REGISTER, cfa.register, offset + SAVED_BP):
            return _Entry(offset, 0, base, Base.UNDEFINED, Kind.REGS)
    if cfa.offset - ra.offset != PARTIAL_SP - PARTIAL_IP or fp is None:
        return None
    return _Entry(ra.offset - PARTIAL_IP, fp[1], base, fp[0], Kind.REGS_PARTIAL)


def _frame_pointer(part: Part) -> tuple[Base, int] | None:
    """Where the caller's frame pointer is."""
    if part == UNCHANGED:
        return Base.UNDEFINED, 0
    if part.kind is PartKind.AT_CFA:
        return Base.PREV_SP, part.offset
    if part.kind is PartKind.AT_REGISTER and _BASES.get(part.register) is Base.BP:
        return Base.BP, part.offset
    return None
