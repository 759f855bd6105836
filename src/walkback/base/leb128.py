"""Numbers in LEB128 (DWARF 5, section 7.6): 7 bits a byte, the lowest first (a face: kernels compile this in)."""

import cython

from walkback.base.bits import WORD

MORE = 0x80
"""The bit that all bytes but the last have."""
DIGIT = 0x7F
DIGIT_BITS = 7
SIGN = 0x40
"""The bit of the last byte that a negative number has."""
WORD_DIGITS = 10
"""Digits that 64 bits need."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def leb128(
    data: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t, end: cython.Py_ssize_t, is_signed: cython.bint
) -> tuple[cython.ulonglong, cython.Py_ssize_t]:
    """A number and the place behind it, -1 if it is cut off; `pos` is not negative. Bits above 64 are dropped."""
    value: cython.ulonglong = 0
    shift: cython.int = 0
    byte: cython.ulonglong = MORE
    end = min(end, data.shape[0])
    with cython.boundscheck(False):
        while byte & MORE:
            if pos >= end:
                return (0, -1)
            byte = data[pos]
            pos += 1
            if shift < 64:
                value |= ((byte & DIGIT) << shift) & WORD
                shift += DIGIT_BITS
    if is_signed and byte & SIGN and shift < 64:
        value |= (WORD << shift) & WORD
    return (value, pos)
