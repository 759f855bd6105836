"""Loads and stores of s390x (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import NONE, Effect
    from cython.cimports.walkback.code.filling import clobber, load_table, make
    from cython.cimports.walkback.code.s390x import kinds as shape
    from cython.cimports.walkback.code.s390x.fields import (
        FIFTH,
        SECOND,
        THIRD,
        UNKNOWN_SIZE,
        away,
        clobber_range,
        field,
        float_register,
        known_operand,
        number_32,
        operand,
    )
    from cython.cimports.walkback.code.s390x.kinds import Does
else:
    from walkback.base.cursor import as_signed
    from walkback.code._instruction import Instruction
    from walkback.code.effects import NONE, Effect
    from walkback.code.filling import clobber, load_table, make
    from walkback.code.s390x import kinds as shape
    from walkback.code.s390x.fields import (
        FIFTH,
        SECOND,
        THIRD,
        UNKNOWN_SIZE,
        away,
        clobber_range,
        field,
        float_register,
        known_operand,
        number_32,
        operand,
    )
    from walkback.code.s390x.kinds import Does

if cython.compiled:
    _SIZES = cython.declare(cython.const[cython.uchar][::1])
_SIZES = memoryview(bytes([0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4]))
"""How many bytes a mask picks."""


def load(kind: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Loads that set whole registers, or more than one."""
    does: cython.uint = kind & 0xFF
    one: cython.int = field(word, SECOND)
    two: cython.int = field(word, SECOND - 4)
    number: cython.int = (kind >> shape.NUMBER) & 0xFF
    if does == Does.LOAD:
        known_operand(kind, word, out)
        return make(Effect.LOAD if out.index <= 0 else Effect.LOAD_TABLE, one, NONE, out)
    if does == Does.LOAD_SEVERAL:
        return _several(Effect.LOAD, kind, word, out)
    if does == Does.LOAD_TABLE or does == Does.ADD_TABLE or does == Does.LOAD_RELATIVE:
        load_table(one, number, kind & shape.SIGNED != 0, out)
        if does == Does.ADD_TABLE:
            out.second = one
        if does != Does.LOAD_RELATIVE:
            return operand(kind, word, out)
        out.offset = as_signed(away(address, number_32(word)))
        return 0
    if does == Does.LOAD_FLOAT:
        if operand(kind, word, out) or out.base == NONE:
            out.base = out.index = NONE
            out.offset = 0
            return clobber(float_register(one), out)
        return make(Effect.LOAD, float_register(one), NONE, out)
    if does == Does.LOAD_LOW:
        return clobber_range(one, two, out)
    if does == Does.LOAD_VECTORS:
        return _clobber_vectors(word, out)
    if does == Does.LOAD_MASKED:
        return clobber(one, out) if two else 0
    if does == Does.GET_ELEMENT:
        if _is_first_half(word) and word & 0x400 == 0:
            return make(Effect.COPY, one, float_register(two), out)
        return clobber(one, out)
    if does == Does.SET_ELEMENT:
        if _is_first_half(word) and word & 0x800 == 0:
            return make(Effect.COPY, float_register(one), two, out)
        number = 8 >> (field(word, FIFTH) & 3)
        if field(word, THIRD) == 0 and cython.cast(cython.int, word >> 16) & (2 * number - 1) >= number:
            return 0
    elif field(word, FIFTH) >= number:
        return 0
    return clobber(float_register(one), out) if word & 0x800 == 0 else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_first_half(word: cython.ulonglong) -> cython.bint:
    """Whether an element is all of the half of a vector that may be a floating point register."""
    return field(word, FIFTH) == 3 and field(word, THIRD) == 0 and word & (1 << 16) == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _clobber_vectors(word: cython.ulonglong, out: Instruction) -> cython.int:
    """Vectors from the first field to the second, as far as they are floating point registers; behind 31 comes 0."""
    one: cython.int = field(word, SECOND) | (16 if word & 0x800 else 0)
    last: cython.int = field(word, SECOND - 4) | (16 if word & 0x400 else 0)
    count: cython.int = ((last - one) & 31) + 1
    i: cython.int
    for i in range(count):
        if (one + i) & 31 < 16:
            clobber(float_register((one + i) & 15), out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _several(effect: cython.int, kind: cython.uint, word: cython.ulonglong, out: Instruction) -> cython.int:
    """For lmg and stmg; behind the last register comes the first."""
    one: cython.int = field(word, SECOND)
    out.effect = effect
    out.first = one
    out.count = ((field(word, SECOND - 4) - one) & 15) + 1
    if out.count == 2:
        out.second = (one + 1) & 15
    return known_operand(kind, word, out)


def store(kind: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Stores; which registers else are written is known by now."""
    does: cython.uint = kind & 0xFF
    one: cython.int = field(word, SECOND)
    two: cython.int = field(word, SECOND - 4)
    number: cython.int = (kind >> shape.NUMBER) & 0xFF
    if does == Does.STORE_SEVERAL:
        return _several(Effect.STORE, kind, word, out)
    out.effect = Effect.STORE
    if does == Does.STORE_WHOLE or does == Does.STORE_WHOLE_RELATIVE:
        out.first = one
    elif does == Does.STORE_FLOAT:
        out.first = float_register(one)
    elif does == Does.STORE_PART:
        out.width = number * (((two - one) & 15) + 1)
    elif does == Does.STORE_LENGTH:
        out.width = 16 * one + two + 1
    elif does == Does.STORE_SHORT:
        out.width = one + 1
    elif does == Does.STORE_UPTO:
        out.width = 1  # how many they are a register knows; they do not go over what was saved
    elif does == Does.STORE_SOMEWHERE:
        out.width = UNKNOWN_SIZE
    elif does == Does.STORE_VECTORS:
        out.width = 16 * (((two - one + (16 if word & 0x400 else 0) - (16 if word & 0x800 else 0)) & 31) + 1)
    elif does == Does.STORE_MASKED:
        out.width = _SIZES[two]
        if two == 0:
            out.effect = Effect.NOTHING
            return 0
    else:
        out.width = number
    if does == Does.STORE_RELATIVE or does == Does.STORE_WHOLE_RELATIVE:
        out.offset = as_signed(away(address, number_32(word)))
    elif does == Does.STORE_SOMEWHERE:
        out.index = 0
    else:
        known_operand(kind, word, out)
    return 0
