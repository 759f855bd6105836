"""What registers of s390x get from registers and from numbers (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import NONE, Effect, Flow
    from cython.cimports.walkback.code.filling import add, clobber, combine, constant, make
    from cython.cimports.walkback.code.s390x import kinds as shape
    from cython.cimports.walkback.code.s390x.fields import (
        SECOND,
        THIRD,
        away,
        field,
        float_register,
        number_16,
        number_32,
        operand,
        unsigned_32,
    )
    from cython.cimports.walkback.code.s390x.kinds import Does
else:
    from walkback.base.cursor import as_signed
    from walkback.code._instruction import Instruction
    from walkback.code.effects import NONE, Effect, Flow
    from walkback.code.filling import add, clobber, combine, constant, make
    from walkback.code.s390x import kinds as shape
    from walkback.code.s390x.fields import (
        SECOND,
        THIRD,
        away,
        field,
        float_register,
        number_16,
        number_32,
        operand,
        unsigned_32,
    )
    from walkback.code.s390x.kinds import Does


def between(kind: cython.uint, word: cython.ulonglong, place: cython.int, out: Instruction) -> cython.int:
    """What registers get from registers."""
    does: cython.uint = kind & 0xFF
    one: cython.int = field(word, place)
    two: cython.int = field(word, place - 4)
    three: cython.int = field(word, THIRD)
    if does == Does.COPY:
        return make(Effect.COPY, one, two, out)
    if does == Does.COPY_FLOAT:
        return make(Effect.COPY, float_register(one), float_register(two), out)
    if does == Does.TO_FLOAT:
        return make(Effect.COPY, float_register(one), two, out)
    if does == Does.FROM_FLOAT:
        return make(Effect.COPY, one, float_register(two), out)
    if does == Does.EXTEND:
        return make(Effect.EXTEND, one, two, out)
    if does == Does.TEST:
        return _test(kind, one, two, out)
    if does == Does.ADD_REGISTERS:
        return combine(Effect.ADD_REGISTERS, one, one, two, out)
    if does == Does.SUBTRACT:
        return combine(Effect.SUBTRACT, one, one, two, out)
    if does == Does.SYSTEM:
        out.flow = Flow.SYSTEM
        return 0
    if does == Does.SUBTRACT_HALF:
        return combine(Effect.SUBTRACT, one, one, NONE, out)
    if does == Does.ADD_THREE:
        return combine(Effect.ADD_REGISTERS, one, two, three, out)
    if does == Does.SUBTRACT_THREE:
        return combine(Effect.SUBTRACT, one, two, three, out)
    if does == Does.CLEAR and one == two:
        return constant(one, 0, out)
    if does == Does.SHIFT_LEFT and three == 0 and 0 < (word >> 16) & 63 <= 3:
        out.scale = 1 << cython.cast(cython.int, (word >> 16) & 63)
        return combine(Effect.ADD_REGISTERS, one, NONE, two, out)
    return clobber(one, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _test(kind: cython.uint, one: cython.int, two: cython.int, out: Instruction) -> cython.int:
    """The loads ltr and ltgr, which compare with zero."""
    out.width = (kind >> shape.NUMBER) & 0xFF
    if one == two:
        out.signed = True
        return make(Effect.COMPARE_CONSTANT, one, NONE, out)
    if out.width == 8:
        return make(Effect.COPY, one, two, out)
    out.width = 8
    return clobber(one, out)


def with_number(kind: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """What registers get from numbers."""
    does: cython.uint = kind & 0xFF
    one: cython.int = field(word, SECOND)
    unsigned: cython.longlong = unsigned_32(word)
    if does == Does.ADDRESS:
        return constant(one, as_signed(away(address, number_32(word))), out)
    if does == Does.LOAD_ADDRESS:
        return _load_address(kind, word, one, out)
    if does == Does.ADD:
        return add(Effect.ADD, one, one, number_16(word), out)
    if does == Does.ADD_TO:
        return add(Effect.ADD, one, field(word, SECOND - 4), number_16(word), out)
    if does == Does.ADD_32:
        return add(Effect.ADD, one, one, number_32(word), out)
    if does == Does.ADD_UNSIGNED:
        return add(Effect.ADD, one, one, unsigned, out)
    if does == Does.SUBTRACT_UNSIGNED:
        return add(Effect.ADD, one, one, -unsigned, out)
    if does == Does.CONSTANT:
        return constant(one, number_16(word), out)
    if does == Does.CONSTANT_32:
        return constant(one, number_32(word), out)
    if does == Does.CONSTANT_UNSIGNED:
        return constant(one, as_signed(((word >> 16) & 0xFFFF) << ((kind >> shape.NUMBER) & 0xFF)), out)
    if does == Does.CONSTANT_UNSIGNED_32:
        return constant(one, as_signed(cython.cast(cython.ulonglong, unsigned) << ((kind >> shape.NUMBER) & 0xFF)), out)
    if does == Does.AND:
        return _and(one, cython.cast(cython.longlong, (word >> 16) & 0xFFFF) - 0x10000, out)
    if does == Does.AND_32:
        return _and(one, unsigned - (cython.cast(cython.longlong, 1) << 32), out)
    return _rotate(does, word, one, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _and(one: cython.int, mask: cython.longlong, out: Instruction) -> cython.int:
    """Only low bits are cleared where the others are those of a power of two, negated."""
    cleared: cython.longlong = ~mask
    if cleared & (cleared + 1):
        return clobber(one, out)
    return add(Effect.ALIGN, one, one, mask, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rotate(does: cython.uint, word: cython.ulonglong, one: cython.int, out: Instruction) -> cython.int:
    """The like of risbg: with all bits from the highest on, and zeros below, it aligns."""
    start: cython.uint = cython.cast(cython.uint, (word >> 24) & 0xFF)
    last: cython.uint = cython.cast(cython.uint, (word >> 16) & 0xFF)
    turn: cython.uint = cython.cast(cython.uint, (word >> 8) & 63)
    two: cython.int = field(word, SECOND - 4)
    if does == Does.ROTATE_OR_TEST:
        return clobber(one, out) if start & 0x80 == 0 else 0
    if turn == 0 and last & 0x80 and start & 63 == 0 and last & 63:
        return add(Effect.ALIGN, one, two, -(cython.cast(cython.longlong, 1) << (63 - (last & 63))), out)
    if turn == 0 and last & 0x80 and start & 63 == 32 and last & 63 == 63:
        return make(Effect.EXTEND, one, two, out)
    return clobber(one, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _load_address(kind: cython.uint, word: cython.ulonglong, one: cython.int, out: Instruction) -> cython.int:
    """For la and lay."""
    out.first = one
    out.effect = Effect.ADD
    if operand(kind | shape.INDEX, word, out):
        out.effect = Effect.ADD_REGISTERS
    elif out.base == NONE:
        out.effect = Effect.CONSTANT
    return 0
