"""Rules: how the CFA, the return address and the caller's frame pointer are found.

In a table a rule is an entry of a structured array (`RULE`), and many rows share one. `Rule` and `Part` are the same
for a person: made on the spot, printed and parsed in the field's notation, as in
`CFA = rsp+16, RA = *(CFA-8), FP = *(CFA-16)`.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any, Self

import numpy as np

from walkback.base.arch import Machine, machine_of
from walkback.base.arrays import Bools, Records, is_one_of
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError


class PartKind(IntEnum):
    """How a value is found.

    >>> [kind.name for kind in walkback.table.PartKind]
    ['UNCHANGED', 'UNDEFINED', 'REGISTER', 'AT_REGISTER', 'CFA', 'AT_CFA', 'INEXPRESSIBLE']
    """

    UNCHANGED = 0
    """The register still holds it."""
    UNDEFINED = 1
    """It cannot be found. Of the return address: this is the outermost frame."""
    REGISTER = 2
    """register + offset"""
    AT_REGISTER = 3
    """*(register + offset)"""
    CFA = 4
    """CFA + offset"""
    AT_CFA = 5
    """*(CFA + offset)"""
    INEXPRESSIBLE = 6
    """There is a rule, and it is none of these; the offset is a `Reason`."""


class Reason(IntEnum):
    """Why a rule is inexpressible.

    >>> [reason.name for reason in walkback.table.Reason][:3]
    ['UNKNOWN_FDE_TYPE', 'FLEX_CFA_WITHOUT_REGISTER', 'CUT_OFF']
    """

    UNKNOWN_FDE_TYPE = 1
    """SFrame V3: the function's type is neither default nor flex."""
    FLEX_CFA_WITHOUT_REGISTER = 2
    """SFrame V3: the CFA would be based on the CFA."""
    CUT_OFF = 3
    """The data words end inside a rule."""
    NO_BLOCK_SIZE = 4
    """A repeating block of size 0."""
    UNREADABLE = 5
    """The rows of the function cannot be read."""
    UNORDERED = 6
    """The rows of the function are not in order."""
    NO_CFA = 7
    """Nothing says how the CFA is found."""
    EXPRESSION = 8
    """A DWARF expression that is no rule of the table."""
    TOO_LARGE = 9
    """A register number or an offset beyond all use."""
    STACK_POINTER = 10
    """The caller's SP is not the CFA, or on s390x 160 bytes below it."""
    SIGNED_WITH_PC = 11
    """AArch64: the return address is signed with the place of the instruction that signed it."""
    STEPS = 12
    """The CFA changes within blocks that do not begin where the code does."""
    OTHER_STACK = 13
    """The function goes on with another stack."""
    NOT_ENTERED = 14
    """Of code without a table: nothing shows that it is entered as the ABI says."""
    ASTRAY = 15
    """It does not leave with the stack and the return address that it was entered with."""
    FORKS = 16
    """It may start a thread, which goes on with another stack."""
    TOO_COMPLEX = 17
    """There are too many ways through it."""
    UNPROVED = 18
    """Nothing known leads there, or its rules are not proved."""
    LINK_LOST = 19
    """Of Go: a call took the register with the return address, and nothing says which one has it now."""


REASON_WORDS = {
    Reason.UNKNOWN_FDE_TYPE: "the function type is unknown",
    Reason.FLEX_CFA_WITHOUT_REGISTER: "the CFA has no base register",
    Reason.CUT_OFF: "the data words end inside a rule",
    Reason.NO_BLOCK_SIZE: "the repeating block has size 0",
    Reason.UNREADABLE: "the rows cannot be read",
    Reason.UNORDERED: "the rows are not in order",
    Reason.NO_CFA: "nothing says how the CFA is found",
    Reason.EXPRESSION: "an expression that is no rule of the table",
    Reason.TOO_LARGE: "a register number or offset beyond all use",
    Reason.STACK_POINTER: "the caller's SP is not the CFA",
    Reason.SIGNED_WITH_PC: "the return address is signed with the place of the signing",
    Reason.STEPS: "the CFA changes within blocks that are not aligned",
    Reason.OTHER_STACK: "the function goes on with another stack",
    Reason.NOT_ENTERED: "nothing shows that the code is entered as the ABI says",
    Reason.ASTRAY: "the code does not leave with the stack and the return address that it was entered with",
    Reason.FORKS: "the code may start a thread, which goes on with another stack",
    Reason.TOO_COMPLEX: "there are too many ways through the code",
    Reason.UNPROVED: "no rule is proved for the code",
    Reason.LINK_LOST: "nothing says which register has the return address",
}

