"""The side table of call frame information: what it says besides the rules of the table.

The table of a section has the CFA, the return address and the caller's frame pointer. Who restores all registers, or
counts what it would take to say them, asks for the rest: the rules of the other registers, row by row, and the bytes of
expressions.

others = side_table(frames)
others.rules(int(others.row_set[0]))
"""

from __future__ import annotations

from walkback.base.arch import AARCH64
from walkback.base.arrays import I64, U8, U16, U32, Bools, is_one_of
from walkback.base.dataclass import dataclass
from walkback.base.errors import DwarfError
from walkback.dwarf import _others
from walkback.dwarf._instruction import ProgramReader
from walkback.dwarf.expressions import leb128
from walkback.dwarf.frames import Frames
from walkback.dwarf.rulewords import RuleKind

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
        return is_one_of(self.kind, RuleKind.AT_EXPRESSION, RuleKind.EXPRESSION)

    def expression(self, place: int) -> memoryview:
        """The bytes of the expression at a place in the section."""
        return expression_at(self.frames, place)


def side_table(frames: Frames) -> SideTable:
    """Run the programs again, for the registers that `frames` passed over.

    Raises `DwarfError` where rows have more different sets than any compiler makes.
    """
    most = _FEW_ENTRIES + _ENTRIES_PER_ROW * len(frames.row_offset)
    cies, fdes, machine = frames.cies, frames.fdes, frames.machine
    reader = program_reader(frames)
    row_set, columns, unknown, stop = _others.read(reader, cies, fdes, machine.sp, machine.fp, most)
    if stop >= 0:
        message = f"the rows have more than {most} different rules of other registers"
        position = int(frames.fdes.position[stop])
        raise DwarfError(message, offset=position, function=f"FDE {stop}", rule="cfi-other-registers")
    return SideTable(frames, row_set, *columns, unknown)


def program_reader(frames: Frames) -> ProgramReader:
    """What reads the programs of a section that was decoded."""
    big, is_aarch64 = frames.byteorder == "big", frames.machine is AARCH64
    places = (frames.address, frames.text, frames.got)
    return ProgramReader(frames.data, big, *places, is_aarch64, frames.cies, frames.fdes)


def expression_at(frames: Frames, place: int) -> memoryview:
    """The bytes of the expression whose length stands at a place; the kernel has seen that they are there."""
    size, start = leb128(frames.data, place, signed=False)
    return frames.data[start : start + size]
