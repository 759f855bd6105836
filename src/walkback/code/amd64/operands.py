"""Operands of AMD64, and what becomes of them (a face: kernels compile these functions in)."""

import cython

from walkback.code._instruction import Instruction
from walkback.code.amd64.opcodes import BYTE
from walkback.code.amd64.prefixes import (
    BASE,
    DATA_16,
    REP,
    REPNE,
    REX,
    REX_B,
    REX_B4,
    REX_R,
    REX_R4,
    REX_W,
    REX_X,
    REX_X4,
    TO_REG,
    VVVV,
)
from walkback.code.amd64.registers import BEHIND, NUMBERS, RSP
from walkback.code.effects import Effect
from walkback.code.filling import add, make

CONDITIONS = 0x36214500
"""The `Condition` of each condition code: a hexadecimal digit for each, from the lowest on."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def rex(bits: cython.uint) -> cython.uint:
    """What the low four bits of REX say, or those that REX2 has as well."""
    low: cython.uint = (REX_B if bits & 1 else 0) | (REX_X if bits & 2 else 0) | (REX_R if bits & 4 else 0)
    high: cython.uint = (REX_B4 if bits & 16 else 0) | (REX_X4 if bits & 32 else 0) | (REX_R4 if bits & 64 else 0)
    return REX | (REX_W if bits & 8 else 0) | low | high


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def dwarf(number: cython.uint) -> cython.int:
    """The number of a register of the machine, as `registers` has them."""
    return number - 16 + BEHIND if number & 16 else (NUMBERS >> (4 * number)) & 15


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def register(kind: cython.uint, number: cython.uint, prefix: cython.uint) -> cython.int:
    """The number of a register of the machine, as operands of a width name it."""
    if kind & BYTE and prefix & REX == 0:
        number &= 3  # ah, ch, dh and bh are parts of rax, rcx, rdx and rbx
    return dwarf(number)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def of_rm(kind: cython.uint, modrm: cython.uint, prefix: cython.uint) -> cython.int:
    """The register that rm names."""
    return register(kind, (modrm & 7) | (prefix & BASE), prefix)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def of_reg(kind: cython.uint, modrm: cython.uint, prefix: cython.uint) -> cython.int:
    """The register that reg names."""
    return register(kind, ((modrm >> 3) & 7) | ((prefix >> TO_REG) & BASE), prefix)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def of_opcode(kind: cython.uint, opcode: cython.uint, prefix: cython.uint) -> cython.int:
    """The register that the low bits of an opcode name."""
    return register(kind, (opcode & 7) | (prefix & BASE), prefix)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def of_vvvv(prefix: cython.uint) -> cython.int:
    """The register that VEX.vvvv or EVEX.vvvv names."""
    return dwarf((prefix >> VVVV) & 31)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def condition_of(opcode: cython.uint) -> cython.int:
    """The `Condition` that the low bits of an opcode name."""
    return (cython.cast(cython.ulonglong, CONDITIONS) >> (4 * (opcode & 15))) & 15


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def operand_width(kind: cython.uint, prefix: cython.uint) -> cython.int:
    """Bytes of an operand."""
    if kind & BYTE:
        return 1
    return 8 if prefix & REX_W else 2 if prefix & DATA_16 else 4


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def vector_width(opcode: cython.uint, prefix: cython.uint) -> cython.int:
    """Bytes that the store of a vector register writes: one or two numbers, or all."""
    if opcode == 0x11:
        return 4 if prefix & REP else 8 if prefix & REPNE else 16
    if opcode == 0x13 or opcode == 0x17 or opcode == 0xD6:
        return 8
    return 8 if (opcode == 0x7F or opcode == 0xE7) and prefix & (DATA_16 | REP | REPNE) == 0 else 16


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def make_only(effect: cython.int, first: cython.int, second: cython.int, out: Instruction) -> cython.int:
    """An effect on one register, from another; nothing else is changed."""
    out.clobbers = 0
    return make(effect, first, second, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def add_only(effect: cython.int, register: cython.int, number: cython.longlong, out: Instruction) -> cython.int:
    """An effect on one register, from itself and a number: `ADD` or `ALIGN`; nothing else is changed."""
    out.clobbers = 0
    return add(effect, register, register, number, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def stack_width(prefix: cython.uint) -> cython.int:
    """Bytes that go onto the stack or come from it."""
    return 2 if prefix & (DATA_16 | REX_W) == DATA_16 else 8


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def push(register: cython.int, prefix: cython.uint, out: Instruction) -> cython.int:
    """A register, or something unknown, goes onto the stack."""
    add_only(Effect.STORE, RSP, 0, out)
    out.first = register
    out.width = stack_width(prefix)
    out.moved = -out.width
    out.before = True
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def pop(register: cython.int, prefix: cython.uint, out: Instruction) -> cython.int:
    """And comes from there."""
    add_only(Effect.LOAD, RSP, 0, out)
    out.first = register
    out.width = stack_width(prefix)
    out.moved = out.width
    return 0