PART = np.dtype([("kind", "u1"), ("register", "u4"), ("offset", "i8")])
RULE = np.dtype([("cfa", PART), ("ra", PART), ("fp", PART), ("ra_signed", "u1")])
"""One rule: three parts, and whether the return address carries a signature (AArch64)."""
RuleArray = Records


@dataclass(frozen=True, slots=True)
class Part:
    """How one value is found.

    >>> part = walkback.table.Part(walkback.table.PartKind.REGISTER, 6, 16)
    >>> part.register, part.offset
    (6, 16)
    """

    kind: PartKind = PartKind.UNCHANGED
    register: int = 0
    offset: int = 0

    def text(self, machine: str | Machine) -> str:
        """In the field's notation: `rsp+16`, `*(CFA-8)`, `unchanged`."""
        if self.kind is PartKind.INEXPRESSIBLE:
            return f"inexpressible ({REASON_WORDS[Reason(self.offset)]})"
        if self.kind in {PartKind.UNCHANGED, PartKind.UNDEFINED}:
            return self.kind.name.lower()
        name = (
            "CFA" if self.kind in {PartKind.CFA, PartKind.AT_CFA} else machine_of(machine).register_name(self.register)
        )
        place = f"{name}{self.offset:+d}" if self.offset else name
        return f"*({place})" if self.kind in {PartKind.AT_REGISTER, PartKind.AT_CFA} else place

    @classmethod
    def parse(cls, text: str, machine: str | Machine) -> Self:
        """The inverse of `text`, for all but inexpressible parts."""
        match = _PART.fullmatch(text.replace(" ", ""))
        if not match:
            raise ArgumentError(f"not a rule: {text!r} (examples: rsp+16, *(CFA-8), r10, unchanged, undefined)")
        word, at, at_offset, base, offset = match.groups()
        if word:
            return cls(PartKind[word.upper()])
        name, number = (at, at_offset) if at else (base, offset)
        if name.lower() == "cfa":
            return cls(PartKind.AT_CFA if at else PartKind.CFA, 0, int(number or 0))
        return cls(
            PartKind.AT_REGISTER if at else PartKind.REGISTER,
            _register(name.lower(), machine_of(machine)),
            int(number or 0),
        )

    def record(self) -> tuple[int, int, int]:
        """As an entry of a `PART` array."""
        return (int(self.kind), self.register, self.offset)


_PART = re.compile(r"(unchanged|undefined)|\*\((\w+)([+-]\d+)?\)|(\w+)([+-]\d+)?", re.ASCII)


def _register(name: str, machine: Machine) -> int:
    if name in machine.register_names:
        return machine.register_names.index(name)
    number = {"sp": machine.sp, "fp": machine.fp, "ra": machine.ra, "lr": machine.ra}.get(name)
    if number is not None:
        return number
    if re.fullmatch(r"r\d+", name):
        return int(name[1:])
    raise ArgumentError(f"{machine.name} has no register {name!r}")


UNCHANGED = Part()
UNDEFINED = Part(PartKind.UNDEFINED)


