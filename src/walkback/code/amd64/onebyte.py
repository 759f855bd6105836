"""What instructions of AMD64 do whose opcodes have one byte (a face: kernels compile this in)."""

import cython

from walkback.code._instruction import Instruction
from walkback.code.amd64.opcodes import (
    ADDRESSES,
    ADDS,
    ADDS_NUMBER,
    ADDS_TO_RAX,
    BRANCHES,
    BYTE,
    CALLS,
    COUNTS,
    EXCHANGES,
    EXCHANGES_RAX,
    EXTENDS,
    JUMPS,
    LEAVES,
    LOADS,
    MOVES_NUMBER,
    POPS,
    PUSHES,
    RETURNS,
    RM,
    STORES,
    STORES_FLOAT,
    STORES_NUMBER,
)
from walkback.code.amd64.operands import (
    add_only,
    condition_of,
    make_only,
    of_opcode,
    of_reg,
    of_rm,
    operand_width,
    pop,
    push,
)
from walkback.code.amd64.prefixes import ADDRESS_32, DATA_16, REP, REPNE, REX, REX_W
from walkback.code.amd64.registers import RAX, RBP, RCX, RDI, RDX, RSI, RSP
from walkback.code.amd64.writes import write
from walkback.code.effects import NONE, Effect, Flow
from walkback.code.filling import clobber, load, load_table, store

