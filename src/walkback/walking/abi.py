"""What the ABI of each machine says of stacks beyond tables.

Which registers calls keep; where the kernel saves all registers when it delivers a signal (the layouts of
`rt_sigframe` and `sigframe`), and the code that handlers return to; how frame pointers are chained; where a call leaves
the return address.
"""

from __future__ import annotations

from enum import IntEnum

from walkback.base.arch import AARCH64, AMD64, MACHINES, S390X, Machine
from walkback.base.dataclass import dataclass
from walkback.walking.samples import PC


class Op(IntEnum):
    """How a value of the caller is found."""

    UNKNOWN = 0
    """Not at all. Of the program counter: there is no caller."""
    SAME = 1
    REGISTER = 2
    """register + operand"""
    AT_REGISTER = 3
    """*(register + operand)"""
    CFA = 4
    """CFA + operand"""
    AT_CFA = 5
    """*(CFA + operand)"""
    EXPRESSION = 6
    """The DWARF expression with the operand's number."""
    AT_EXPRESSION = 7
    """*(the expression)"""
    BAD = 8
    """There is a rule, and nobody can follow it."""


class Flag(IntEnum):
    """What else is true of a step."""

    SIGNAL = 1
    """What follows was interrupted."""
    SIGNED = 2
    """The return address carries a signature (AArch64)."""
    KEEPS = 4
    """Registers that calls keep and that are not named are as before; otherwise they are unknown."""
    GUESS = 8
    """It must be confirmed by a return address in code."""
    LOOSE = 16
    """The stack pointer that it leads to is only a lower bound."""
    OUTERMOST = 32
    """There is no caller."""
    CHAIN = 64
    """It goes by the register that frame pointers are chained by: if that is 0 the chain ends."""
    SWITCHES = 128
    """The caller has another stack."""


class BuiltIn(IntEnum):
    """The numbers of the steps that come before those of all tables."""

    ENTRY = 0
    FP_GUESS = 1
    FP_DECLARED = 2
    CONTEXT = 3
    """Of the first kind of trampoline; the others' follow."""


Save = tuple[int, Op, int, int]
"""A register of the caller: its column, how it is found, the register to start from, and the operand."""


@dataclass(frozen=True, slots=True)
class Step:
    """From a frame to its caller."""

    cfa: tuple[Op, int, int]
    saves: tuple[Save, ...]
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Trampoline:
    """Code that a signal handler returns to."""

    code: bytes
    context: Step


@dataclass(frozen=True, slots=True)
class Abi:
    """One machine."""

    machine: Machine
    preserved: int
    """A bit for each callee-saved register."""
    entry: Step
    """At the first instruction of a function."""
    chain: Step
    """By the frame pointer; on s390x by the back chain, which is what such programs have there."""
    chain_register: int
    """Zero in it ends the chain."""
    trampolines: tuple[Trampoline, ...]
    address_mask: int
    """The bits of a return address that are left when its signature is taken off."""


def _trampolines(machine: Machine, *contexts: Step) -> tuple[Trampoline, ...]:
    return tuple(Trampoline(code, context) for code, context in zip(machine.signal_return, contexts, strict=True))


def _mask(*registers: int) -> int:
    return sum(1 << register for register in registers)


def _context(stack: int, places: dict[int, int]) -> Step:
    """All registers from where the kernel saved them, counted from the stack pointer of the code handlers return to."""
    saves = tuple((column, Op.AT_REGISTER, stack, place) for column, place in places.items())
    return Step((Op.REGISTER, stack, 0), saves, Flag.SIGNAL)


# struct ucontext begins with 40 bytes of flags, link and stack; then come the registers in the order of sigcontext.
_AMD64_CONTEXT = {
    register: 40 + 8 * place for place, register in enumerate((*range(8, 16), 5, 4, 6, 3, 1, 0, 2, 7, PC))
}
# siginfo (128 bytes), the same 40, 128 for the signal mask, 8 to align, the fault address.
_AARCH64_CONTEXT = {register: 312 + 8 * register for register in range(32)} | {PC: 568}
# The register save area (160), the instruction, siginfo, the same 40; PSW mask and address, general registers, access
# registers (64), the control word of floating point and 4 bytes to align, floating point registers.
_S390X_FLOAT = (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)


def _s390x_context(place: int) -> Step:
    registers = {PC: place + 8} | {number: place + 16 + 8 * number for number in range(16)}
    floats = {16 + column: place + 216 + 8 * number for column, number in enumerate(_S390X_FLOAT)}
    return _context(S390X.sp, registers | floats)


ABIS = {
    AMD64: Abi(
        machine=AMD64,
        preserved=_mask(3, 6, 12, 13, 14, 15),
        entry=Step(
            (Op.REGISTER, AMD64.sp, 8), ((PC, Op.AT_CFA, 0, -8), (AMD64.fp, Op.SAME, 0, 0)), Flag.KEEPS | Flag.GUESS
        ),
        chain=Step(
            (Op.REGISTER, AMD64.fp, 16),
            ((PC, Op.AT_CFA, 0, -8), (AMD64.fp, Op.AT_CFA, 0, -16)),
            Flag.GUESS | Flag.CHAIN,
        ),
        chain_register=AMD64.fp,
        trampolines=_trampolines(AMD64, _context(AMD64.sp, _AMD64_CONTEXT)),
        address_mask=2**64 - 1,
    ),
    AARCH64: Abi(
        machine=AARCH64,
        preserved=_mask(*range(19, 30)),
        entry=Step(
            (Op.REGISTER, AARCH64.sp, 0),
            ((PC, Op.REGISTER, AARCH64.ra, 0), (AARCH64.fp, Op.SAME, 0, 0)),
            Flag.KEEPS | Flag.GUESS,
        ),
        chain=Step(
            (Op.REGISTER, AARCH64.fp, 16),
            ((PC, Op.AT_CFA, 0, -8), (AARCH64.fp, Op.AT_CFA, 0, -16)),
            Flag.GUESS | Flag.CHAIN | Flag.SIGNED | Flag.LOOSE,
        ),
        chain_register=AARCH64.fp,
        trampolines=_trampolines(AARCH64, _context(AARCH64.sp, _AARCH64_CONTEXT)),
        address_mask=2**48 - 1,
    ),
    S390X: Abi(
        machine=S390X,
        preserved=_mask(*range(6, 14), *range(24, 32)),
        entry=Step(
            (Op.REGISTER, S390X.sp, 160),
            ((PC, Op.REGISTER, S390X.ra, 0), (S390X.fp, Op.SAME, 0, 0)),
            Flag.KEEPS | Flag.GUESS,
        ),
        chain=Step(
            (Op.AT_REGISTER, S390X.sp, 0),
            # Whether the callee has saved register 11 nobody knows, so the caller's is not known.
            ((PC, Op.AT_CFA, 0, 112), (S390X.sp, Op.CFA, 0, 0)),
            Flag.GUESS | Flag.CHAIN,
        ),
        chain_register=S390X.sp,
        trampolines=_trampolines(S390X, _s390x_context(336), _s390x_context(176)),
        address_mask=2**64 - 1,
    ),
}

assert set(ABIS) == set(MACHINES)