@dataclass(frozen=True, slots=True)
class Rule:
    """How to get from a frame to its caller's.

    >>> rule = walkback.Rule.parse("CFA = rsp+16, FP = *(CFA-16)", "AMD64")
    >>> rule.cfa.offset, rule.text("AMD64")
    (16, 'CFA = rsp+16, RA = *(CFA-8), FP = *(CFA-16)')
    """

    cfa: Part
    ra: Part = UNCHANGED
    fp: Part = UNCHANGED
    ra_signed: bool = False

    @property
    def outermost(self) -> bool:
        """Whether there is no caller."""
        return self.ra.kind is PartKind.UNDEFINED

    @property
    def unsaid(self) -> str | None:
        """Why there is no rule; None if there is one."""
        if self.cfa.kind is not PartKind.INEXPRESSIBLE or not self.cfa == self.ra == self.fp:
            return None
        return REASON_WORDS[Reason(self.cfa.offset)]

    def text(self, machine: str | Machine) -> str:
        """One line: `CFA = rsp+16, RA = *(CFA-8), FP unchanged`."""
        if self == OUTERMOST:
            return "outermost frame"
        parts = [
            f"{name} {part.text(machine)}"
            if part.kind in {PartKind.UNCHANGED, PartKind.UNDEFINED, PartKind.INEXPRESSIBLE}
            else f"{name} = {part.text(machine)}"
            for name, part in (("CFA", self.cfa), ("RA", self.ra), ("FP", self.fp))
        ]
        if self.ra_signed:
            parts[1] += " signed"
        return ", ".join(parts)

    @classmethod
    def parse(cls, text: str, machine: str | Machine) -> Self:
        """The inverse of `text`. A part that is not named gets the machine's default."""
        machine = machine_of(machine)
        if text.strip() == "outermost frame":
            return cls(UNDEFINED, UNDEFINED, UNDEFINED)
        parts: dict[str, Part] = {}
        signed = False
        for clause in text.split(","):
            match = re.fullmatch(r"\s*(CFA|RA|FP)\s*(?:=|\s)\s*(.+?)\s*", clause, re.IGNORECASE)
            if not match:
                raise ArgumentError(f"not a clause of a rule: {clause.strip()!r} (CFA, RA or FP, then = and a rule)")
            name, value = match[1].lower(), match[2]
            if name in parts:
                raise ArgumentError(f"{match[1].upper()} is said twice: {text!r}")
            if name == "ra" and value.endswith(" signed"):
                signed, value = True, value.removesuffix(" signed")
            parts[name] = Part.parse(value, machine)
        if "cfa" not in parts:
            raise ArgumentError(f"a rule needs a CFA: {text!r}")
        if "ra" not in parts and machine.ra_from_cfa:
            parts["ra"] = Part(PartKind.AT_CFA, 0, machine.ra_from_cfa)
        return cls(**parts, ra_signed=signed)

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """From an entry of a `RULE` array."""
        cfa, ra, fp, signed = record.item()
        return cls(_part(cfa), _part(ra), _part(fp), bool(signed))

    def record(self) -> tuple[Any, ...]:
        """As an entry of a `RULE` array."""
        return (self.cfa.record(), self.ra.record(), self.fp.record(), int(self.ra_signed))


def _part(record: tuple[int, int, int]) -> Part:
    kind, register, offset = record
    return Part(PartKind(kind), register, offset)


OUTERMOST = Rule(UNDEFINED, UNDEFINED, UNDEFINED)
"""No caller, and nothing else known."""


def inexpressible(reason: Reason) -> Rule:
    """A rule that only says why there is none."""
    part = Part(PartKind.INEXPRESSIBLE, 0, int(reason))
    return Rule(part, part, part)


def of_kind(parts: Records, *kinds: PartKind) -> Bools:
    """Which parts of many rules are of one of these kinds."""
    return is_one_of(parts["kind"], *kinds)


def put_part(parts: Records, where: Bools, kind: PartKind, register: Any = 0, offset: Any = 0) -> None:
    """Give the chosen parts of many rules a value; register and offset are scalars, or columns of all rules."""
    if not where.any():
        return
    for name, column in (("kind", int(kind)), ("register", register), ("offset", offset)):
        parts[name][where] = column[where] if isinstance(column, np.ndarray) else column
