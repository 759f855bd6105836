"""A value in one number of 64 bits, and what is known of it (a face: kernels compile these functions in).

The low 4 bits are a `Known`, the next 12 a register or the number of a table, the rest is an offset with a sign. It has
room for the addresses of kernels, which are negative.
"""

import cython

from walkback.proof.values import ID_MASK, ID_SHIFT, KIND_MASK, OFFSET_SHIFT, Known


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def made(kind: cython.int, number: cython.int, offset: cython.longlong) -> cython.longlong:
    """A value from its three parts; an offset that is beyond all use makes it one that is not followed."""
    if offset >> 47 != 0 and offset >> 47 != -1:
        return Known.OTHER
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
    if kind == Known.CONFLICT and (value >> ID_SHIFT) & ID_MASK:
        return in_steps((value >> ID_SHIFT) & ID_MASK, (value >> OFFSET_SHIFT) + offset)
    if is_vague(kind):
        return value
    if kind == Known.CFA or kind == Known.ALIGNED or kind == Known.ENTRY or kind == Known.CONSTANT:
        return made(kind, (value >> ID_SHIFT) & ID_MASK, (value >> OFFSET_SHIFT) + offset)
    return Known.OTHER


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def joined(one: cython.longlong, other: cython.longlong) -> cython.longlong:
    """What holds whichever of two different values it is."""
    kind: cython.int = one & KIND_MASK
    other_kind: cython.int = other & KIND_MASK
    if kind == Known.ANY or other_kind == Known.ANY:
        return Known.ANY
    if is_lost(kind) and is_lost(other_kind):
        return Known.OTHER
    if (kind == Known.STACK or other_kind == Known.STACK) and is_on_stack(kind) and is_on_stack(other_kind):
        return Known.STACK
    bits: cython.int = 1
    if kind == Known.CFA and other_kind == Known.CFA:
        distance: cython.longlong = abs((one >> OFFSET_SHIFT) - (other >> OFFSET_SHIFT))
        while distance & 1 == 0:
            distance >>= 1
            bits += 1
        if distance == 1:
            return in_steps(bits, one >> OFFSET_SHIFT)
    elif is_in_steps(one, other):
        return one
    return Known.CONFLICT


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def in_steps(bits: cython.int, offset: cython.longlong) -> cython.longlong:
    """CFA + offset, or any number of steps away from it, of two to the power of `bits` - 1 bytes each."""
    return made(Known.CONFLICT, bits, offset & ((cython.cast(cython.longlong, 1) << (bits - 1)) - 1))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_in_steps(value: cython.longlong, place: cython.longlong) -> cython.bint:
    """Whether a place at a known distance from the CFA is some of its steps away from a value that was met in steps."""
    bits: cython.int = (value >> ID_SHIFT) & ID_MASK
    if value & KIND_MASK != Known.CONFLICT or bits == 0 or place & KIND_MASK != Known.CFA:
        return False
    return in_steps(bits, place >> OFFSET_SHIFT) == value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_lost(kind: cython.int) -> cython.bint:
    """Whether this is certainly no value of the entry and no place on the stack."""
    return kind == Known.OTHER or (kind >= Known.CONSTANT and kind != Known.STACK)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_on_stack(kind: cython.int) -> cython.bint:
    """Whether this is certainly a place on the stack."""
    return kind == Known.CFA or kind == Known.ALIGNED or kind == Known.STACK


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_vague(kind: cython.int) -> cython.bint:
    """Whether this may be a place on the stack, and nobody knows which."""
    return kind == Known.ANY or kind == Known.CONFLICT or kind == Known.STACK