LOWER_HALF = 0xFFFFFFFF
LINUX = 0x80
"""The interrupt by which Linux is asked for something, as programs of i386 do."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def first_map(
    does: cython.uint,
    opcode: cython.uint,
    modrm: cython.uint,
    prefix: cython.uint,
    number: cython.longlong,
    out: Instruction,
) -> cython.int:
    """What else is known of an instruction of the first map, or of a branch or extension of the second."""
    if does == BRANCHES:
        out.flow = Flow.BRANCH
        out.condition = condition_of(opcode)
        out.target = cython.cast(cython.ulonglong, number)
    elif does == CALLS:
        out.flow = Flow.CALL
        out.target = cython.cast(cython.ulonglong, number)
    elif does == JUMPS:
        out.flow = Flow.JUMP
        out.target = cython.cast(cython.ulonglong, number)
    elif does == LOADS:
        return load_operand(opcode, modrm, prefix, out)
    elif does == STORES:
        return store_operand(modrm, prefix, out)
    elif does == ADDRESSES:
        return take_address(modrm, prefix, out)
    elif does == ADDS:
        return add_registers(opcode, modrm, prefix, out)
    elif does == ADDS_NUMBER:
        return add_to_operand(opcode, modrm, prefix, number, out)
    elif does == ADDS_TO_RAX:
        return add_number(opcode >> 3, RAX, opcode & 1, prefix, number, out)
    elif does == PUSHES:
        return push(of_opcode(0, opcode, prefix), prefix, out)
    elif does == POPS:
        return pop(of_opcode(0, opcode, prefix), prefix, out)
    elif does == EXTENDS:
        return extend(opcode, modrm, prefix, out)
    elif does == MOVES_NUMBER:
        if operand_width(0, prefix) == 2:
            return 0
        make_only(Effect.CONSTANT, of_opcode(0, opcode, prefix), NONE, out)
        out.offset = number if prefix & REX_W else number & LOWER_HALF
    elif does == STORES_NUMBER:
        return store_number(opcode, modrm, prefix, number, out)
    elif does == COUNTS:
        return count(opcode, (modrm >> 3) & 7, modrm, prefix, out)
    elif does == EXCHANGES:
        if modrm >= 0xC0 and prefix & REX_W:
            return make_only(Effect.EXCHANGE, of_rm(0, modrm, prefix), of_reg(0, modrm, prefix), out)
    elif does == EXCHANGES_RAX:
        return exchange_with_rax(of_opcode(0, opcode, prefix), prefix, out)
    elif does == RETURNS:
        out.flow = Flow.RETURN
    elif does == LEAVES:
        make_only(Effect.LEAVE, RSP, NONE, out)
        out.base = RBP
    elif does == STORES_FLOAT:
        return store_float(opcode, (modrm >> 3) & 7, modrm, out)
    else:
        return rare(opcode, modrm, prefix, number, out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def load_operand(opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """Mov from an operand, and movsxd."""
    whole: cython.bint = prefix & REX_W != 0
    register: cython.int = of_reg(0, modrm, prefix)
    if operand_width(0, prefix) == 2:
        return clobber(register, out)
    if modrm >= 0xC0:
        effect: cython.int = Effect.COPY if whole and opcode == 0x8B else Effect.EXTEND
        return make_only(effect, register, of_rm(0, modrm, prefix), out)
    if opcode == 0x8B and whole and out.index == NONE:
        return make_only(Effect.LOAD, register, NONE, out)
    return load_table(register, 8 if whole and opcode == 0x8B else 4, opcode == 0x63, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def store_operand(modrm: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """Mov to an operand."""
    register: cython.int = of_reg(0, modrm, prefix)
    if modrm >= 0xC0 and operand_width(0, prefix) == 2:
        return clobber(of_rm(0, modrm, prefix), out)
    if modrm >= 0xC0:
        effect: cython.int = Effect.COPY if prefix & REX_W else Effect.EXTEND
        return make_only(effect, of_rm(0, modrm, prefix), register, out)
    return store(register if prefix & REX_W else NONE, operand_width(0, prefix), out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def take_address(modrm: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """Lea."""
    register: cython.int = of_reg(0, modrm, prefix)
    if modrm >= 0xC0:
        out.flow = Flow.BAD
    elif prefix & REX_W and prefix & ADDRESS_32 == 0:
        return make_only(Effect.ADD if out.index == NONE else Effect.ADD_REGISTERS, register, NONE, out)
    return clobber(register, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def add_registers(opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """Add, or, adc, sbb, and, sub, xor and cmp of two operands without a number."""
    operation: cython.uint = opcode >> 3
    second: cython.int = of_reg(0, modrm, prefix)
    if modrm < 0xC0:
        if opcode != 3 or prefix & REX_W == 0 or out.index == NONE:
            return 0
        out.clobbers = 0  # it may be the address of a table, to which an entry of it is added
        out.second = second
        return load_table(second, 8, False, out)
    first: cython.int = of_rm(0, modrm, prefix)
    if operation == 6 and first == second and operand_width(0, prefix) > 2:
        return make_only(Effect.CONSTANT, first, NONE, out)
    if prefix & REX_W == 0:
        return 0
    if opcode & 2:
        first, second = second, first
    if operation == 0 or operation == 5:
        make_only(Effect.ADD_REGISTERS if operation == 0 else Effect.SUBTRACT, first, NONE, out)
        out.base = first
        out.index = second
    elif operation == 7:
        return make_only(Effect.COMPARE, first, second, out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def add_number(
    operation: cython.uint,
    register: cython.int,
    whole: cython.bint,
    prefix: cython.uint,
    number: cython.longlong,
    out: Instruction,
) -> cython.int:
    """The same of a register and a number."""
    if operation == 7:
        make_only(Effect.COMPARE_CONSTANT, register, NONE, out)
        out.offset = number
    elif prefix & REX_W and whole:
        if operation == 0 or operation == 5:
            return add_only(Effect.ADD, register, number if operation == 0 else -number, out)
        if operation == 4:
            return add_only(Effect.ALIGN, register, number, out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def add_to_operand(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """The same of an operand and a number."""
    operation: cython.uint = (modrm >> 3) & 7
    kind: cython.uint = BYTE if opcode == 0x80 else 0
    if modrm >= 0xC0:
        register: cython.int = of_rm(kind, modrm, prefix)
        if operation != 7:
            clobber(register, out)
        return add_number(operation, register, opcode != 0x80, prefix, number, out)
    if operation == 7:
        make_only(Effect.COMPARE_CONSTANT, NONE, NONE, out)
        out.base = out.index = NONE
        out.offset = number
        return 0
    if number == 0 and operation != 2 and operation != 3 and operation != 4:
        return 0  # memory stays as it was: a fence, or a touch of the stack
    return store(NONE, operand_width(kind, prefix), out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def extend(opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """Movzx."""
    register: cython.int = of_reg(0, modrm, prefix)
    kind: cython.uint = 0 if opcode & 1 else BYTE
    if modrm < 0xC0 or (kind and modrm & 4 and prefix & REX == 0):  # of memory, or of ah, ch, dh or bh
        return clobber(register, out)
    out.width = 2 if opcode & 1 else 1
    return make_only(Effect.EXTEND, register, of_rm(kind, modrm, prefix), out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def exchange_with_rax(register: cython.int, prefix: cython.uint, out: Instruction) -> cython.int:
    """Xchg with rax, and nop."""
    if register == RAX:
        return 0
    if prefix & REX_W:
        return make_only(Effect.EXCHANGE, RAX, register, out)
    clobber(RAX, out)
    return clobber(register, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def store_number(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """Mov of a number to an operand; xbegin and xabort."""
    if modrm == 0xF8:
        out.clobbers = 0
        clobber(RAX, out)
        if opcode == 0xC7:
            out.flow = Flow.BRANCH
            out.target = cython.cast(cython.ulonglong, number)
    elif modrm & 0x38:
        out.flow = Flow.BAD
    elif modrm >= 0xC0 and opcode == 0xC7 and operand_width(0, prefix) > 2:
        make_only(Effect.CONSTANT, of_rm(0, modrm, prefix), NONE, out)
        out.offset = number if prefix & REX_W else number & LOWER_HALF
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def count(
    opcode: cython.uint, operation: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction
) -> cython.int:
    """F6, F7, FE and FF."""
    kind: cython.uint = RM if opcode & 1 else RM | BYTE
    if opcode < 0xF8:
        if operation >= 4:
            clobber(RAX, out)
            if opcode == 0xF7:
                clobber(RDX, out)
        elif operation >= 2:
            write(kind, opcode, modrm, prefix, out)
    elif operation < 2:
        write(kind, opcode, modrm, prefix, out)
        if opcode == 0xFF and modrm >= 0xC0 and prefix & REX_W:
            add_only(Effect.ADD, of_rm(0, modrm, prefix), -1 if operation else 1, out)
    elif opcode == 0xFE or operation == 7:
        out.flow = Flow.BAD
    elif operation == 6:
        push(of_rm(0, modrm, prefix) if modrm >= 0xC0 else NONE, prefix, out)
    else:
        out.flow = Flow.CALL_INDIRECT if operation < 4 else Flow.JUMP_INDIRECT
        if modrm >= 0xC0:
            out.first = of_rm(0, modrm, prefix)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def store_float(opcode: cython.uint, operation: cython.uint, modrm: cython.uint, out: Instruction) -> cython.int:
    """D8 to DF: what is stored, and `fnstsw %ax`."""
    if opcode == 0xDF and modrm == 0xE0:
        return clobber(RAX, out)
    if modrm >= 0xC0 or opcode & 1 == 0 or operation == 0 or operation == 4 or operation == 5:
        return 0
    if operation < 4:
        return store(NONE, 8 if opcode == 0xDD else 2 if opcode == 0xDF else 4, out)
    if operation == 6:
        return store(NONE, 28 if opcode == 0xD9 else 108 if opcode == 0xDD else 10, out)
    return store(NONE, 10 if opcode == 0xDB else 8 if opcode == 0xDF else 2, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def rare(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """What is left of the first map."""
    if opcode == 0x8C:  # a segment register, which has 2 bytes in memory
        return write(RM, opcode, modrm, prefix if modrm >= 0xC0 else DATA_16, out)
    if opcode == 0x68 or opcode == 0x6A or opcode == 0x9C:
        return push(NONE, prefix, out)
    if opcode == 0x9D:
        return pop(NONE, prefix, out)
    if opcode == 0x98:
        if operand_width(0, prefix) == 2:
            return clobber(RAX, out)
        out.width = operand_width(0, prefix) // 2
        return make_only(Effect.EXTEND, RAX, RAX, out)
    if opcode == 0x99:
        return clobber(RDX, out)
    if opcode == 0xCD and number & 0xFF == LINUX:
        out.flow = Flow.SYSTEM
    if opcode == 0xA0 or opcode == 0xA1 or opcode == 0xCD:
        return clobber(RAX, out)
    if opcode == 0xC8:
        clobber(RSP, out)
        return clobber(RBP, out)
    if opcode == 0xCF:
        out.flow = Flow.RETURN
        out.base, out.offset = RSP, 24  # it takes the stack pointer from the stack, too
        return load(RSP, 8, out)
    if opcode == 0xF4:
        out.flow = Flow.TRAP
    elif opcode & 0xFC == 0xE0:
        out.flow = Flow.BRANCH
        out.target = cython.cast(cython.ulonglong, number)
        if opcode < 0xE3:
            clobber(RCX, out)
    elif opcode & 0xFE != 0xA2:
        return string(opcode, prefix, out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def string(opcode: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """ins, outs, movs, cmps, stos, lods and scas."""
    if opcode & 0xFE != 0xAA and opcode & 0xFE != 0xAE and opcode & 0xFE != 0x6C:
        clobber(RSI, out)
    if opcode & 0xFE != 0xAC and opcode & 0xFE != 0x6E:
        clobber(RDI, out)
    if opcode & 0xFE == 0xAC:
        clobber(RAX, out)
    if prefix & (REP | REPNE):
        clobber(RCX, out)
    return 0
