"""Instructions of AArch64 (compiled): where control goes, and what becomes of registers and the stack.

Arm's manual decodes in this order too: first the bits 28 to 25.
"""

import cython

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.aarch64 import _atomics, _branches, _immediates, _memory, _registers, _vectors
    from cython.cimports.walkback.code.aarch64.fields import IS_VECTOR, bad
    from cython.cimports.walkback.code.effects import Flow
else:
    from walkback.code._instruction import Instruction
    from walkback.code.aarch64 import _atomics, _branches, _immediates, _memory, _registers, _vectors
    from walkback.code.aarch64.fields import IS_VECTOR, bad
    from walkback.code.effects import Flow


@cython.boundscheck(False)
def decode(
    code,
    pos: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    address: cython.ulonglong,
    out: Instruction,
) -> cython.int:
    """Decode one instruction into `out`, which was cleared."""
    out.length = 4
    if end - pos < 4:
        out.flow = Flow.BAD
        return 0
    word: cython.uint = code[pos]
    word |= cython.cast(cython.uint, code[pos + 1]) << 8
    word |= cython.cast(cython.uint, code[pos + 2]) << 16
    word |= cython.cast(cython.uint, code[pos + 3]) << 24
    top: cython.uint = word >> 24
    # What programs are mostly made of.
    if top == 0x91 or top == 0xD1 or top == 0x11 or top == 0x51:
        return _immediates.add_number(word, out)
    elif top == 0xF1 or top == 0x71:  # noqa: RET505 - one chain becomes one jump
        return _immediates.subtract_number(word, out)
    elif top == 0xAA or top == 0x2A:
        return _registers.logical(word, out)
    elif top == 0x8B or top == 0xCB or top == 0xEB or top == 0x6B or top == 0x0B or top == 0x4B:
        return _registers.add_registers(word, out)
    elif top == 0xF9 or top == 0xB9 or top == 0x39 or top == 0x79 or top == 0x3D or top == 0xFD:
        return _memory.scaled(word, out)
    elif top == 0xF8 or top == 0xB8 or top == 0x38 or top == 0x78 or top == 0x3C or top == 0xFC:
        return _unscaled(word, out)
    elif top == 0xA9 or top == 0xA8 or top == 0x29 or top == 0x6D or top == 0xAD:
        return _memory.pair(word, out)
    elif top == 0x94 or top == 0x95 or top == 0x96 or top == 0x97:
        return _branches.call(word, address, out)
    elif top == 0x14 or top == 0x15 or top == 0x16 or top == 0x17:
        return _branches.jump(word, address, out)
    elif top == 0x54:
        return _branches.conditional(word, address, out)
    elif top == 0x34 or top == 0x35 or top == 0xB4 or top == 0xB5:
        return _branches.branch_if_zero(word, address, out)
    elif top == 0x36 or top == 0x37 or top == 0xB6 or top == 0xB7:
        return _branches.branch_if_bit(word, address, out)
    elif top == 0x90 or top == 0xB0 or top == 0xD0 or top == 0xF0:
        return _immediates.page(word, address, out)
    elif top == 0x52 or top == 0xD2 or top == 0x12 or top == 0x92 or top == 0x72 or top == 0xF2:
        return _immediates.number(word, out)
    return _by_group(word, address, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _by_group(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Decode by the groups of the manual."""
    group: cython.uint = (word >> 25) & 15
    if group & 5 == 4:
        return _loads_and_stores(word, address, out)
    if group & 14 == 8:
        return _immediates.immediate(word, address, out)
    if group & 14 == 10:
        return _branches.branch(word, address, out)
    if group & 7 == 5:
        return _registers.registers(word, out)
    if group & 7 == 7:
        return _vectors.floating(word, out)
    if group == 2:
        return _vectors.scalable(word, out)
    if group == 0 and word >> 31:
        return _vectors.matrix(word, out)
    if word < 0x10000:
        out.flow = Flow.TRAP  # udf
        return 0
    return bad(out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _loads_and_stores(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Loads and stores."""
    kind: cython.uint = (word >> 28) & 3
    if kind == 2:
        return _memory.pair(word, out)
    if kind == 3:
        if word & (1 << 24):
            return _memory.scaled(word, out)
        return _unscaled(word, out)
    if kind == 1:
        if word & (1 << 24) == 0:
            return _memory.literal(word, address, out)
        return _atomics.later(word, out)
    if word & IS_VECTOR:
        return _memory.structures(word, out)
    return _atomics.exclusive(word, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unscaled(word: cython.uint, out: Instruction) -> cython.int:
    """At a base and a number of bytes, at a base and a register, or whatever else shares their first bits."""
    out.base = (word >> 5) & 31
    if word & (1 << 21) == 0:
        return _memory.near(word, out)
    if word & 0xC00 == 0x800:
        return _memory.indexed(word, out)
    if word & 0x400:
        return _memory.authenticated(word, out)
    return _atomics.atomic(word, out)
