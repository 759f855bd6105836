"""How the proof numbers registers: as DWARF does, but for those whose numbers there are too high."""

from __future__ import annotations

from walkback.base.arch import AARCH64, AMD64, S390X, Machine

KEPT = {
    AMD64: (3, 6, 12, 13, 14, 15),
    AARCH64: (*range(19, 30), *range(40, 48)),
    S390X: (*range(6, 14), *range(24, 32)),
}
"""The callee-saved registers, besides the stack pointer."""
_HIGH = {AMD64: (130, 146, 17), AARCH64: (64, 96, 32)}
"""Where DWARF has r16 to r31, and the vector registers of AArch64, and from which number on the proof has them."""
_LOW = {AMD64: 17, AARCH64: 32}
"""The numbers below are the same."""
NOBODY = 1000
"""From here on are registers that the proof does not follow."""


def followed(register: int, machine: Machine) -> int:
    """The number here of a register of DWARF."""
    first, end, ours = _HIGH.get(machine, (0, 0, 0))
    if first <= register < end:
        return register - first + ours
    return register if register < _LOW.get(machine, NOBODY) else NOBODY + min(register, NOBODY)


def in_dwarf(register: int, machine: Machine) -> int:
    """The number in DWARF of a register here."""
    first, end, ours = _HIGH.get(machine, (0, 0, 0))
    if register >= NOBODY:
        return register - NOBODY
    return register - ours + first if ours <= register < ours + end - first else register
