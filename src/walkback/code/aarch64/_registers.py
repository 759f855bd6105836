"""Data processing of AArch64 with registers (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.aarch64.fields import (
        LR,
        SETS_FLAGS,
        SUBTRACTS,
        ZERO,
        bad,
        clobber_general,
        extend,
        or_none,
        set_general,
        sign,
    )
    from cython.cimports.walkback.code.effects import NONE, Effect
    from cython.cimports.walkback.code.filling import clobber, combine, make
else:
    from walkback.code._instruction import Instruction
    from walkback.code.aarch64.fields import (
        LR,
        SETS_FLAGS,
        SUBTRACTS,
        ZERO,
        bad,
        clobber_general,
        extend,
        or_none,
        set_general,
        sign,
    )
    from walkback.code.effects import NONE, Effect
    from walkback.code.filling import clobber, combine, make


def registers(word: cython.uint, out: Instruction) -> cython.int:
    """Data processing with registers."""
    if word & (1 << 28) == 0:
        if word & (1 << 24) == 0:
            return logical(word, out)
        return add_registers(word, out)
    if word & (1 << 24):
        return _multiply(word, out)
    kind: cython.uint = (word >> 21) & 7
    if kind == 4:  # csel and the like
        if word & 0x20000800:
            return bad(out)
        return clobber_general(word, out)
    if kind == 6:
        if word & SUBTRACTS:
            return _one_source(word, out)
        return _two_sources(word, out)
    if kind == 2:  # ccmp, ccmn
        return bad(out) if word & 0x20000410 != 0x20000000 else 0
    if kind:
        return bad(out)
    if word & 0xFC00 == 0:  # adc, sbc
        return clobber_general(word, out)
    if word >> 31:
        if word & 0x60007C10 == 0x20000400:  # rmif
            return 0
        if word & 0x2000E000 == 0x2000:  # addpt, subpt
            return clobber(word & 31, out)
    elif word & 0x7FFFBC1F == 0x3A00080D:  # setf8, setf16
        return 0
    return bad(out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _multiply(word: cython.uint, out: Instruction) -> cython.int:
    """Multiplication with three sources."""
    kind: cython.uint = (word >> 21) & 7
    if word & 0x60000000 or kind == 4 or kind == 7 or (kind and word >> 31 == 0):
        return bad(out)
    if kind & 3 == 2 and word & (1 << 15):
        return bad(out)
    return clobber_general(word, out)


def logical(word: cython.uint, out: Instruction) -> cython.int:
    """and, orr, eor, ands and their negations; mov is one of them."""
    if word & 0x7FE0FFE0 != 0x2A0003E0:
        if word >> 31 == 0 and word & (1 << 15):
            return bad(out)
        return clobber_general(word, out)
    first: cython.uint = word & 31
    second: cython.uint = (word >> 16) & 31
    if word >> 31 == 0:
        return extend(first, second, False, out)
    return _copy(first, second, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(first: cython.uint, second: cython.uint, out: Instruction) -> cython.int:
    """Copy a register; neither is the stack pointer."""
    if second == 31:
        return set_general(first, 0, out)
    if first != 31:
        make(Effect.COPY, first, second, out)
    return 0


def add_registers(word: cython.uint, out: Instruction) -> cython.int:
    """add, sub, cmp and cmn of registers."""
    if word & (1 << 21):
        return _add_extended(word, out)
    return _add_shifted(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_shifted(word: cython.uint, out: Instruction) -> cython.int:
    """The second register may be shifted."""
    first: cython.uint = word & 31
    base: cython.int = or_none((word >> 5) & 31)
    index: cython.int = or_none((word >> 16) & 31)
    shift: cython.uint = (word >> 10) & 63
    if word & 0x00C00000 == 0x00C00000 or (word >> 31 == 0 and shift > 31):
        return bad(out)
    if word & SETS_FLAGS and first == 31:
        if word >> 30 == 3 and shift == 0:
            return _compare(base, index, out)
        return 0
    if first == 31:
        return 0
    if word >> 31 == 0 or index == NONE:
        return clobber(first, out)
    is_scaled: cython.bint = word & 0x00C00000 == 0 and shift <= 4
    if word & SUBTRACTS == 0 and is_scaled:
        out.scale = 1 << shift
        return combine(Effect.ADD_REGISTERS, first, base, index, out)
    if word & SUBTRACTS and (shift == 0 or is_scaled) and base != NONE:
        out.scale = 1 << shift
        return combine(Effect.SUBTRACT, first, base, index, out)
    return clobber(first, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _compare(first: cython.int, second: cython.int, out: Instruction) -> cython.int:
    """Compare registers."""
    if first == NONE:
        return 0
    if second == NONE:
        out.effect = Effect.COMPARE_CONSTANT
        out.first = first
        return 0
    return make(Effect.COMPARE, first, second, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_extended(word: cython.uint, out: Instruction) -> cython.int:
    """The second register is extended from what width and signed say."""
    first: cython.int = word & 31
    base: cython.int = (word >> 5) & 31
    index: cython.int = or_none((word >> 16) & 31)
    extension: cython.uint = (word >> 13) & 7
    shift: cython.uint = (word >> 10) & 7
    whole: cython.bint = extension & 3 == 3 and shift == 0
    if word & 0x00C00000 or shift > 4:
        return bad(out)
    if word & SETS_FLAGS and first == ZERO:
        if word >> 30 == 3 and whole:
            return _compare(base, index, out)
        return 0
    if word >> 31 == 0:
        return clobber(first, out)
    if index == NONE:
        return make(Effect.COPY, first, base, out)
    if word & SUBTRACTS == 0:
        out.scale = 1 << shift
        out.width = 1 << (extension & 3)
        out.signed = extension > 3
        return combine(Effect.ADD_REGISTERS, first, base, index, out)
    return combine(Effect.SUBTRACT, first, base, index, out) if whole else clobber(first, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _two_sources(word: cython.uint, out: Instruction) -> cython.int:
    """Division, shifts, checksums, and what has to do with tags."""
    operation: cython.uint = (word >> 10) & 63
    known: cython.uint = 0x0FFF1F3D if word >> 31 else 0x0FFF0F0C
    if (word & SETS_FLAGS and operation) or operation > 31 or (known >> operation) & 1 == 0:
        return bad(out)
    if operation == 4:  # irg
        return clobber(word & 31, out)
    return clobber_general(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _one_source(word: cython.uint, out: Instruction) -> cython.int:
    """Reversal and counting of bits, and authentication."""
    operation: cython.uint = (word >> 10) & 63
    kind: cython.uint = (word >> 16) & 31
    if word & SETS_FLAGS or kind > 1:
        return bad(out)
    if kind == 0:
        return clobber_general(word, out)
    if operation & 0x20:  # with the program counter
        if operation & 0x16 == 2:  # pacia171615 and the like
            return clobber(17, out)
        if operation & 0x14 == 4:
            return sign(Effect.AUTHENTICATE, operation & 1 != 0, NONE, out)
        return sign(Effect.SIGN, operation & 1 != 0, NONE, out)
    if operation & 0x10 == 0 and operation & 2 == 0 and word & 31 == LR:
        modifier: cython.int = NONE if operation & 8 else (word >> 5) & 31
        return sign(Effect.AUTHENTICATE if operation & 4 else Effect.SIGN, operation & 1 != 0, modifier, out)
    return clobber_general(word, out)
