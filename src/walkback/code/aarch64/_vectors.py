"""Floating point, vectors and matrices of AArch64 (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.aarch64.fields import (
        SETS_FLAGS,
        VECTORS,
        bad,
        clobber_general,
        clobber_vector,
        clobber_vectors,
    )
    from cython.cimports.walkback.code.effects import NONE
    from cython.cimports.walkback.code.filling import clobber, load, store
else:
    from walkback.code._instruction import Instruction
    from walkback.code.aarch64.fields import (
        SETS_FLAGS,
        VECTORS,
        bad,
        clobber_general,
        clobber_vector,
        clobber_vectors,
    )
    from walkback.code.effects import NONE
    from walkback.code.filling import clobber, load, store

_WHOLE = cython.declare(cython.uint, 0xFFC0E000)
_LOAD_WHOLE = cython.declare(cython.uint, 0x85804000)
_STORE_WHOLE = cython.declare(cython.uint, 0xE5804000)
"""`ldr` and `str` of a whole vector, as prologues save it."""
_DISTANCE = cython.declare(cython.uint, 0x3F1C00)
"""In them, how many lengths away from the base it is."""
_STORE_PREDICATE = cython.declare(cython.uint, 0xE5800000)


def floating(word: cython.uint, out: Instruction) -> cython.int:
    """Floating point and vectors: all write the vector register in the lowest bits, but for those that are named."""
    if word & 0x5F000000 == 0x1E000000:
        return _scalar(word, out)
    if word & 0x5F000000 == 0x1F000000:
        if word >> 31 or word & SETS_FLAGS:
            return bad(out)
    elif word >> 31 == 0 and word & 0x3FE08400 == 0x0E000400 and word & 0x6800 == 0x2800:  # smov, umov
        return clobber_general(word, out)
    elif word >> 31 == 0 and (word & 0x7FE0FC00 == 0x4E001C00 or word & 0x7FE08400 == 0x6E000400):
        if word & (1 << 20) and word & 0xF0000:  # ins into the upper half, which calls do not keep
            return 0
    elif word >> 31 and word >> 24 != 0xCE:
        return bad(out)
    return clobber_vector(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scalar(word: cython.uint, out: Instruction) -> cython.int:
    """Floating point of one number: conversions may go into general registers, and comparisons nowhere."""
    kind: cython.uint = (word >> 10) & 63
    operation: cython.uint = (word >> 16) & 31
    if word & SETS_FLAGS:
        return bad(out)
    if word & (1 << 21) == 0:
        if operation & 6 == 0:  # fcvtzs, fcvtzu
            return clobber_general(word, out)
    elif kind == 0:
        if operation & 6 == 0 or operation == 4 or operation == 5 or operation & 0x17 == 6 or operation == 0x1E:
            return clobber_general(word, out)
    elif word >> 31:
        return bad(out)
    elif kind & 3 == 1 or kind & 15 == 8:  # fccmp, fcmp
        return 0
    return clobber_vector(word, out)


def scalable(word: cython.uint, out: Instruction) -> cython.int:
    """Vectors whose length the machine chooses, and predicates."""
    kind: cython.uint = word >> 29
    if kind == 7:
        _store_scalable(word, out)
        if _is_there(word):
            out.index = NONE
            out.width = 2 * out.width
        return 0
    if kind > 3:
        return _load_scalable(word, out)
    operation: cython.uint = (word >> 13) & 7
    if kind == 0:
        if word & (1 << 21):
            if word & (1 << 24):
                return _permute(word, out)
            if operation == 7:  # cntb, incb and the like
                return clobber_general(word, out)
            if operation == 2 and word & (1 << 12):
                if word & (1 << 23):  # rdvl
                    return clobber_general(word, out)
                return clobber(word & 31, out)  # addvl, addpl
    elif kind == 1:
        if word & 0x01200000 != 0x01200000 or operation < 4:  # they write predicates
            return 0
        if operation < 6:
            return _count_predicates(word, out)
    elif word & (1 << 24):
        if kind == 2 and word & (1 << 21):
            if operation == 4:  # match
                return 0
            if operation == 7 and word & 0xC00800 == 0x800:  # aese and the like on many registers
                return clobber_vectors(word, 4 if word & 0x41000 == 0x40000 else 2, 1, out)
        if kind == 3 and word & (1 << 21) == 0 and (operation & 2 or (operation == 1 and word & 0x180000 == 0x100000)):
            return 0  # fcmeq and the like
    return clobber_vector(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _permute(word: cython.uint, out: Instruction) -> cython.int:
    """Instructions that reorder what vectors and predicates have."""
    operation: cython.uint = (word >> 13) & 7
    if operation == 2 or word & 0x39FC00 == 0x283800:  # those of predicates, pmov into one
        return 0
    if operation == 5 and word & 0xE0000 == 0:  # lasta, clasta
        return clobber_general(word, out)
    return clobber_vector(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_predicates(word: cython.uint, out: Instruction) -> cython.int:
    """cntp, incp and the like."""
    if word & 0x00180000 == 0:
        return clobber_general(word, out)
    if word & 0x1000:  # setffr, wrffr
        return 0
    if word & 0x800:
        return clobber_general(word, out)
    return clobber_vector(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _store_scalable(word: cython.uint, out: Instruction) -> cython.int:
    """Where the end is depends on the machine: the index says that the place is not known."""
    out.base = (word >> 5) & 31
    out.index = out.base
    if word & _WHOLE == _STORE_WHOLE:
        return store(VECTORS + cython.cast(cython.int, word & 31), 8, out)
    return store(NONE, 1, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_there(word: cython.uint) -> cython.bint:
    """Whether a store begins where its base leads, however long vectors are: a whole one has 16 bytes at least."""
    if word & _WHOLE == _STORE_WHOLE or word & _WHOLE == _STORE_PREDICATE:
        return word & _DISTANCE == 0
    return (word >> 13) & 7 == 7 and word & 0xF0000 == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _load_scalable(word: cython.uint, out: Instruction) -> cython.int:
    """Loads into up to four registers, and prefetching."""
    kind: cython.uint = word >> 29
    operation: cython.uint = (word >> 13) & 7
    part: cython.uint = (word >> 21) & 3
    count: cython.uint = 1
    if word & _WHOLE == _LOAD_WHOLE:
        out.base = (word >> 5) & 31
        if word & _DISTANCE == 0:
            return load(VECTORS + cython.cast(cython.int, word & 31), 16, out)
        out.index = out.base
        return load(VECTORS + cython.cast(cython.int, word & 31), 8, out)
    if kind == 5:
        if operation == 6 or (operation == 7 and word & (1 << 20) == 0):  # ld2b and the like
            count = part + 1
        elif (operation == 4 and part == 1) or (operation == 7 and part == 0):  # ld2q and the like
            count = ((word >> 23) & 3) + 1
        return clobber_vectors(word, count, 1, out)
    if word & 16 == 0 and _is_prefetch(kind, operation, part, (word >> 23) & 3):
        return 0
    if kind == 4 and operation == 0 and word & 0x01C00000 == 0x01800000:  # ldr of a predicate
        return 0
    return clobber_vector(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_prefetch(kind: cython.uint, operation: cython.uint, part: cython.uint, size: cython.uint) -> cython.bint:
    """Whether what looks like a load into vectors loads nothing."""
    if size == 0 and part & 1 and (operation < 4 or (kind == 6 and part == 3)):
        return True
    if kind == 6:
        return part == 0 and operation == 7
    return (part == 0 and operation > 5) or (size == 3 and part > 1 and operation < 4)


def matrix(word: cython.uint, out: Instruction) -> cython.int:
    """Instructions on matrices, and those on up to four scalable vectors at once."""
    kind: cython.uint = (word >> 24) & 0x7F
    if kind == 0x41:
        if word & (1 << 21) and word & (1 << 15):
            return _many(word, out)
    elif kind == 0x40:
        return _from_matrix(word, out)
    elif kind & 0x7E == 0x60:
        if word & (1 << 21):
            return _store_scalable(word, out)
    elif kind & 0x7E == 0x20 and word & (1 << 23) == 0:
        if word & (1 << 21):
            return _store_scalable(word, out)
        if kind & 1 == 0:
            return clobber_vectors(word & (28 if word & (1 << 15) else 30), 4 if word & (1 << 15) else 2, 1, out)
        if word & (1 << 15):
            return clobber_vectors(word & 0x13, 4, 4, out)
        return clobber_vectors(word & 0x17, 2, 8, out)
    elif kind > 1 and kind & 0x7E != 0x20:
        return bad(out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _from_matrix(word: cython.uint, out: Instruction) -> cython.int:
    """Out of a matrix or the lookup table: mova, movt, luti2 and the like."""
    size: cython.uint = (word >> 22) & 3
    operation: cython.uint = (word >> 17) & 31
    if operation == 1 or (size == 3 and operation > 3 and operation < 8):
        return clobber_vector(word, out)
    if operation == 3:
        return clobber_vectors(word, 4 if word & (1 << 10) else 2, 1, out)
    if size == 1 and operation == 6:
        return clobber_general(word, out)
    if size == 2 and operation < 16 and operation & 7 > 4:
        if word & (1 << 14):
            return clobber_vectors(word, 2, 8 if operation & 8 else 1, out)
        return clobber_vectors(word, 4, 4 if operation & 8 else 1, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _many(word: cython.uint, out: Instruction) -> cython.int:
    """Instructions on two or four vectors; some of them give only one."""
    operation: cython.uint = (word >> 10) & 31
    kind: cython.uint = (word >> 16) & 15
    count: cython.uint = 4 if word & 0x10000 else 2
    if operation < 8 or operation > 24:  # sel, fmul and luti6
        if operation > 28:
            count = 4
    elif operation < 20:
        count = 4 if operation & 2 else 2
    elif operation == 20:
        count = 2
    elif operation < 24:
        count = 2 if operation == 21 and word & 0x00C00000 == 0 else 1
    else:  # conversions, zip and the like
        count = 4 if word & (1 << 20) else 2
        if kind == 3 or kind == 4 or (kind == 0 and (word >> 22) & 3 != 2):
            count = 1
    if operation == 31:
        return clobber_vectors(word, count, 4, out)
    return clobber_vectors(word & (32 - count), count, 1, out)  # what is below the number means something else
