"""What instructions of AMD64 do whose opcodes have one byte (compiled)."""

import cython

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.amd64 import opcodes as shape
    from cython.cimports.walkback.code.amd64 import prefixes as has
    from cython.cimports.walkback.code.amd64 import registers
    from cython.cimports.walkback.code.amd64._writes import write
    from cython.cimports.walkback.code.amd64.operands import (
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
    from cython.cimports.walkback.code.effects import NONE, Effect, Flow
    from cython.cimports.walkback.code.filling import clobber, load, load_table, store
else:
    from walkback.code._instruction import Instruction
    from walkback.code.amd64 import opcodes as shape
    from walkback.code.amd64 import prefixes as has
    from walkback.code.amd64 import registers
    from walkback.code.amd64._writes import write
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
    from walkback.code.effects import NONE, Effect, Flow
    from walkback.code.filling import clobber, load, load_table, store

_ALL = cython.declare(cython.ulonglong, WORD)
_HALF = cython.declare(cython.longlong, WORD >> 32)


def special(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """What else is known of an instruction of the first map."""
    if opcode < 0x40:
        return _sum(opcode, modrm, prefix, number, out)
    if opcode < 0x60:
        register: cython.int = of_opcode(0, opcode, prefix)
        if opcode < 0x58:
            return push(register, prefix, out)
        return pop(register, prefix, out)
    if opcode == 0x63 or 0x86 < opcode < 0x8E or 0x90 <= opcode <= 0x99 or 0xB8 <= opcode < 0xC0:
        return _move(opcode, modrm, prefix, number, out)
    if opcode == 0x80 or opcode == 0x81 or opcode == 0x83:
        return _sum_with_number(opcode, modrm, prefix, number, out)
    if opcode & 0xF0 == 0x70 or opcode >= 0xC2:
        return _flow(opcode, modrm, prefix, number, out)
    if opcode == 0x8F:
        if modrm & 0x38:
            out.flow = Flow.BAD
        return pop(of_rm(0, modrm, prefix) if modrm >= 0xC0 else NONE, prefix, out)
    if opcode == 0x68 or opcode == 0x6A or opcode == 0x9C:
        return push(NONE, prefix, out)
    if opcode == 0x9D:
        return pop(NONE, prefix, out)
    if opcode & 0xFC == 0xA0:
        if opcode < 0xA2:
            clobber(registers.RAX, out)
        return 0
    return _string(opcode, prefix, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _string(opcode: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """ins, outs, movs, cmps, stos, lods and scas."""
    if opcode & 0xFE != 0xAA and opcode & 0xFE != 0xAE and opcode & 0xFE != 0x6C:
        clobber(registers.RSI, out)
    if opcode & 0xFE != 0xAC and opcode & 0xFE != 0x6E:
        clobber(registers.RDI, out)
    if opcode & 0xFE == 0xAC:
        clobber(registers.RAX, out)
    if prefix & (has.REP | has.REPNE):
        clobber(registers.RCX, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sum(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """add, or, adc, sbb, and, sub, xor and cmp of registers, and of rax and a number."""
    operation: cython.uint = opcode >> 3
    first: cython.int
    second: cython.int
    if opcode & 7 >= 4:
        return _sum_of_number(operation, registers.RAX, opcode & 1, prefix, number, out)
    if modrm < 0xC0:
        if operation == 7:
            out.effect = Effect.NOTHING
        return 0
    first = of_rm(0, modrm, prefix)
    second = of_reg(0, modrm, prefix)
    if opcode & 2:
        first, second = second, first
    if operation == 6 and first == second:
        make_only(Effect.CONSTANT, first, NONE, out)
    elif prefix & has.REX_W == 0:
        return 0
    elif operation == 7:
        make_only(Effect.COMPARE, first, second, out)
    elif operation == 0 or operation == 5:
        make_only(Effect.ADD_REGISTERS if operation == 0 else Effect.SUBTRACT, first, NONE, out)
        out.base = first
        out.index = second
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sum_of_number(
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
    elif prefix & has.REX_W and whole:
        if operation == 0 or operation == 5:
            add_only(Effect.ADD, register, number if operation == 0 else -number, out)
        elif operation == 4:
            add_only(Effect.ALIGN, register, number, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sum_with_number(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """The same of an operand and a number."""
    operation: cython.uint = (modrm >> 3) & 7
    kind: cython.uint = shape.BYTE if opcode == 0x80 else 0
    if modrm >= 0xC0:
        register: cython.int = of_rm(kind, modrm, prefix)
        if operation != 7:
            clobber(register, out)
        return _sum_of_number(operation, register, opcode != 0x80, prefix, number, out)
    if operation == 7:
        make_only(Effect.COMPARE_CONSTANT, NONE, NONE, out)
        out.base = out.index = NONE
        out.offset = number
        return 0
    if number == 0 and operation != 2 and operation != 3 and operation != 4:
        return 0  # memory stays as it was: a fence, or a touch of the stack
    return store(NONE, operand_width(kind, prefix), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _move(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """mov, movsxd, lea, xchg, cdqe, cqo."""
    whole: cython.bint = prefix & has.REX_W != 0
    if opcode >= 0x90:
        return _move_plain(opcode, prefix, number, out)
    reg: cython.int = of_reg(0, modrm, prefix)
    if modrm < 0xC0 and (opcode == 0x8B or opcode == 0x63):
        if opcode == 0x8B and whole and out.index == NONE:
            return make_only(Effect.LOAD, reg, NONE, out)
        if prefix & has.DATA_16:
            return clobber(reg, out)
        load_table(reg, 8 if whole and opcode == 0x8B else 4, opcode == 0x63, out)
    elif opcode == 0x8D:
        if modrm >= 0xC0:
            out.flow = Flow.BAD
        elif whole and prefix & has.ADDRESS_32 == 0:
            make_only(Effect.ADD if out.index == NONE else Effect.ADD_REGISTERS, reg, NONE, out)
        else:
            clobber(reg, out)
    elif opcode == 0x89 and modrm < 0xC0:
        store(reg if whole else NONE, operand_width(0, prefix), out)
    elif modrm >= 0xC0:
        rm: cython.int = of_rm(0, modrm, prefix)
        if opcode == 0x87:
            return make_only(Effect.EXCHANGE, rm, reg, out) if whole else 0
        if opcode == 0x89:
            reg, rm = rm, reg
        make_only(Effect.COPY if whole and opcode != 0x63 else Effect.EXTEND, reg, rm, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _move_plain(opcode: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction) -> cython.int:
    """Moves without ModRM: mov of a number, xchg, cdqe, cqo."""
    whole: cython.bint = prefix & has.REX_W != 0
    low: cython.int = of_opcode(0, opcode, prefix)
    if opcode >= 0xB8:
        make_only(Effect.CONSTANT, low, NONE, out)
        out.offset = number if whole else number & _HALF
    elif opcode == 0x98:
        make_only(Effect.EXTEND, registers.RAX, registers.RAX, out)
    elif opcode == 0x99:
        clobber(registers.RDX, out)
    elif low == registers.RAX:
        return 0
    elif whole:
        return make_only(Effect.EXCHANGE, registers.RAX, low, out)
    else:
        clobber(registers.RAX, out)
        clobber(low, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _flow(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """Jumps, calls, returns, and what else has an opcode from C2 on."""
    operation: cython.uint = (modrm >> 3) & 7
    if opcode & 0xF0 == 0x70 or opcode & 0xFC == 0xE0:
        out.flow = Flow.BRANCH
        if opcode < 0x80:
            out.condition = condition_of(opcode)
        elif opcode < 0xE3:
            clobber(registers.RCX, out)
    elif opcode == 0xE8:
        out.flow = Flow.CALL
    elif opcode == 0xE9 or opcode == 0xEB:
        out.flow = Flow.JUMP
    elif opcode == 0xC2 or opcode == 0xC3 or opcode == 0xCA or opcode == 0xCB:
        out.flow = Flow.RETURN
    elif opcode == 0xCF:
        out.flow = Flow.RETURN
        out.base, out.offset = registers.RSP, 24  # it takes the stack pointer from the stack, too
        load(registers.RSP, 8, out)
    elif opcode == 0xF4:
        out.flow = Flow.TRAP
    elif opcode == 0xC9:
        make_only(Effect.LEAVE, registers.RSP, NONE, out)
        out.base = registers.RBP
    elif opcode == 0xC8:
        clobber(registers.RSP, out)
        clobber(registers.RBP, out)
    elif opcode == 0xCD:
        clobber(registers.RAX, out)
    elif opcode == 0xC6 or opcode == 0xC7:
        return _move_number(opcode, modrm, prefix, number, out)
    elif opcode >= 0xF6:
        return _group(opcode, operation, modrm, prefix, out)
    else:
        return _float(opcode, operation, modrm, out)
    out.target = cython.cast(cython.ulonglong, number) & _ALL
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _move_number(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """Mov of a number; xbegin and xabort."""
    if modrm == 0xF8:
        out.clobbers = 0
        clobber(registers.RAX, out)
        if opcode == 0xC7:
            out.flow = Flow.BRANCH
            out.target = cython.cast(cython.ulonglong, number) & _ALL
    elif modrm & 0x38:
        out.flow = Flow.BAD
    elif modrm >= 0xC0 and opcode == 0xC7:
        make_only(Effect.CONSTANT, of_rm(0, modrm, prefix), NONE, out)
        out.offset = number if prefix & has.REX_W else number & _HALF
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _group(
    opcode: cython.uint, operation: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction
) -> cython.int:
    """F6, F7, FE and FF."""
    kind: cython.uint = shape.RM if opcode & 1 else shape.RM | shape.BYTE
    if opcode < 0xF8:
        if operation >= 4:
            clobber(registers.RAX, out)
            if opcode == 0xF7:
                clobber(registers.RDX, out)
        elif operation >= 2:
            write(kind, opcode, modrm, prefix, out)
    elif operation < 2:
        write(kind, opcode, modrm, prefix, out)
        if opcode == 0xFF and modrm >= 0xC0 and prefix & has.REX_W:
            register: cython.int = of_rm(0, modrm, prefix)
            add_only(Effect.ADD, register, -1 if operation else 1, out)
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
@cython.nogil
@cython.exceptval(check=False)
def _float(opcode: cython.uint, operation: cython.uint, modrm: cython.uint, out: Instruction) -> cython.int:
    """D8 to DF: what is stored, and `fnstsw %ax`."""
    if opcode == 0xDF and modrm == 0xE0:
        return clobber(registers.RAX, out)
    if modrm >= 0xC0 or opcode & 1 == 0 or operation == 0 or operation == 4 or operation == 5:
        return 0
    if operation < 4:
        return store(NONE, 8 if opcode == 0xDD else 2 if opcode == 0xDF else 4, out)
    if operation == 6:
        return store(NONE, 28 if opcode == 0xD9 else 108 if opcode == 0xDD else 10, out)
    return store(NONE, 10 if opcode == 0xDB else 8 if opcode == 0xDF else 2, out)
