"""Bits and registers that many instructions of AArch64 have (a face: kernels compile these functions in).

The register 31 is the stack pointer or a register that is always zero, as the instruction has it.
"""

import cython

from walkback.base.bits import WORD
from walkback.code._instruction import Instruction
from walkback.code.effects import NONE, Effect, Flow
from walkback.code.filling import clear, clobber, constant, make

LR = 30
SP = 31
ZERO = 31
VECTORS = 32
"""Where the numbers of the vector registers begin."""

# Bits that mean the same in many instructions; bit 31 says that registers have 64 bits.
SUBTRACTS = 1 << 30
SETS_FLAGS = 1 << 29
IS_VECTOR = 1 << 26
IS_LOAD = 1 << 22


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def bad(out: Instruction) -> cython.int:
    """Say that there is no such instruction."""
    clear(out)
    out.flow = Flow.BAD
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def clobber_general(register: cython.uint, out: Instruction) -> cython.int:
    """Clobber the register in the low bits, whose number 31 is the register that is always zero."""
    return clobber(register & 31, out) if register & 31 != ZERO else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def clobber_vector(register: cython.uint, out: Instruction) -> cython.int:
    """Clobber the vector register in the low bits."""
    return clobber(VECTORS + (register & 31), out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def clobber_vectors(register: cython.uint, count: cython.uint, step: cython.uint, out: Instruction) -> cython.int:
    """Clobber several vector registers; the first is in the low bits."""
    i: cython.uint
    for i in range(count):
        clobber_vector(register + i * step, out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def or_none(register: cython.uint) -> cython.int:
    """A general register, where 31 is the register that is always zero."""
    return NONE if register == ZERO else cython.cast(cython.int, register)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def signed_low(value: cython.uint, bits: cython.int) -> cython.longlong:
    """The number in the low bits of a value; there are at most 26."""
    sign: cython.uint = cython.cast(cython.uint, 1) << (bits - 1)
    value &= 2 * sign - 1
    return cython.cast(cython.longlong, value ^ sign) - cython.cast(cython.longlong, sign)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def away(address: cython.ulonglong, distance: cython.longlong) -> cython.ulonglong:
    """The address at a distance."""
    return (address + cython.cast(cython.ulonglong, distance)) & WORD


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def set_general(first: cython.uint, value: cython.longlong, out: Instruction) -> cython.int:
    """A general register gets a number, where 31 is the register that is always zero."""
    return constant(first, value, out) if first != ZERO else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def extend(first: cython.uint, second: cython.uint, with_sign: cython.bint, out: Instruction) -> cython.int:
    """Extend the lower half of a register; 31 is the register that is always zero."""
    if second == ZERO:
        return set_general(first, 0, out)
    if first != ZERO:
        make(Effect.EXTEND, first, second, out)
        out.signed = with_sign
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def sign(effect: cython.int, is_b: cython.bint, modifier: cython.int, out: Instruction) -> cython.int:
    """Sign or authenticate the link register."""
    out.signed = is_b
    out.base = modifier
    return make(effect, LR, NONE, out)
