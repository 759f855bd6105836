"""Rules for code that memory holds many copies of: they are made from it once, and hold for each copy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from walkback.base.arch import ByteOrder, Machine
from walkback.base.arrays import I64, U64
from walkback.base.dataclass import dataclass
from walkback.elf import ElfFile
from walkback.elf.made import BEGIN, function_symbols, made_file
from walkback.table.rule import PartKind, Reason, inexpressible
from walkback.table.table import UnwindTable, rule_array

_NAMES = b"\0copied\0"


@dataclass(frozen=True, slots=True)
class Copies:
    """Rows of copies, each at the same distance from the one before it; rising and disjoint."""

    start: U64
    """Where the first of each row is."""
    count: I64
    distance: int
    """From one copy to the next, of all rows."""


def rules_of_code(code: bytes, machine: Machine, byteorder: ByteOrder) -> UnwindTable | None:
    """The rules of one function, whose first place is 0; None unless all of its code has rules that are proved."""
    from walkback.walking.codetables import code_table  # few programs have copies

    one = np.array([len(code)], np.uint64)
    symbols = function_symbols(byteorder, np.ones(1, np.int64), np.array([BEGIN], np.uint64), one)
    elf = ElfFile(made_file(machine.elf_machine, byteorder, code, symbols, _NAMES), "copied code")
    none = np.zeros(0, np.uint64)
    table = code_table(elf, machine, none, none, [], most=len(code))
    if table is None or len(table) != 1 or int(table.range_size[0]) != len(code):
        return None
    kinds = table.rules["cfa"]["kind"][table.row_rule]
    is_known = len(kinds) > 0 and table.row_offset[0] == 0 and (kinds != PartKind.INEXPRESSIBLE).all()
    return replace(table, range_start=np.zeros(1, np.uint64)) if is_known else None


def rules_of_copies(one: UnwindTable, copies: Copies) -> UnwindTable:
    """The rules of all copies of a function; nothing is known of what is between them."""
    count, rows, size = len(copies.start), len(one.row_offset), int(one.range_size[0])
    offset, rule, rules = one.row_offset, one.row_rule, one.rules
    if copies.distance > size:
        offset, rule = np.append(offset, np.uint32(size)), np.append(rule, np.uint32(len(rules)))
        rules, rows = np.concatenate((rules, rule_array([inexpressible(Reason.NOT_ENTERED)]))), rows + 1
    return UnwindTable(
        machine=one.machine,
        range_section=np.full(count, -1, np.int32),
        range_start=copies.start,
        range_size=copies.count.astype(np.uint64) * np.uint64(copies.distance),
        range_first_row=np.arange(count) * rows,
        range_rows=np.full(count, rows, np.int64),
        range_signal=np.zeros(count, np.bool_),
        range_pauth_key=np.full(count, one.range_pauth_key[0], np.uint8),
        range_block=np.full(count, copies.distance, np.uint32),
        range_origin=np.arange(count),
        row_offset=np.tile(offset, count),
        row_rule=np.tile(rule, count),
        rules=rules,
    )
