"""A value in one number of 64 bits (a face: kernels compile these functions in).

The low 8 bits are a `Known`, the next 16 a register or the number of a table, the rest is an offset with a sign.
"""

import cython

KIND_MASK = 0xFF
ID_SHIFT = 8
ID_MASK = 0xFFFF
OFFSET_SHIFT = 24


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def made(kind: cython.int, number: cython.int, offset: cython.longlong) -> cython.longlong:
    """A value from its three parts; an offset that is beyond all use makes it one that is not followed."""
    if offset >> 38 != 0 and offset >> 38 != -1:
        return 1
    return offset * (1 << OFFSET_SHIFT) + (number << ID_SHIFT) + kind


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def moved(value: cython.longlong, offset: cython.longlong) -> cython.longlong:
    """A value and a number."""
    kind: cython.int = value & KIND_MASK
    if offset == 0:
        return value
    if kind == 3 or kind == 4 or kind == 5 or kind == 7:
        return made(kind, (value >> ID_SHIFT) & ID_MASK, (value >> OFFSET_SHIFT) + offset)
    return value if kind == 0 or kind == 2 or kind == 10 else 1
