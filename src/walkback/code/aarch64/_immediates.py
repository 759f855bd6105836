"""Data processing of AArch64 with a number in the instruction (compiled)."""

import cython

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.aarch64.fields import (
        IS_LOAD,
        SETS_FLAGS,
        SUBTRACTS,
        ZERO,
        away,
        bad,
        clobber_general,
        extend,
        set_general,
        sign,
        signed_low,
    )
    from cython.cimports.walkback.code.effects import NONE, Effect
    from cython.cimports.walkback.code.filling import add, clobber, combine, constant, make
else:
    from walkback.base.cursor import as_signed
    from walkback.code._instruction import Instruction
    from walkback.code.aarch64.fields import (
        IS_LOAD,
        SETS_FLAGS,
        SUBTRACTS,
        ZERO,
        away,
        bad,
        clobber_general,
        extend,
        set_general,
        sign,
        signed_low,
    )
    from walkback.code.effects import NONE, Effect
    from walkback.code.filling import add, clobber, combine, constant, make

_WORD = cython.declare(cython.ulonglong, WORD)
_HALF = cython.declare(cython.ulonglong, WORD >> 32)
_PAGES = cython.declare(cython.ulonglong, WORD - 0xFFF)


def immediate(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Data processing with a number."""
    kind: cython.uint = (word >> 23) & 7
    if kind < 2:
        if word >> 31:
            return page(word, address, out)
        return set_general(word & 31, as_signed(away(address, _distance(word))), out)
    if kind == 2:
        return subtract_number(word, out) if word & SUBTRACTS else add_number(word, out)
    if kind == 3:
        return _tag_or_limit(word, out)
    if kind == 6:
        return _bitfield(word, out)
    if kind == 7:
        return _extract(word, out)
    return number(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _tag_or_limit(word: cython.uint, out: Instruction) -> cython.int:
    """Numbers with tags (addg and subg), and smax, umax, smin and umin."""
    if word & SETS_FLAGS:
        return bad(out)
    if word & IS_LOAD:
        if word & 0x40300000:
            return bad(out)
        return clobber_general(word, out)
    if word >> 31 == 0:
        return bad(out)
    return clobber(word & 31, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _distance(word: cython.uint) -> cython.longlong:
    """The number of adr, and of adrp in pages."""
    return signed_low(word >> 5, 19) * 4 + ((word >> 29) & 3)


def page(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Address of a page."""
    return set_general(word & 31, as_signed(away(address & _PAGES, _distance(word) * 4096)), out)


def number(word: cython.uint, out: Instruction) -> cython.int:
    """Numbers of 16 bits, and logic with masks."""
    if word & (1 << 23):
        return _move_wide(word, out)
    return _logical_number(word, out)


def add_number(word: cython.uint, out: Instruction) -> cython.int:
    """Addition and subtraction; cmn is adds without a destination."""
    first: cython.int = word & 31
    base: cython.int = (word >> 5) & 31
    number: cython.longlong = ((word >> 10) & 0xFFF) << (12 if word & (1 << 22) else 0)
    if word & (1 << 23):
        return _tag_or_limit(word, out)
    if word & SETS_FLAGS and first == ZERO:
        return 0
    if word >> 31 == 0:
        if number:
            return clobber(first, out)
        return make(Effect.EXTEND, first, base, out)
    if number == 0:
        return make(Effect.COPY, first, base, out)
    return add(Effect.ADD, first, base, -number if word & SUBTRACTS else number, out)


def subtract_number(word: cython.uint, out: Instruction) -> cython.int:
    """Comparison is subs without a destination."""
    if word & 0x20800000 != SETS_FLAGS or word & 31 != 31:
        return add_number(word, out)
    out.effect = Effect.COMPARE_CONSTANT
    out.first = (word >> 5) & 31
    out.offset = ((word >> 10) & 0xFFF) << (12 if word & (1 << 22) else 0)
    out.width = 8 if word >> 31 else 4
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _logical_number(word: cython.uint, out: Instruction) -> cython.int:
    """and, orr, eor, ands and tst."""
    operation: cython.uint = (word >> 29) & 3
    first: cython.int = word & 31
    base: cython.int = (word >> 5) & 31
    mask: cython.ulonglong = _mask(word)
    if mask == 0:
        return bad(out)
    if operation == 3 and first == ZERO:
        return 0
    if operation == 1 and base == ZERO:
        return constant(first, as_signed(mask), out)
    others: cython.ulonglong = mask ^ _WORD
    if operation & 1 == operation >> 1 and base != ZERO and others & (others + 1) == 0:
        return add(Effect.ALIGN, first, base, as_signed(mask), out)
    return clobber(first, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _mask(word: cython.uint) -> cython.ulonglong:
    """The bits that an instruction on bits names, and 0 where it names none: a rotated run of ones, repeated."""
    size: cython.uint = 64
    ones: cython.uint = (word >> 10) & 63
    if word & (1 << 22) == 0:
        size = 32
        while size > 1 and ones & size:
            size >>= 1
    elif word >> 31 == 0:
        return 0
    ones &= size - 1
    if ones == size - 1:  # of a size of 1 too
        return 0
    rotation: cython.uint = (word >> 16) & (size - 1)
    every: cython.ulonglong = _WORD >> (64 - size)
    mask: cython.ulonglong = every >> (size - 1 - ones)
    if rotation:
        mask = ((mask >> rotation) | (mask << (size - rotation))) & every
    stop: cython.uint = 64 if word >> 31 else 32
    while size < stop:
        mask |= mask << size
        size *= 2
    return mask


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _move_wide(word: cython.uint, out: Instruction) -> cython.int:
    """movn, movz and movk."""
    operation: cython.uint = (word >> 29) & 3
    value: cython.ulonglong = (word >> 5) & 0xFFFF
    if operation == 1 or (word >> 31 == 0 and word & (1 << 22)):
        return bad(out)
    if operation == 3:
        return clobber_general(word, out)
    value <<= ((word >> 21) & 3) * 16
    if operation == 0:
        value ^= _WORD if word >> 31 else _HALF
    return set_general(word & 31, as_signed(value), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bitfield(word: cython.uint, out: Instruction) -> cython.int:
    """Fields of bits: those of all lower 32 bits are sxtw and uxtw, and short shifts to the left multiply."""
    operation: cython.uint = (word >> 29) & 3
    rotation: cython.uint = (word >> 16) & 63
    last: cython.uint = (word >> 10) & 63
    second: cython.uint = (word >> 5) & 31
    if operation == 3 or (word >> 31) != ((word >> 22) & 1) or (word >> 31 == 0 and word & 0x208000):
        return bad(out)
    if operation == 2 and rotation == last + 1 and last > 58 and second != 31 and word & 31 != 31:
        out.scale = 1 << (63 - last)
        return combine(Effect.ADD_REGISTERS, word & 31, NONE, second, out)
    if rotation == 0 and last == 31 and operation != 1:
        return extend(word & 31, second, operation == 0 and word >> 31 != 0, out)
    return clobber_general(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _extract(word: cython.uint, out: Instruction) -> cython.int:
    """extr, and autiasppc and autibsppc with a number."""
    if word >> 22 == 0x3CE and word & 31 == 31:
        return sign(Effect.AUTHENTICATE, word & (1 << 21) != 0, NONE, out)
    if word & 0x60200000 or (word >> 31) != ((word >> 22) & 1) or (word >> 31 == 0 and word & (1 << 15)):
        return bad(out)
    return clobber_general(word, out)
