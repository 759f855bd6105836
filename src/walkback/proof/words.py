"""What the proof knows, in words: where the code has a value, beside where the table says that it is."""

from __future__ import annotations

from walkback.base.arch import AARCH64, Machine
from walkback.base.dataclass import dataclass
from walkback.proof.numbering import in_dwarf
from walkback.proof.sets import SIGNED, SIGNED_BY_B
from walkback.proof.values import CFA_TARGET, ID_MASK, ID_SHIFT, KEY_B, KIND_MASK, OFFSET_SHIFT, OTHER_MODIFIER, Known
from walkback.table.rule import Part, PartKind

TITLES = {"cfa": "the CFA at", "ra": "the return address", "fp": "the frame pointer"}
"""What claims are about, for a person; other registers have their names."""


_SIGNATURES = {0: SIGNED, KEY_B: SIGNED_BY_B}
_SIGNATURES |= {one | OTHER_MODIFIER: f"{text} with another modifier than the CFA" for one, text in _SIGNATURES.items()}
_OF_CALLER = frozenset({Known.CFA, Known.ENTRY, Known.SIGNED, Known.CONFLICT})
UNCHANGED, LOST, NOT_KNOWN, CONFLICT = "unchanged", "lost", "not known", "different on different paths"
OVERWRITTEN = "overwritten by the call"
"""Where a value is, if no rule finds it."""


@dataclass(frozen=True, slots=True)
class StateWords:
    """The state at one place of the code."""

    machine: Machine
    registers: list[int]
    """The value of each, as `values` packs it."""
    saved: dict[int, int]
    """The values at places on the stack."""
    path: list[int]
    """The last jumps that led here for the first time."""

    @property
    def of_caller(self) -> list[int]:
        """The value of each register that may say where the caller's values are, or that they are lost; 0 of others."""
        return [value if value & KIND_MASK in _OF_CALLER else 0 for value in self.registers]

    def where(self, target: int) -> str:
        """Where the code has what the caller needs: the CFA, or the value that a register had at the entry."""
        found = self.found(target)
        if found is not None:
            part, signature = found
            return part.text(self.machine) + ("" if signature is None else _SIGNATURES[signature])
        register = self.machine.sp if target == CFA_TARGET else target
        kind = _parts(self.registers[register])[0] if register < len(self.registers) else Known.OTHER
        return CONFLICT if kind is Known.CONFLICT else NOT_KNOWN if target == CFA_TARGET else LOST

    def found(self, target: int) -> tuple[Part, int | None] | None:
        """The same as a part of a rule, and the signature that the value has; None where the code has lost it.

        The signature is made of `KEY_B` and `OTHER_MODIFIER`.
        """
        return self._cfa() if target == CFA_TARGET else self._register(target)

    @property
    def depth(self) -> int | None:
        """The stack pointer, as bytes from the CFA; None where it is not known."""
        kind, _, offset = _parts(self.registers[self.machine.sp])
        return offset if kind is Known.CFA else None

    def is_cfa(self, register: int, offset: int) -> bool:
        """Whether register + offset is the CFA."""
        if not 0 <= register < len(self.registers):
            return False
        kind, _, distance = _parts(self.registers[register])
        return kind is Known.CFA and distance + offset == 0

    def is_saved(self, target: int) -> bool:
        """Whether the value that a register had at the entry is on the stack, or in another register."""
        wanted = [self._word(target, signature) for signature in (None, *_SIGNATURES)]
        others = [value for register, value in enumerate(self.registers) if register != target]
        return any(value in wanted for value in (*self.saved.values(), *others))

    def _cfa(self) -> tuple[Part, None] | None:
        machine = self.machine
        for register in dict.fromkeys((machine.sp, machine.fp, *range(len(machine.register_names)))):
            if register < len(self.registers):
                kind, _, offset = _parts(self.registers[register])
                if kind is Known.CFA:
                    return Part(PartKind.REGISTER, register, -offset), None
        return None

    def _register(self, target: int) -> tuple[Part, int | None] | None:
        for signature in (None, *_SIGNATURES):
            wanted = self._word(target, signature)
            if target < len(self.registers) and self.registers[target] == wanted:
                return Part(), signature
            for place, value in self.saved.items():
                base, _, offset = _parts(place)
                if value == wanted and base is Known.CFA:
                    return Part(PartKind.AT_CFA, 0, offset), signature
            if wanted in self.registers:
                return Part(PartKind.REGISTER, in_dwarf(self.registers.index(wanted), self.machine)), signature
        return None

    def _word(self, target: int, signature: int | None) -> int:
        """What the caller has in a register, perhaps with a signature; the stack pointer counts from the CFA."""
        if target == self.machine.sp:
            return (self.machine.sp_from_cfa << OFFSET_SHIFT) + int(Known.CFA)
        if signature is None:
            return (target << ID_SHIFT) + int(Known.ENTRY)
        return (signature << OFFSET_SHIFT) + (target << ID_SHIFT) + int(Known.SIGNED)


def register_word(machine: Machine, target: int) -> str:
    """What a claim is about: `cfa`, `ra`, `fp`, or the name of a register."""
    if target == CFA_TARGET:
        return "cfa"
    if target in {machine.ra, machine.fp}:
        return "ra" if target == machine.ra else "fp"
    if machine is AARCH64 and target >= 32:
        return f"d{target - 32}"
    return machine.register_name(target)


def _parts(value: int) -> tuple[Known, int, int]:
    return Known(value & KIND_MASK), (value >> ID_SHIFT) & ID_MASK, value >> OFFSET_SHIFT
