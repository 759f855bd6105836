"""What instructions of AMD64 do behind 0F, the second map (a face: kernels compile this in)."""

import cython

from walkback.code._instruction import Instruction
from walkback.code.amd64.opcodes import REG, RM
from walkback.code.amd64.operands import pop, push
from walkback.code.amd64.prefixes import DATA_16, REP, REPNE, REX_W
from walkback.code.amd64.registers import R11, RAX, RBX, RCX, RDI, RDX, RSI
from walkback.code.amd64.writes import write
from walkback.code.effects import NONE, Flow
from walkback.code.filling import clobber, store

XSAVE_AREA = 576
"""The least that `xsave` and its like write."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def second_map(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """What else is known of an instruction of the second map."""
    operation: cython.uint = (modrm >> 3) & 7
    is_register: cython.bint = modrm >= 0xC0
    kind: cython.uint = 0
    if opcode == 0x05:
        clobber(RAX, out)
        clobber(RCX, out)
        clobber(R11, out)
        out.flow = Flow.SYSTEM
    elif opcode == 0x07 or opcode == 0x35 or opcode == 0xAA:  # sysret, sysexit and rsm
        out.flow = Flow.RETURN
    elif opcode == 0x0B or opcode == 0xB9 or opcode == 0xFF:
        out.flow = Flow.TRAP
    elif opcode == 0xA0 or opcode == 0xA8:
        return push(NONE, prefix, out)
    elif opcode == 0xA1 or opcode == 0xA9:
        return pop(NONE, prefix, out)
    elif opcode < 0x34 and opcode > 0x30:
        clobber(RAX, out)
        clobber(RDX, out)
    elif opcode == 0xA2:
        clobber(RAX, out)
        clobber(RBX, out)
        clobber(RCX, out)
        clobber(RDX, out)
    elif opcode == 0x00:
        kind = RM if operation < 2 else 0  # sldt and str
        prefix = prefix if is_register else DATA_16
    elif opcode == 0x01:
        if operation == 4:
            kind = RM  # smsw
            prefix = prefix if is_register else DATA_16
        elif operation < 2 and not is_register:
            return store(NONE, 10, out)  # sgdt and sidt
        elif modrm == 0xD0 or modrm == 0xEE or modrm == 0xF9:
            clobber(RAX, out)
            clobber(RDX, out)
            if modrm == 0xF9:
                clobber(RCX, out)
        elif (modrm == 0xEC and prefix & REP) or (modrm == 0xCA and prefix & (REP | REPNE)):
            out.flow = Flow.RETURN  # uiret, eretu and erets
    elif opcode & 0xFC == 0x20:  # what stands in the place of ModRM names a register
        modrm = cython.cast(cython.uint, number & 0x3F) | 0xC0
        kind = RM if opcode < 0x22 else 0
    elif opcode == 0x1E:
        kind = RM if is_register and operation == 1 and prefix & REP else 0
    elif opcode & 0xFE == 0x2C:
        kind = REG if prefix & (REP | REPNE) else 0
    elif opcode & 0xFE == 0x78:
        kind = RM if opcode == 0x78 and prefix & (DATA_16 | REPNE) == 0 else 0
        prefix |= REX_W  # vmread
    elif opcode == 0x7E:
        kind = RM if prefix & REP == 0 else 0
        prefix &= ~DATA_16  # it says which registers, not how many bytes
    elif opcode & 0xFE == 0xA6:
        clobber(RAX, out)
        clobber(RCX, out)
        clobber(RSI, out)
        clobber(RDI, out)
    elif opcode == 0xAE:
        if is_register:
            kind = RM if operation < 2 and prefix & REP else 0
        elif operation == 0 or operation == 3:
            return store(NONE, 4 if operation else 512, out)  # stmxcsr and fxsave
        elif (operation == 4 or operation == 6) and prefix & (DATA_16 | REP) == 0:
            return store(NONE, XSAVE_AREA, out)
    elif opcode == 0xB8:
        kind = REG
        if prefix & REP == 0:
            out.flow = Flow.BAD
    elif opcode == 0xBA:
        kind = RM if operation > 4 else 0
        if operation < 4:
            out.flow = Flow.BAD
    elif opcode == 0xC7:
        if is_register:
            kind = RM if operation > 5 and (prefix & REP == 0 or operation == 7) else 0
        elif operation == 1:
            clobber(RAX, out)
            clobber(RDX, out)
            return store(NONE, 16 if prefix & REX_W else 8, out)
        elif operation == 4 or operation == 5:
            return store(NONE, XSAVE_AREA, out)
        elif operation == 7:
            return store(NONE, 8, out)  # vmptrst
    return write(kind, opcode, modrm, prefix, out)
