"""A walker in plain Python that shares no code with the compiled one: slow, and short enough to be read.

It takes its rules from `UnwindTable.find`, or from the side table of call frame information, address by address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder
from walkback.dwarf.others import side_table
from walkback.dwarf.rules import to_table
from walkback.table.rule import PartKind
from walkback.walking.samples import PC
from walking.stacksource import WORD

if TYPE_CHECKING:
    from collections.abc import Callable

    from walkback.base.arch import Machine
    from walkback.dwarf.frames import Frames
    from walkback.table.rule import Part
    from walkback.table.table import UnwindTable
    from walking.stacksource import Thread

PRESERVED = {AMD64: {3, 6, 12, 13, 14, 15}, AARCH64: set(range(19, 30)), S390X: {*range(6, 14), *range(24, 32)}}
SIGNED = 2**48 - 1


class Ended(Exception):  # noqa: N818
    """The walk is over: a name of `End`, and what it is about."""


@dataclass
class Described:
    """What a table says of an address."""

    how: str
    cfa: Part
    saves: dict[int, Part | None]
    """By column; None for a value that is lost."""
    signal: bool = False
    signed: bool = False
    keeps: bool = False


def by_table(table: UnwindTable, how: str = "SFRAME") -> Callable[[int], Described | None]:
    """The rules of SFrame."""
    machine = table.machine

    def at(address: int) -> Described | None:
        found = table.find(address)
        if found is None or found.rule is None:
            return None
        rule = found.rule
        if PartKind.INEXPRESSIBLE in {rule.cfa.kind, rule.ra.kind}:
            return None
        return Described(how, rule.cfa, {PC: rule.ra, machine.fp: rule.fp}, found.signal, rule.ra_signed)

    return at


def by_frames(frames: Frames) -> Callable[[int], Described | None]:
    """The rules of call frame information; expressions are not in it."""
    table, others = to_table(frames), side_table(frames)
    base = by_table(table, "CFI")
    kinds = {1: None, 2: PartKind.UNCHANGED, 3: PartKind.REGISTER, 4: PartKind.AT_CFA, 5: PartKind.CFA}

    def at(address: int) -> Described | None:
        described = base(address)
        if described is None:
            return None
        _, rows = table.find_many(np.array([address], np.uint64))
        for register, rule in others.rules(int(others.row_set[rows[0]])).items():
            kind = kinds[int(rule.kind)]
            if register >= PC:
                continue
            number, offset = (rule.operand, 0) if kind is PartKind.REGISTER else (0, rule.operand)
            described.saves[register] = None if kind is None else type(described.cfa)(kind, number, offset)
        described.keeps = True
        return described

    return at


@dataclass
class PlainWalk:
    """One walk over tables alone: neither frame pointers nor the code of trampolines."""

    machine: Machine
    order: ByteOrder
    thread: Thread
    table_of: Callable[[int], tuple[Callable[[int], Described | None], int] | None]
    """The rules and the bias of the module that holds an address; None where no module is."""
    limit: int

    def run(self) -> tuple[list[tuple[int, str, str]], tuple[str, int]]:
        """The frames, and the end."""
        self.registers = dict(self.thread.registers)
        self.bytes = {start + i: one for start, piece in self.thread.memory for i, one in enumerate(piece)}
        self.still, self.signals, self.mark = 0, 0, (0, 0)
        found: list[tuple[int, str, str]] = []
        kind, how = "EXACT", "REGISTERS"
        try:
            while True:
                pc = self.registers[PC]
                found.append((pc, kind, how))
                self.about = pc
                lookup = pc if kind == "EXACT" else (pc - 1) & WORD
                module = self.table_of(lookup)
                described = module[0]((lookup - module[1]) & WORD) if module else None
                if len(found) == self.limit and not (described and is_outermost(described)):
                    raise Ended("LIMIT", pc)
                if module is None:
                    raise Ended("NOT_CODE", pc)
                if described is None:
                    raise Ended("NO_TABLE", pc)
                self.step(described, kind)
                kind, how = "EXACT" if described.signal else "RETURN", described.how
        except Ended as ended:
            return found, ended.args

    def step(self, described: Described, kind: str) -> None:  # noqa: C901
        machine, old = self.machine, self.registers
        if is_outermost(described):
            raise Ended("COMPLETE", old[PC])
        cfa = self.value(described.cfa, None)
        new = {register: value for register, value in old.items() if described.keeps and register in PRESERVED[machine]}
        new[machine.sp] = (cfa + machine.sp_from_cfa) & WORD
        return_address = described.saves[PC]
        assert return_address is not None
        if return_address.kind is PartKind.UNCHANGED:
            return_address = type(return_address)(PartKind.REGISTER, machine.ra, 0)
        new[PC] = self.value(return_address, cfa)
        for register, part in described.saves.items():
            if register == PC:
                continue
            new.pop(register, None)
            if part is None or part.kind is PartKind.UNDEFINED:
                continue
            if part.kind is PartKind.UNCHANGED:
                if register in old:
                    new[register] = old[register]
                continue
            try:
                new[register] = self.value(part, cfa)
            except Ended as ended:
                # What was below the stack pointer of the topmost frame is restored already.
                below = ended.args[0] == "UNREADABLE" and ended.args[1] < old[machine.sp]
                if kind == "EXACT" and below and register in old:
                    new[register] = old[register]
        if described.signed:
            new[PC] &= SIGNED
        if not new[PC] and not described.signal:
            raise Ended("ZERO", 0)
        self.about = new[PC]
        self.progress(described, kind, new)
        if machine is AMD64:
            new[16] = new[PC]
        self.registers = new

    def progress(self, described: Described, kind: str, new: dict[int, int]) -> None:
        sp = self.machine.sp
        if described.signal:
            # Each of the first, second, fourth, eighth signal frame is marked, to be known when it comes again.
            if self.signals and (new[PC], new[sp]) == self.mark:
                raise Ended("LOOP", new[PC])
            self.signals += 1
            if not self.signals & (self.signals - 1):
                self.mark = (new[PC], new[sp])
            self.still = 0
            return
        if new[sp] < self.registers[sp]:
            raise Ended("NO_PROGRESS", new[PC])
        self.still = 0 if new[sp] > self.registers[sp] else self.still + 1
        if self.still > 2:
            raise Ended("NO_PROGRESS", new[PC])
        if self.still and kind == "RETURN" and new[PC] == self.registers[PC]:
            raise Ended("LOOP", new[PC])

    def value(self, part: Part, cfa: int | None) -> int:
        if part.kind in {PartKind.REGISTER, PartKind.AT_REGISTER}:
            if part.register not in self.registers or part.register >= PC:
                name = "UNKNOWN_REGISTER" if part.register < PC else "INEXPRESSIBLE"
                raise Ended(name, part.register)
            value = self.registers[part.register] + part.offset & WORD
            return value if part.kind is PartKind.REGISTER else self.load(value)
        if part.kind in {PartKind.CFA, PartKind.AT_CFA} and cfa is not None:
            value = cfa + part.offset & WORD
            return value if part.kind is PartKind.CFA else self.load(value)
        raise Ended("INEXPRESSIBLE", self.about)

    def load(self, address: int) -> int:
        try:
            return int.from_bytes(bytes(self.bytes[address + i] for i in range(8)), self.order)
        except KeyError:
            cut = self.thread.cut
            beyond = cut and cut < address + 8 <= WORD and address + 8 - cut < 1 << 30
            raise Ended("STACK_CUT" if beyond else "UNREADABLE", address) from None


def is_outermost(described: Described) -> bool:
    return described.saves[PC] is None or described.saves[PC].kind is PartKind.UNDEFINED
