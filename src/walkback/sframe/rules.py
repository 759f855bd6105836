"""`Section` to `UnwindTable`: what the data words of each shape mean.

Follows "ABI/arch-specific Definition" for default rows. Flex rows (version 3) and rows without words follow what GNU
as writes and libsframe and Linux read; where the specification of version 3 differs from them (the position of the FP
pair), the tools are right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from walkback.base.arch import AARCH64, S390X, Machine
from walkback.base.arrays import I32, I64, U8, U32, Bools, distinct
from walkback.base.dataclass import dataclass
from walkback.base.errors import InexpressibleError
from walkback.base.intern import intern_records
from walkback.sframe import layout
from walkback.sframe.section import Section, Shapes
from walkback.table.rule import RULE, PartKind, Reason, RuleArray, inexpressible, put_part
from walkback.table.table import UnwindTable


def to_table(section: Section) -> UnwindTable:
    """The neutral table of a section; its ranges and rows are the section's functions and rows.

    A function whose rows cannot be relied on (unreadable, out of order, a repeating block of size 0) keeps its place
    and gets inexpressible rules.

    >>> [source] = walkback.sframe.read("a.out")
    >>> table = walkback.sframe.to_table(walkback.sframe.decode(source.data, address=source.address))
    >>> table.find(0x1024).rule.text(table.machine)
    'CFA = rbp+16, RA = *(CFA-8), FP = *(CFA-16)'
    """
    machine = section.machine
    if machine is None:
        message = f"ABI {section.abi_arch} is unknown, so its rows have no meaning"
        raise InexpressibleError(message, offset=4, rule="header-abi")
    functions = section.functions
    reasons = _unreliable(section)
    rules, shape_rule = _distinct(shape_rules(section, machine))
    # Mostly no two shapes say the same: then the rows' numbers stay.
    alike = len(rules) < len(shape_rule)
    row_rule = shape_rule.astype(np.uint32)[section.row_shape] if alike else section.row_shape
    if reasons.any():
        rules, row_rule = _without_unreliable(section, rules, row_rule, reasons)
    code_section = section.code_section
    return UnwindTable(
        machine=machine,
        range_section=np.full(len(functions), -1, np.int32) if code_section is None else code_section,
        range_start=section.code_address,
        range_size=functions.size.astype(np.uint64),
        range_first_row=functions.first_row,
        range_rows=functions.rows,
        range_signal=section.signal,
        range_pauth_key=functions.pauth_key if machine is AARCH64 else np.zeros(len(functions), np.uint8),
        range_block=section.block_size,
        range_origin=np.arange(len(functions)),
        row_offset=section.row_start,
        row_rule=row_rule,
        rules=rules,
    )


def shape_rules(section: Section, machine: Machine) -> RuleArray:
    """The rule of every shape."""
    shapes = section.shapes
    rules = np.zeros(len(shapes), RULE)
    rules["ra_signed"] = (shapes.info & layout.FRE_RA_MANGLED) != 0
    fixed = (section.cfa_fixed_ra_offset, section.cfa_fixed_fp_offset)
    words = shapes.first_words(3)
    count = shapes.word_count.astype(np.int64)
    default = shapes.fde_type == layout.FDE_TYPE_DEFAULT
    flex = shapes.fde_type == layout.FDE_TYPE_FLEX
    _default_rules(rules, default, shapes.info, words, count, fixed, machine, section.version)
    if flex.any():
        _flex_rules(rules, flex, shapes, fixed, machine)
    outermost = (default | flex) & (count == 0)
    for name in ("cfa", "ra", "fp"):
        put_part(rules[name], outermost, PartKind.UNDEFINED)
    rules["ra_signed"][outermost] = 0
    rules[~(default | flex)] = np.array([inexpressible(Reason.UNKNOWN_FDE_TYPE).record()], RULE)
    return rules


def _default_rules(
    rules: RuleArray,
    default: Bools,
    info: U8,
    words: I64,
    count: I64,
    fixed: tuple[int, int],
    machine: Machine,
    version: int,
) -> None:
    """CFA from SP or FP; then RA unless the header fixes it; then FP unless the header fixes it."""
    base = np.where(info & 1 == layout.FRE_BASE_REG_SP, machine.sp, machine.fp)
    put_part(rules["cfa"], default, PartKind.REGISTER, base, _cfa_offset(words[0], machine))
    position = 1
    for name, fixed_offset in (("ra", fixed[0]), ("fp", fixed[1])):
        if fixed_offset:
            put_part(rules[name], default, PartKind.AT_CFA, 0, fixed_offset)
            continue
        word = words[position]
        there = default & (count > position)
        if machine is S390X and name == "ra":
            there &= word != 0  # padding: FP is saved and RA is not
        put_part(rules[name], there, PartKind.AT_CFA, 0, word)
        if machine is S390X and version == 2:
            put_part(rules[name], there & (word & 1 == 1), PartKind.REGISTER, word >> 1)
            rules[name]["offset"][there & (word & 1 == 1)] = 0
        position += 1


def _cfa_offset(word: I64, machine: Machine) -> I64:
    """The s390x CFA offset is stored scaled down, in default and in flex rows."""
    if machine is S390X:
        return word * layout.S390X_CFA_OFFSET_ALIGNMENT_FACTOR + layout.S390X_CFA_OFFSET_ADJUSTMENT
    return word


@dataclass(frozen=True, slots=True)
class FlexPair:
    """One of the three rules of every flex shape, as stored."""

    control: I64
    """Unsigned; 0 is no rule and has no offset after it."""
    offset: I64
    there: Bools
    """Whether there is a control word at all."""
    cut: Bools
    """Whether the words end between control word and offset."""


def flex_pairs(shapes: Shapes) -> tuple[list[FlexPair], I64]:
    """The words of every shape read as flex rules for CFA, RA and FP, and how many words they take."""
    count = shapes.word_count.astype(np.int64)
    mask = (np.int64(1) << (8 * shapes.word_size.astype(np.int64))) - 1
    words = shapes.first_words(6)
    columns = np.arange(len(shapes))
    position = np.zeros(len(shapes), np.int64)
    pairs = []
    for _ in range(3):
        there = position < count
        control = np.where(there, words[position.clip(0, 5), columns] & mask, 0)
        offset = words[(position + 1).clip(0, 5), columns]
        pairs.append(FlexPair(control, offset, there, (control != 0) & (position + 1 >= count)))
        position = np.minimum(position + np.where(control != 0, 2, there), count)
    return pairs, position


def _flex_rules(rules: RuleArray, flex: Bools, shapes: Shapes, fixed: tuple[int, int], machine: Machine) -> None:
    """Pairs of control word and offset for CFA, RA and FP; a control word of 0 stands alone and means no rule."""
    pairs, _ = flex_pairs(shapes)
    for name, fixed_offset, pair in zip(("cfa", "ra", "fp"), (0, *fixed), pairs, strict=True):
        if fixed_offset:
            put_part(rules[name], flex, PartKind.AT_CFA, 0, fixed_offset)
        offset = _cfa_offset(pair.offset, machine) if name == "cfa" else pair.offset
        register = pair.control >> layout.FLEX_REGISTER_SHIFT
        by_register = pair.control & layout.FLEX_REG != 0
        deref = pair.control & layout.FLEX_DEREF != 0
        ruled = flex & (pair.control != 0)
        put_part(rules[name], ruled & by_register & ~deref, PartKind.REGISTER, register, offset)
        put_part(rules[name], ruled & by_register & deref, PartKind.AT_REGISTER, register, offset)
        put_part(rules[name], ruled & ~by_register & ~deref, PartKind.CFA, 0, offset)
        put_part(rules[name], ruled & ~by_register & deref, PartKind.AT_CFA, 0, offset)
        if name == "cfa":
            put_part(rules[name], flex & ~by_register, PartKind.INEXPRESSIBLE, 0, int(Reason.FLEX_CFA_WITHOUT_REGISTER))
        put_part(rules[name], flex & pair.cut, PartKind.INEXPRESSIBLE, 0, int(Reason.CUT_OFF))


def _distinct(rules: RuleArray) -> tuple[RuleArray, I32]:
    """Shapes of different width can say the same: keep each rule once."""
    first, numbers = intern_records(rules)
    return rules[first], numbers


def ordered(section: Section) -> Bools:
    """For each function whether its rows are in order of their starts; equal starts are in order here."""
    falling = np.zeros(len(section.row_start), np.bool_)
    falling[1:] = section.row_start[1:] < section.row_start[:-1]
    functions = section.functions
    falling[functions.first_row[functions.rows > 0]] = False
    if not falling.any():
        return np.ones(len(functions), np.bool_)
    sums = np.concatenate(([0], np.cumsum(falling)))
    in_order: Bools = sums[functions.first_row + functions.rows] == sums[functions.first_row]
    return in_order


def _unreliable(section: Section) -> U8:
    """A `Reason` for each function whose rows cannot be relied on, else 0."""
    functions = section.functions
    reasons = np.zeros(len(functions), np.uint8)
    masked = functions.pc_type == layout.PC_TYPE_MASK
    reasons[masked & (section.block_size == 0)] = Reason.NO_BLOCK_SIZE
    reasons[~ordered(section)] = Reason.UNORDERED
    reasons[functions.fault != 0] = Reason.UNREADABLE
    return reasons


def _without_unreliable(section: Section, rules: RuleArray, row_rule: U32, reasons: U8) -> tuple[RuleArray, U32]:
    """Replace the rules of unreliable functions by their reason."""
    numbers = np.zeros(int(reasons.max()) + 1, np.uint32)
    extra: list[tuple[Any, ...]] = []
    for reason in distinct(reasons[reasons > 0]):
        numbers[reason] = len(rules) + len(extra)
        extra.append(inexpressible(Reason(int(reason))).record())
    owner_reason = np.repeat(reasons, section.functions.rows)
    row_rule = np.where(owner_reason > 0, numbers[owner_reason], row_rule)
    return np.concatenate((rules, np.array(extra, RULE))), row_rule
