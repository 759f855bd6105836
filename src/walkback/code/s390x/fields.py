"""Fields of s390x's instructions, and their operands (a face: kernels compile these functions in).

An instruction stands in the upper ones of 48 bits: the register fields in the second byte, or in the fourth, an address
in the third and fourth.
"""

import cython

from walkback.base.bits import WORD
from walkback.code._instruction import Instruction
from walkback.code.effects import NONE
from walkback.code.s390x.kinds import INDEX, LONG

LINK = 14
"""The register that returns go to."""
FLOATS = 0xFBEAD9C873625140
"""The DWARF number of each floating point register, less 16: a hexadecimal digit for each, from the lowest on."""
LOW_32 = (1 << 32) - 1
SIGN_32 = 1 << 31
ALWAYS = 15
"""The mask of a branch that is always taken."""
UNKNOWN_SIZE = 256
"""In the place of a length that only a register knows; the lengths of most such instructions have one byte."""

# Where a field starts in the 48 bits.
SECOND = 36
THIRD = 28
FOURTH = 20
FIFTH = 12


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def field(word: cython.ulonglong, place: cython.int) -> cython.int:
    """Four bits."""
    return cython.cast(cython.int, (word >> place) & 15)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def number_16(word: cython.ulonglong) -> cython.longlong:
    """The signed number in the third and fourth byte."""
    number: cython.longlong = cython.cast(cython.longlong, (word >> 16) & 0xFFFF)
    return number - 0x10000 if number & 0x8000 else number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def number_32(word: cython.ulonglong) -> cython.longlong:
    """The signed number in the last four bytes."""
    return cython.cast(cython.longlong, (word & LOW_32) ^ SIGN_32) - cython.cast(cython.longlong, SIGN_32)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def unsigned_32(word: cython.ulonglong) -> cython.longlong:
    """The same without a sign."""
    return cython.cast(cython.longlong, word & LOW_32)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def away(address: cython.ulonglong, halfwords: cython.longlong) -> cython.ulonglong:
    """The address that lies so far from this one."""
    return (address + cython.cast(cython.ulonglong, (2 * halfwords) & WORD)) & WORD


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def behind(address: cython.ulonglong, out: Instruction) -> cython.ulonglong:
    """The address of the next instruction."""
    return (address + out.length) & WORD


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def displacement(kind: cython.uint, word: cython.ulonglong) -> cython.longlong:
    """The number in the address of an operand."""
    number: cython.longlong = cython.cast(cython.longlong, (word >> 16) & 0xFFF)
    if kind & LONG:
        number |= cython.cast(cython.longlong, (word >> 8) & 0xFF) << 12
        if number & 0x80000:
            number -= 0x100000
    return number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def operand(kind: cython.uint, word: cython.ulonglong, out: Instruction) -> cython.int:
    """The operand in memory; 0 stands for no register. Says whether an index is left."""
    out.base = field(word, THIRD)
    out.offset = displacement(kind, word)
    if out.base == 0:
        out.base = NONE
    if kind & INDEX:
        index: cython.int = field(word, SECOND - 4)
        if index and out.base == NONE:
            out.base = index
        elif index:
            out.index = index
            return True
    return False


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def known_operand(kind: cython.uint, word: cython.ulonglong, out: Instruction) -> cython.int:
    """The same, where memory that no register leads to is nowhere known."""
    operand(kind, word, out)
    if out.base == NONE:
        out.index = 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def clobber_range(first: cython.int, last: cython.int, out: Instruction) -> cython.int:
    """Clobber both and what is between them; behind the last register comes the first."""
    among: cython.uint = (2 << ((last - first) & 15)) - 1
    among <<= first
    out.clobbers |= (among | (among >> 16)) & 0xFFFF
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def float_register(number: cython.uint) -> cython.int:
    """The DWARF number of a floating point register."""
    return 16 + ((FLOATS >> (4 * number)) & 15)
