"""What the table of a module says of an address, and the same by other ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from walkback.base.arch import AMD64
from walkback.dwarf.others import expression_at, side_table
from walkback.dwarf.rules import to_table
from walkback.dwarf.rulewords import RuleKind
from walkback.elf import ElfFile
from walkback.stacks.stacks import How
from walkback.table.rule import PartKind
from walkback.table.table import UnwindTable
from walkback.walking.abi import ABIS, Flag, Op
from walkback.walking.moduletable import ModuleTable
from walkback.walking.points import BLOCK, NO_STEP
from walkback.walking.samples import PC

OPS = {
    PartKind.UNCHANGED: Op.SAME,
    PartKind.UNDEFINED: Op.UNKNOWN,
    PartKind.REGISTER: Op.REGISTER,
    PartKind.AT_REGISTER: Op.AT_REGISTER,
    PartKind.CFA: Op.CFA,
    PartKind.AT_CFA: Op.AT_CFA,
}


@dataclass
class Said:
    """A step, for a comparison."""

    how: How
    cfa: tuple[Op, int, int]
    saves: dict[int, tuple[Op, int, int]]
    signal: bool
    signed: bool


def step_of(table: ModuleTable, address: int) -> int | None:
    """The number of the step, by a plain search."""
    points = table.points
    place = int(np.searchsorted(points.start, np.uint64(address), "right")) - 1
    step = int(points.step[place]) if place >= 0 else int(NO_STEP)
    if step != int(NO_STEP) and step & int(BLOCK):
        number, blocks = step & ~int(BLOCK), points.blocks
        offset = (address - int(blocks.start[number])) % int(blocks.size[number])
        step = int(NO_STEP)
        for entry in range(int(blocks.first[number]), int(blocks.end[number])):
            if int(blocks.offset[entry]) <= offset:
                step = int(blocks.step[entry])
    return None if step == int(NO_STEP) else step


def said(table: ModuleTable, address: int) -> Said | None:
    number = step_of(table, address)
    if number is None:
        return None
    steps = table.steps

    def value(op: int, register: int, operand: int) -> tuple[Any, ...]:
        if op in {Op.EXPRESSION, Op.AT_EXPRESSION}:
            first, end = int(steps.expression_first[operand]), int(steps.expression_end[operand])
            return Op(op), bytes(steps.expression_bytes[first:end])
        if op in {Op.SAME, Op.UNKNOWN, Op.BAD}:
            return (Op(op),)
        return Op(op), register if op in {Op.REGISTER, Op.AT_REGISTER} else 0, operand

    saves = {}
    for i in range(int(steps.first[number]), int(steps.end[number])):
        column = int(steps.save_column[i])
        assert column not in saves
        saves[column] = value(int(steps.save_op[i]), int(steps.save_register[i]), int(steps.save_operand[i]))
    return Said(
        How(int(steps.how[number])),
        value(int(steps.cfa[number]), int(steps.register[number]), int(steps.operand[number])),
        saves,
        bool(steps.flags[number] & Flag.SIGNAL),
        bool(steps.flags[number] & Flag.SIGNED),
    )


def part(one: Any) -> tuple[Any, ...]:
    op = OPS[one.kind]
    if op in {Op.REGISTER, Op.AT_REGISTER} and one.register >= PC:
        return (Op.BAD,)
    return (op,) if op in {Op.SAME, Op.UNKNOWN} else (op, one.register, one.offset)


def by_rules(table: UnwindTable, address: int, how: How) -> Said | None:
    """What an `UnwindTable` says."""
    found = table.find(address)
    if found is None:
        return None
    if found.signal and not table.range_rows[found.range]:
        context = ABIS[table.machine].trampolines[0].context
        return Said(How.SIGNAL, context.cfa, {save[0]: save[1:] for save in context.saves}, True, False)
    if found.rule is None:
        return None
    rule, machine = found.rule, table.machine
    if PartKind.INEXPRESSIBLE in {rule.cfa.kind, rule.ra.kind}:
        return None
    saves = {PC: part(rule.ra), machine.fp: (Op.BAD,) if rule.fp.kind is PartKind.INEXPRESSIBLE else part(rule.fp)}
    if rule.ra.kind is PartKind.UNCHANGED:
        saves[PC] = (Op.BAD,) if machine is AMD64 else (Op.REGISTER, machine.ra, 0)
    cfa = (Op.BAD,) if rule.cfa.kind in {PartKind.UNCHANGED, PartKind.UNDEFINED} else part(rule.cfa)
    return Said(how, cfa, saves, found.signal, rule.ra_signed)


class ByFrames:
    """What call frame information says: the words of its rows, and the side table."""

    def __init__(self, elf: ElfFile, source: Any) -> None:
        self.frames, self.others, self.elf = source.frames, side_table(source.frames), elf
        self.table = to_table(self.frames)

    def at(self, address: int) -> Said | None:
        found = self.table.find(address)
        if found is None or self.frames.fdes.fault[self.table.range_origin[found.range]]:
            return None
        fde = int(self.table.range_origin[found.range])
        first, count = int(self.frames.fdes.first_row[fde]), int(self.frames.fdes.rows[fde])
        offset = address - int(self.frames.fdes.start[fde])
        rows = [i for i in range(first, first + count) if int(self.frames.row_offset[i]) <= offset]
        if not rows:
            return None
        row, machine = rows[-1], self.frames.machine
        words = [int(word) for word in self.frames.rule_words[self.frames.row_rule[row]]]
        return_column = words[4] >> 8 & 0xFFFF
        saves = {PC: self.word(words[1]), machine.fp: self.word(words[2])}
        if words[1] & 15 == RuleKind.UNSPECIFIED:
            saves[PC] = (Op.BAD,) if machine is AMD64 else (Op.REGISTER, return_column, 0)
        elif saves[PC] == (Op.SAME,):
            saves[PC] = (Op.REGISTER, machine.ra, 0)
        if words[3] & 15 != RuleKind.UNSPECIFIED:
            saves[machine.sp] = self.word(words[3])
        for register, rule in self.others.rules(int(self.others.row_set[row])).items():
            if register < PC:
                saves[register] = self.value(rule.kind, rule.operand if rule.kind == 3 else 0, rule.operand)
        cfa = (Op.BAD,) if words[0] & 15 == RuleKind.UNSPECIFIED else self.word(words[0])
        return Said(How.CFI, cfa, saves, found.signal, bool(words[4] & 3))

    def word(self, word: int) -> tuple[Any, ...]:
        signed = word - (1 << 64) if word >> 63 else word
        return self.value(RuleKind(word & 15), word >> 4 & 0xFFFF, signed >> 20)

    def value(self, kind: Any, register: int, operand: int) -> tuple[Any, ...]:
        match kind:
            case RuleKind.UNSPECIFIED | RuleKind.SAME_VALUE:
                return (Op.SAME,)
            case RuleKind.UNDEFINED:
                return (Op.UNKNOWN,)
            case RuleKind.REGISTER:
                return (Op.REGISTER, register, 0 if register == operand else operand) if register < PC else (Op.BAD,)
            case RuleKind.AT_CFA:
                return (Op.AT_CFA, 0, operand)
            case RuleKind.CFA:
                return (Op.CFA, 0, operand)
            case RuleKind.AT_EXPRESSION:
                return (Op.AT_EXPRESSION, bytes(expression_at(self.frames, operand)))
            case RuleKind.EXPRESSION:
                return (Op.EXPRESSION, bytes(expression_at(self.frames, operand)))
        return (Op.BAD,)
