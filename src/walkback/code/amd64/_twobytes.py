"""What instructions of AMD64 do whose opcodes have two bytes, the first of them 0F (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.amd64 import opcodes as shape
    from cython.cimports.walkback.code.amd64 import prefixes as has
    from cython.cimports.walkback.code.amd64 import registers
    from cython.cimports.walkback.code.amd64._writes import write
    from cython.cimports.walkback.code.amd64.operands import make_only, of_reg, of_rm, pop, push
    from cython.cimports.walkback.code.effects import NONE, Effect, Flow
    from cython.cimports.walkback.code.filling import clobber, store
else:
    from walkback.code._instruction import Instruction
    from walkback.code.amd64 import opcodes as shape
    from walkback.code.amd64 import prefixes as has
    from walkback.code.amd64 import registers
    from walkback.code.amd64._writes import write
    from walkback.code.amd64.operands import make_only, of_reg, of_rm, pop, push
    from walkback.code.effects import NONE, Effect, Flow
    from walkback.code.filling import clobber, store


def special(opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """What else is known of an instruction of the second map."""
    operation: cython.uint = (modrm >> 3) & 7
    is_register: cython.bint = modrm >= 0xC0
    kind: cython.uint = 0
    if opcode == 0x05:
        clobber(registers.RAX, out)
        clobber(registers.RCX, out)
        clobber(registers.R11, out)
        out.flow = Flow.SYSTEM
    elif opcode == 0x07 or opcode == 0x35:
        out.flow = Flow.RETURN
    elif opcode == 0x0B or opcode == 0xB9 or opcode == 0xFF:
        out.flow = Flow.TRAP
    elif opcode == 0xA0 or opcode == 0xA8:
        return push(NONE, prefix, out)
    elif opcode == 0xA1 or opcode == 0xA9:
        return pop(NONE, prefix, out)
    elif opcode < 0x34 and opcode > 0x30:
        clobber(registers.RAX, out)
        clobber(registers.RDX, out)
    elif opcode == 0xA2:
        clobber(registers.RAX, out)
        clobber(registers.RBX, out)
        clobber(registers.RCX, out)
        clobber(registers.RDX, out)
    elif opcode == 0x00:
        kind = shape.RM if operation < 2 else 0
    elif opcode == 0x01:
        if operation == 4:
            kind = shape.RM
        elif modrm == 0xD0 or modrm == 0xEE or modrm == 0xF9:
            clobber(registers.RAX, out)
            clobber(registers.RDX, out)
            if modrm == 0xF9:
                clobber(registers.RCX, out)
    elif opcode == 0x1E:
        kind = shape.RM if is_register and operation == 1 and prefix & has.REP else 0
    elif opcode & 0xFE == 0x2C:
        kind = shape.REG if prefix & (has.REP | has.REPNE) else 0
    elif opcode & 0xFE == 0x78:
        kind = shape.RM if opcode == 0x78 and prefix & (has.DATA_16 | has.REPNE) == 0 else 0
    elif opcode == 0x7E:
        kind = shape.RM if prefix & has.REP == 0 else 0
    elif opcode & 0xFE == 0xA6:
        clobber(registers.RAX, out)
        clobber(registers.RCX, out)
        clobber(registers.RSI, out)
        clobber(registers.RDI, out)
    elif opcode == 0xAE:
        kind = shape.RM if is_register and operation < 2 and prefix & has.REP else 0
    elif opcode & 0xFE == 0xB6:
        if not is_register:
            return write(shape.REG, opcode, modrm, prefix, out)
        make_only(Effect.EXTEND, of_reg(0, modrm, prefix), of_rm(0 if opcode & 1 else shape.BYTE, modrm, prefix), out)
    elif opcode == 0xB8:
        kind = shape.REG
        if prefix & has.REP == 0:
            out.flow = Flow.BAD
    elif opcode == 0xBA:
        kind = shape.RM if operation > 4 else 0
        if operation < 4:
            out.flow = Flow.BAD
    elif opcode == 0xC7:
        if is_register:
            kind = shape.RM if operation > 5 and (prefix & has.REP == 0 or operation == 7) else 0
        elif operation == 1:
            clobber(registers.RAX, out)
            clobber(registers.RDX, out)
            return store(NONE, 16 if prefix & has.REX_W else 8, out)
    return write(kind, opcode, modrm, prefix, out)
