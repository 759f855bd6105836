"""The side table of call frame information: what it says besides the rules of the table.

The table of a section has the CFA, the return address and the caller's frame pointer. Who restores all registers, or
counts what it would take to say them, asks for the rest: the rules of the other registers, row by row, and the bytes of
expressions.

others = side_table(frames)
others.rules(int(others.row_set[0]))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walkback.arch import AARCH64
from walkback.arrays import I64, U8, U16, U32, Bools
from walkback.dwarf import _others
from walkback.dwarf.frames import Frames
from walkback.dwarf.rules import RuleKind
from walkback.errors import DwarfError

REGISTERS = _others.REGISTERS
"""Rules of registers with this number or a higher one are only counted; no machine here has such."""

PARTS = ("cfa", "ra", "fp", "sp")
"""The columns of `Frames.rule_words` that can be expressions."""

_FEW_ENTRIES = 1 << 16
_ENTRIES_PER_ROW = 16
"""More entries are not kept. Compilers come to less than one for each row, since most rows repeat sets."""


@dataclass(frozen=True, slots=True)
class OtherRule:
    """The rule of one register."""

    kind: RuleKind
    operand: int
    """Of AT_CFA and CFA the offset, of REGISTER the register, of expressions the place for `SideTable.expression`."""


@dataclass(frozen=True, slots=True)
class SideTable:
    """The rules of the registers other than CFA, return address, frame pointer and stack pointer."""

    frames: Frames
    row_set: U32
    """For each row of `frames.row_offset` the number of the set of rules that hold there; 0 is the empty set."""
    first: I64
    """One more than there are sets: the rules of set s are the entries from `first[s]` to `first[s + 1]`."""
    register: U16
    """Rising in each set."""
    kind: U8
    """A `RuleKind`. A register that is not in a set has no rule: what the ABI says of it holds."""
    operand: I64
    unknown: int
    """How many instructions were for registers with numbers from `REGISTERS` on."""

    def __len__(self) -> int:
        return len(self.first) - 1

    def rules(self, number: int) -> dict[int, OtherRule]:
        """A set by register, for a person or one step of a walk."""
        entries = slice(int(self.first[number]), int(self.first[number + 1]))
        columns = (column[entries].tolist() for column in (self.register, self.kind, self.operand))
        return {register: OtherRule(RuleKind(kind), operand) for register, kind, operand in zip(*columns, strict=True)}

    def is_expression(self) -> Bools:
        """Which entries are expressions."""
        chosen: Bools = (self.kind == RuleKind.AT_EXPRESSION) | (self.kind == RuleKind.EXPRESSION)
        return chosen

    def expression(self, place: int) -> memoryview:
        """The bytes of the expression at a place in the section."""
        return expression_at(self.frames, place)


def side_table(frames: Frames) -> SideTable:
    """Run the programs again, for the registers that `frames` passed over.

    Raises `DwarfError` where rows have more different sets than any compiler makes.
    """
    most = _FEW_ENTRIES + _ENTRIES_PER_ROW * len(frames.row_offset)
    row_set, (first, register, kind, operand), unknown, stop = _others.read(
        frames.data,
        frames.byteorder == "big",
        frames.address,
        frames.text,
        frames.got,
        frames.cies,
        frames.fdes,
        frames.machine,
        frames.machine is AARCH64,
        most,
    )
    if stop >= 0:
        message = f"the rows have more than {most} different rules of other registers"
        position = int(frames.fdes.position[stop])
        raise DwarfError(message, offset=position, function=f"FDE {stop}", rule="cfi-other-registers")
    return SideTable(frames, row_set, first, register, kind, operand, unknown)


def rule_expressions(frames: Frames) -> dict[tuple[int, str], int]:
    """Where the expressions of the table's own rules stand, by the rule's number and the part that it gives.

    They are those of all rules; the table has words for some, and the others are inexpressible there.
    """
    words = frames.rule_words[:, : len(PARTS)]
    kinds = words & np.uint64(15)
    found = np.argwhere((kinds == RuleKind.EXPRESSION) | (kinds == RuleKind.AT_EXPRESSION)).tolist()
    return {(number, PARTS[part]): int(words[number, part]) >> 20 for number, part in found}


def expression_at(frames: Frames, place: int) -> memoryview:
    """The bytes of the expression whose length stands at a place; the kernel has seen that they are there."""
    size = shift = 0
    byte = 0x80
    while byte & 0x80:
        byte = frames.data[place]
        size |= (byte & 0x7F) << shift
        shift += 7
        place += 1
    return frames.data[place : place + size]
