"""`Frames` to `UnwindTable`: what the rules of call frame information mean in the words of the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from walkback.base.arch import AMD64, S390X, Machine
from walkback.base.arrays import I64, U32, U64, Bools, is_one_of
from walkback.base.intern import intern_records
from walkback.dwarf.blocks import with_blocks
from walkback.dwarf.expressions import ExpressionSteps, block_at, part_of, steps, value
from walkback.dwarf.frames import Frames
from walkback.dwarf.rulewords import (
    FLAG_SIGNED,
    FLAG_SIGNED_WITH_PC,
    KIND_MASK,
    NO_COLUMN,
    OFFSET_SHIFT,
    RA_COLUMN_SHIFT,
    REGISTER_MASK,
    REGISTER_SHIFT,
    RuleKind,
)
from walkback.table.rule import RULE, Part, PartKind, Reason, RuleArray, inexpressible, of_kind, put_part
from walkback.table.table import UnwindTable


def to_table(frames: Frames, *, as_written: bool = False) -> UnwindTable:
    """The neutral table of a section; a range is an FDE.

    With `as_written` there are only the rows that GNU as would write to SFrame. An FDE that cannot be read keeps its
    place and gets one inexpressible row.

    >>> [source] = walkback.dwarf.read("hello")
    >>> len(walkback.dwarf.to_table(source.frames))
    4
    """
    fdes, cies = frames.fdes, frames.cies
    rules, stepped = _rules(frames)
    first_row, rows = fdes.first_row.copy(), fdes.rows.copy()
    row_rule, row_offset = frames.row_rule, frames.row_offset
    if as_written:
        written = _written(frames)
        first_row, rows = _counts(first_row, rows, written)
        row_rule, row_offset = row_rule[written], row_offset[written]
    faulty = fdes.fault != 0
    if faulty.any():
        rules, row_rule, row_offset = _with_unreadable(rules, row_rule, row_offset)
        first_row[faulty], rows[faulty] = len(row_rule) - 1, 1
    cie = fdes.cie
    table = UnwindTable(
        machine=frames.machine,
        range_section=frames.code_section,
        range_start=fdes.start,
        range_size=fdes.size,
        range_first_row=first_row,
        range_rows=rows,
        range_signal=_of_cie(cies.signal, cie).astype(np.bool_),
        range_pauth_key=_of_cie(cies.b_key, cie),
        range_block=np.zeros(len(fdes), np.uint32),
        range_origin=np.arange(len(fdes)),
        row_offset=row_offset,
        row_rule=row_rule,
        rules=rules,
    )
    if stepped:
        table = with_blocks(table, stepped)
    # Programs can say the same in different words.
    first, numbers = intern_records(table.rules)
    return replace(table, rules=table.rules[first], row_rule=numbers.astype(np.uint32)[table.row_rule])


def _of_cie(column: np.ndarray, cie: I64) -> np.ndarray:
    return column[cie] if len(column) else np.zeros(len(cie), column.dtype)


def _written(frames: Frames) -> Bools:
    """The rows of GNU as: those where an instruction set something that is followed, and the last of each FDE."""
    fdes = frames.fdes
    written: Bools = frames.row_touched != 0
    written[(fdes.first_row + fdes.rows - 1)[fdes.rows > 1]] = True
    return written


def _counts(first_row: I64, rows: I64, kept: Bools) -> tuple[I64, I64]:
    """First row and number of rows of each range, of the rows that are kept."""
    before = np.concatenate(([0], np.cumsum(kept)))
    first = before[first_row]
    return first, before[first_row + rows] - first


def _with_unreadable(rules: RuleArray, row_rule: U32, row_offset: U32) -> tuple[RuleArray, U32, U32]:
    """One more row at offset 0, without a rule, for all ranges that cannot be read."""
    reason = np.array([inexpressible(Reason.UNREADABLE).record()], RULE)
    return (
        np.concatenate((rules, reason)),
        np.append(row_rule, np.uint32(len(rules))),
        np.append(row_offset, np.uint32(0)),
    )


def _rules(frames: Frames) -> tuple[RuleArray, dict[int, ExpressionSteps]]:
    """The rule of each number, and the CFA of those that have steps."""
    words, machine = frames.rule_words, frames.machine
    rules = np.zeros(len(words), RULE)
    column = (words[:, 4] >> np.uint64(RA_COLUMN_SHIFT)).astype(np.uint32)
    _fill(rules["cfa"], words[:, 0], frames, Reason.NO_CFA)
    _fill(rules["ra"], words[:, 1], frames, None)
    _fill(rules["fp"], words[:, 2], frames, None)
    elsewhere = of_kind(rules["ra"], PartKind.UNCHANGED) & (column != machine.ra)
    put_part(rules["ra"], elsewhere, PartKind.REGISTER, column, 0)
    stack = np.zeros(len(words), RULE["cfa"])
    _fill(stack, words[:, 3], frames, None)
    _refuse(rules, column == NO_COLUMN, Reason.TOO_LARGE)
    if machine is S390X:
        _count_as_the_abi(rules, stack, machine)
    _refuse(rules, ~_sp_as_usual(stack, words[:, 3], rules, machine), Reason.STACK_POINTER)
    rules["ra_signed"] = words[:, 4] & np.uint64(FLAG_SIGNED)
    _refuse(rules, words[:, 4] & np.uint64(FLAG_SIGNED_WITH_PC) != 0, Reason.SIGNED_WITH_PC)
    stepped: dict[int, ExpressionSteps] = {}
    if machine is not AMD64:
        # Elsewhere the column of the return address is not the program counter.
        return rules, stepped
    for number in np.flatnonzero(is_one_of(_kinds(words[:, 0]), RuleKind.EXPRESSION)).tolist():
        found = steps(_expression(frames, words[number, 0]), machine.ra, frames.byteorder)
        if found is not None:
            stepped[number] = found
    return rules, stepped


def _kinds(words: U64) -> np.ndarray:
    return words & np.uint64(KIND_MASK)


def _offsets(words: U64) -> I64:
    return words.view(np.int64) >> np.int64(OFFSET_SHIFT)


def _fill(parts: np.ndarray, words: U64, frames: Frames, unspecified: Reason | None) -> None:
    """What the words of one register mean."""
    words = np.ascontiguousarray(words)
    kinds, offsets = _kinds(words), _offsets(words)
    registers = (words >> np.uint64(REGISTER_SHIFT)).astype(np.uint32) & np.uint32(REGISTER_MASK)
    if unspecified is not None:
        put_part(parts, is_one_of(kinds, RuleKind.UNSPECIFIED), PartKind.INEXPRESSIBLE, 0, int(unspecified))
    put_part(parts, is_one_of(kinds, RuleKind.UNDEFINED), PartKind.UNDEFINED, 0, 0)
    put_part(parts, is_one_of(kinds, RuleKind.REGISTER), PartKind.REGISTER, registers, offsets)
    put_part(parts, is_one_of(kinds, RuleKind.AT_CFA), PartKind.AT_CFA, 0, offsets)
    put_part(parts, is_one_of(kinds, RuleKind.CFA), PartKind.CFA, 0, offsets)
    put_part(parts, is_one_of(kinds, RuleKind.TOO_LARGE), PartKind.INEXPRESSIBLE, 0, int(Reason.TOO_LARGE))
    is_cfa = unspecified is not None
    known: dict[tuple[bytes, bool], Part] = {}
    for number in np.flatnonzero(is_one_of(kinds, RuleKind.EXPRESSION, RuleKind.AT_EXPRESSION)).tolist():
        location = int(kinds[number]) == RuleKind.AT_EXPRESSION
        data = _expression(frames, words[number])
        part = known.get((data, location))
        if part is None:
            found = part_of(value(data, frames.byteorder, cfa=not is_cfa), location=location)
            part = known[data, location] = found or Part(PartKind.INEXPRESSIBLE, 0, int(Reason.EXPRESSION))
        parts[number] = part.record()


def _refuse(rules: RuleArray, where: Bools, reason: Reason) -> None:
    rules[where] = np.array([inexpressible(reason).record()], RULE)


def _expression(frames: Frames, word: np.uint64) -> bytes:
    return block_at(frames.data, int(word) >> OFFSET_SHIFT)


def _count_as_the_abi(rules: RuleArray, stack: np.ndarray, machine: Machine) -> None:
    """Let the CFA be where the ABI has it from the caller's stack pointer, if that is elsewhere from the CFA.

    Go's CFA on s390x is the stack pointer of the caller itself.
    """
    away = stack["offset"] - machine.sp_from_cfa
    moved = of_kind(stack, PartKind.CFA) & (away != 0) & of_kind(rules["cfa"], PartKind.REGISTER)
    rules["cfa"]["offset"][moved] += away[moved]
    for name in ("ra", "fp"):
        at_cfa = moved & of_kind(rules[name], PartKind.AT_CFA, PartKind.CFA)
        rules[name]["offset"][at_cfa] -= away[at_cfa]
    stack["offset"][moved] = machine.sp_from_cfa


def _sp_as_usual(stack: np.ndarray, words: U64, rules: RuleArray, machine: Machine) -> Bools:
    """Where the caller's stack pointer is what the ABI makes of the CFA, whatever else says so."""
    kinds = _kinds(words)
    usual: Bools = is_one_of(kinds, RuleKind.UNSPECIFIED)
    usual |= of_kind(stack, PartKind.CFA) & (stack["offset"] == machine.sp_from_cfa)
    if machine.sp_from_cfa == 0:
        same = np.logical_and.reduce([stack[name] == rules["cfa"][name] for name in ("kind", "register", "offset")])
        usual |= ~is_one_of(kinds, RuleKind.SAME_VALUE) & same
    if machine is S390X:
        # The ABI saves the stack pointer like any other register; its saved value is no other.
        usual |= of_kind(stack, PartKind.AT_CFA, PartKind.REGISTER)
    return usual
