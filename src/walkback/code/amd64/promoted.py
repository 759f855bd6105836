"""What instructions of AMD64 do in map 4 of EVEX, where APX has those of the older maps (a face).

They may put their result into a register of its own, and leave flags alone.
"""

import cython

from walkback.code._instruction import Instruction
from walkback.code.amd64.onebyte import add_registers, add_to_operand, count
from walkback.code.amd64.opcodes import ADDS, ADDS_NUMBER, BYTE, COUNTS, DOES, DOES_SHIFT, REG, RENEWED, REPEATED, RM
from walkback.code.amd64.operands import make_only, of_reg, of_rm, of_vvvv, operand_width, pop, push
from walkback.code.amd64.prefixes import DATA_16, KEEPS_FLAGS, NEW_DATA, REP, REPNE, REX_W, VVVV
from walkback.code.amd64.writes import write
from walkback.code.effects import NONE, Effect, Flow
from walkback.code.filling import add, clobber, combine, store


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def fourth_map(
    kind: cython.uint,
    opcode: cython.uint,
    modrm: cython.uint,
    prefix: cython.uint,
    form: cython.uint,
    number: cython.longlong,
    out: Instruction,
) -> cython.int:
    """An instruction of map 4, with the last byte of EVEX as its form."""
    operation: cython.uint = (modrm >> 3) & 7
    if compares(opcode, operation):
        refused: cython.uint = REP | REPNE if opcode & 1 else REP | REPNE | DATA_16
        out.flow = Flow.BAD if form & 0xF0 or prefix & refused else Flow.NEXT
        return 0
    if not exists(kind, opcode, operation, prefix, form):
        out.flow = Flow.BAD
        return 0
    if opcode & 0xF0 == 0x40:
        return move_if(modrm, prefix, form, out)
    if opcode == 0x8F or (opcode == 0xFF and operation == 6):
        return push_or_pop_two(opcode == 0xFF, modrm, prefix, form, out)
    if opcode & 0xFE == 0xF0 or opcode == 0xF2:  # crc32; invept, invvpid and invpcid
        return 0 if prefix & REP else write(REG, opcode, modrm, prefix, out)
    if opcode == 0xF8:
        return move_directly(modrm, prefix, out)
    if opcode == 0x66 and prefix & (DATA_16 | REP) == 0:  # wrss; with them adcx and adox
        return write(RM, opcode, modrm, prefix, out)
    if opcode == 0x65 or opcode == 0xFC:  # wruss and aadd, aand, aor, axor, as the prefix says
        prefix &= ~DATA_16
    if form & NEW_DATA and opcode != 0x69 and opcode != 0x6B:
        return make_new(opcode, modrm, prefix, number, out)
    write(kind, opcode, modrm, prefix, out)
    kind = (kind >> DOES_SHIFT) & DOES
    if kind == ADDS:
        return add_registers(opcode, modrm, prefix, out)
    if kind == ADDS_NUMBER:
        return add_to_operand(opcode, modrm, prefix, number, out)
    return count(opcode, operation, modrm, prefix, out) if kind == COUNTS else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def exists(
    kind: cython.uint, opcode: cython.uint, operation: cython.uint, prefix: cython.uint, form: cython.uint
) -> cython.bint:
    """Whether there is such an instruction with this prefix and form."""
    is_move: cython.bint = opcode & 0xF0 == 0x40
    has_register: cython.bint = form & NEW_DATA != 0
    if form & 0xE3 or (kind & BYTE and prefix & DATA_16):
        return False
    if (prefix & (REP | REPNE) and not kind & REPEATED) or (is_move and prefix & REP):
        return False
    if opcode & 0xFE == 0xFE and operation > 1:
        return opcode == 0xFF and operation == 6
    if has_register and (not kind & RENEWED or (opcode & 0xFE == 0xF6 and operation > 3)):
        return False
    # Without a register for the result vvvv names none; nor does it where the form only says that zeros go above it.
    if opcode == 0x69 or opcode == 0x6B or (is_move and prefix & REPNE):
        has_register = False
    return has_register or (prefix >> VVVV) & 31 == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def compares(opcode: cython.uint, operation: cython.uint) -> cython.bint:
    """Whether it is one of the conditional comparisons, which leave everything but flags."""
    if opcode & 0xFC == 0x38 or opcode & 0xFE == 0x84:
        return True
    if opcode & 0xFC == 0x80:
        return operation == 7
    return opcode & 0xFE == 0xF6 and operation < 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def move_if(modrm: cython.uint, prefix: cython.uint, form: cython.uint, out: Instruction) -> cython.int:
    """Setcc, cmovcc and cfcmovcc."""
    if prefix & REPNE:
        if modrm < 0xC0:
            return store(NONE, 1, out)
        return clobber(of_rm(0, modrm, prefix), out)
    if form & NEW_DATA:
        return clobber(of_vvvv(prefix), out)
    return write(RM if form & KEEPS_FLAGS else REG, 0, modrm, prefix, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def push_or_pop_two(
    pushes: cython.bint, modrm: cython.uint, prefix: cython.uint, form: cython.uint, out: Instruction
) -> cython.int:
    """Push2 puts what rm names at the lower place, and pop2 takes what vvvv names from there."""
    if modrm < 0xC0 or form & NEW_DATA == 0 or (not pushes and modrm & 0x38):
        out.flow = Flow.BAD
        return 0
    one: cython.int = of_vvvv(prefix)
    other: cython.int = of_rm(0, modrm, prefix)
    if pushes:
        push(other, 0, out)
        out.second = one
    else:
        pop(one, 0, out)
        out.second = other
    out.count = 2
    out.moved *= 2
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def move_directly(modrm: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """Movdir64b and enqcmd, from memory to where a register leads; urdmsr and uwrmsr."""
    if modrm >= 0xC0:
        return clobber(of_rm(0, modrm, prefix), out) if prefix & REPNE else 0
    out.base = of_reg(0, modrm, prefix)
    out.index = NONE
    out.offset = 0
    return store(NONE, 64, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def make_new(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """What puts its result into a register of its own."""
    new: cython.int = of_vvvv(prefix)
    operation: cython.uint = opcode >> 3
    one: cython.int = of_rm(0, modrm, prefix)
    other: cython.int = of_reg(0, modrm, prefix)
    if modrm >= 0xC0 and prefix & REX_W:
        if opcode == 0x81 or opcode == 0x83:
            operation = (modrm >> 3) & 7
            if operation == 0 or operation == 5:
                return add(Effect.ADD, new, one, -number if operation else number, out)
            if operation == 4:
                return add(Effect.ALIGN, new, one, number, out)
        elif opcode == 0xFF:
            return add(Effect.ADD, new, one, -1 if modrm & 0x38 else 1, out)
        elif opcode & 1 and (operation == 0 or operation == 5):
            if opcode & 2:
                one, other = other, one
            return combine(Effect.SUBTRACT if operation else Effect.ADD_REGISTERS, new, one, other, out)
    if opcode & 0xFD == 0x31 and modrm >= 0xC0 and one == other and operand_width(0, prefix) > 2:
        return make_only(Effect.CONSTANT, new, NONE, out)
    return clobber(new, out)
