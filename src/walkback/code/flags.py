"""Which instructions keep the flags, or the condition code (a face: kernels compile this in).

Only the usual ones are known to: moves, loads, stores, and addresses.
"""

import cython

from walkback.code.amd64.prefixes import EVEX, KEEPS_FLAGS, REX2
from walkback.code.amd64.promoted import compares
from walkback.code.machines import AARCH64, AMD64

DATA_16 = 0x66
"""The only legacy prefix that is looked behind."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def keeps_flags(
    machine: cython.int, code: cython.pointer(cython.const[cython.uchar]), pos: cython.Py_ssize_t
) -> cython.bint:
    """Whether the instruction at a place is known to keep them; the bytes behind it can be read."""
    if machine == AMD64:
        return keeps_flags_of_amd64(code, pos)
    one: cython.uint = code[pos]
    two: cython.uint = code[pos + 1]
    if machine == AARCH64:
        return keeps_flags_of_aarch64(
            one | two << 8 | code[pos + 2] << 16 | cython.cast(cython.uint, code[pos + 3]) << 24
        )
    if one == 0xE3:
        return code[pos + 5] == 0x04 or code[pos + 5] == 0x24 or code[pos + 5] == 0x14 or code[pos + 5] == 0x71
    if one == 0xB9:
        return two == 0x04 or two == 0x14 or two == 0x16
    if one == 0xA7:
        return two & 0xE == 0x8
    if one == 0xC0:
        return two & 0xE == 0 or two & 0xE == 0xE
    return one == 0x18 or one == 0x41 or one == 0x50 or one == 0x58


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def keeps_flags_of_amd64(code: cython.pointer(cython.const[cython.uchar]), pos: cython.Py_ssize_t) -> cython.bint:
    """The same of AMD64."""
    one: cython.uint = code[pos]
    two: cython.uint = code[pos + 1]
    while one == DATA_16 or one & 0xF0 == 0x40:
        pos += 1
        one, two = two, code[pos + 1]
    if one == REX2:
        is_second: cython.bint = two & 0x80 != 0
        one, two = code[pos + 2], code[pos + 3]
        if is_second:
            one, two = 0x0F, one
    if one == EVEX and two & 7 == 4:
        opcode: cython.uint = code[pos + 4]
        if opcode & 0xF0 == 0x40:  # conditional moves
            return True
        return code[pos + 3] & KEEPS_FLAGS != 0 and not compares(opcode, (code[pos + 5] >> 3) & 7)
    if one == 0x0F:
        return (
            two & 0xF0 == 0x10 or two & 0xF0 == 0x40 or two & 0xF0 == 0x90 or two & 0xF6 == 0xB6 or two & 0xFE == 0x28
        )
    return (
        one & 0xF0 == 0x50
        or one == 0x63
        or (0x88 <= one <= 0x8B)
        or one == 0x8D
        or one & 0xF0 == 0xB0
        or one & 0xFE == 0xC6
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def keeps_flags_of_aarch64(word: cython.uint) -> cython.bint:
    """The same of a word: loads and stores, addresses, moves, and sums that do not set them."""
    if (word >> 25) & 5 == 4:
        return True
    group: cython.uint = (word >> 24) & 0x1F
    if group == 0x10 or (word >> 23) & 0x3F == 0x25 or (word >> 23) & 0x3F == 0x26:
        return True
    if group == 0x11 or group == 0x0B:
        return (word >> 29) & 1 == 0
    return (group == 0x0A or (word >> 23) & 0x3F == 0x24) and (word >> 29) & 3 != 3
