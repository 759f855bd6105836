"""Loads and stores of AArch64 that are exclusive, ordered or atomic, and those of tags (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.aarch64._memory import one, one_vector
    from cython.cimports.walkback.code.aarch64.fields import (
        IS_LOAD,
        IS_VECTOR,
        SUBTRACTS,
        bad,
        clobber_general,
        clobber_vector,
        or_none,
        signed_low,
    )
    from cython.cimports.walkback.code.effects import NONE, Effect
    from cython.cimports.walkback.code.filling import add, load, load_table, store
else:
    from walkback.code._instruction import Instruction
    from walkback.code.aarch64._memory import one, one_vector
    from walkback.code.aarch64.fields import (
        IS_LOAD,
        IS_VECTOR,
        SUBTRACTS,
        bad,
        clobber_general,
        clobber_vector,
        or_none,
        signed_low,
    )
    from walkback.code.effects import NONE, Effect
    from walkback.code.filling import add, load, load_table, store


def atomic(word: cython.uint, out: Instruction) -> cython.int:
    """Operations on memory that give the old value."""
    operation: cython.uint = (word >> 12) & 15
    if word & IS_VECTOR:
        if (0xF1F1 >> operation) & 1 == 0 or (word & (1 << 15) and (word & 31 != 31 or word & (1 << 23))):
            return bad(out)
        if word & (1 << 15) == 0:
            clobber_vector(word, out)
        return store(NONE, 1 << (word >> 30 if word >> 30 else 1), out)
    if operation == 12 and word & 0x00C00000 == 0x00800000:  # ldapr
        return _acquire(word, out)
    if word >> 30 == 3 and operation > 8:
        return _block(word, operation, out)
    if operation > 11:
        return bad(out)
    clobber_general(word, out)
    return store(NONE, 1 << (word >> 30), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _block(word: cython.uint, operation: cython.uint, out: Instruction) -> cython.int:
    """st64b, st64bv, st64bv0 and ld64b."""
    if word & 0x00C00000 or operation > 13 or operation == 12 or word & 1 or word & 31 > 22:
        return bad(out)
    if operation == 13:
        out.clobbers |= cython.cast(cython.ulonglong, 0xFF) << (word & 31)
        return 0
    if operation != 9:
        clobber_general(word >> 16, out)
    return store(NONE, 64, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _acquire(word: cython.uint, out: Instruction) -> cython.int:
    """Load one register without its sign, at the place that `out` has."""
    if word >> 30 == 3:
        return load(or_none(word & 31), 8, out)
    return load_table(or_none(word & 31), 1 << (word >> 30), False, out)


def exclusive(word: cython.uint, out: Instruction) -> cython.int:
    """Exclusive and ordered loads and stores, and compare and swap; with bit 24 those without privileges."""
    size: cython.uint = word >> 30
    kind: cython.uint = (word >> 21) & 7
    status: cython.uint = (word >> 16) & 31
    out.base = (word >> 5) & 31
    if word & (1 << 24) and size < 2 and kind < 4:
        return bad(out)
    if kind == 2 or (kind == 6 and word & (1 << 24) == 0):
        return _acquire(word, out)
    if kind == 4 and word & (1 << 24) == 0:
        return store(or_none(word & 31) if size == 3 else NONE, 1 << size, out)
    if kind == 3 and size > 1 and word & (1 << 24) == 0:  # ldxp
        return _load_two(word, size, out)
    if word & (1 << 24):
        if kind & 5 == 4 and size & 1:  # cast, caspt
            return _compare_and_swap(word, size == 1, out)
    elif kind & 5 == 5 or (kind & 5 == 1 and size < 2):  # cas, casp
        return _compare_and_swap(word, kind & 4 == 0, out)
    if kind > 1 or (kind and word & (1 << 24)):
        return bad(out)
    clobber_general(status, out)
    return store(NONE, (1 << size) * (2 if kind else 1), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compare_and_swap(word: cython.uint, of_pairs: cython.bint, out: Instruction) -> cython.int:
    """The old value goes where the expected one was."""
    size: cython.uint = word >> 30
    if (word & (1 << 24) == 0 and word & 0x7C00 != 0x7C00) or (of_pairs and word & 0x10001):
        return bad(out)
    clobber_general(word >> 16, out)
    if of_pairs:
        clobber_general((word >> 16) + 1, out)
        size = 4 if word & 0x41000000 else 3
    return store(NONE, 1 << size, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _load_two(word: cython.uint, size: cython.uint, out: Instruction) -> cython.int:
    """Load two registers exclusively."""
    if size == 3:
        load(or_none(word & 31), 8, out)
        out.count = 2
        out.second = or_none((word >> 10) & 31)
        return 0
    clobber_general(word, out)
    clobber_general(word >> 10, out)
    return load(NONE, 8, out)


def later(word: cython.uint, out: Instruction) -> cython.int:
    """What later versions brought: ordered accesses, copies of memory, tags, and atomic operations on pairs."""
    size: cython.uint = word >> 30
    mode: cython.uint = (word >> 10) & 3
    out.base = (word >> 5) & 31
    if word & (1 << 21):
        if word & IS_VECTOR:
            return bad(out)
        return _tags(word, out) if size == 3 else _atomic_pair(word, out)
    if word & IS_VECTOR:
        if mode == 2:
            out.offset = signed_low(word >> 12, 9)
            return one_vector(word, out)
        if (mode == 1 or (mode == 0 and word & 0x00C00000 == 0x00C00000)) and size == 0:
            return _copy_memory(word, out)
        return bad(out)
    if mode == 0:
        out.offset = signed_low(word >> 12, 9)
        return bad(out) if size == 3 and word & (1 << 23) else one(word, out)
    if mode == 1 and size == 0:
        return _copy_memory(word, out)
    if mode == 2 and size > 1:
        return _ordered(word, size, out)
    if mode == 3 and word & 0x7FFFE000 == 0x591F0000:  # gcsstr, gcssttr
        return store(or_none(word & 31), 8, out)
    return bad(out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _ordered(word: cython.uint, size: cython.uint, out: Instruction) -> cython.int:
    """ldiapp, stilp, ldap, stlp, and ldapr and stlr that move their base."""
    width: cython.int = 1 << size
    second: cython.uint = (word >> 16) & 31
    if word & (1 << 23):
        if word & 0x3FF000:
            return bad(out)
        if word & IS_LOAD:
            out.moved = width
            return _acquire(word, out)
        out.moved = -width
        out.before = True
        return store(or_none(word & 31) if size == 3 else NONE, width, out)
    if word & 0xF000 == 0:
        out.moved = 2 * width if word & IS_LOAD else -2 * width
        out.before = word & IS_LOAD == 0
    if size == 3:
        out.effect = Effect.LOAD if word & IS_LOAD else Effect.STORE
        out.count = 2
        out.first = or_none(word & 31)
        out.second = or_none(second)
        return 0
    if word & IS_LOAD == 0:
        return store(NONE, 8, out)
    clobber_general(word, out)
    clobber_general(second, out)
    return load(NONE, 8, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy_memory(word: cython.uint, out: Instruction) -> cython.int:
    """The steps of copying and setting memory, which end nobody knows where: the index says that."""
    clobber_general(word, out)
    clobber_general(word >> 5, out)
    if word & 0x00C00000 != 0x00C00000:
        clobber_general(word >> 16, out)
    out.base = or_none(word & 31)
    out.index = or_none((word >> 5) & 31)
    return store(NONE, 1, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _tags(word: cython.uint, out: Instruction) -> cython.int:
    """Loads and stores of tags; some store zeros too."""
    mode: cython.uint = (word >> 10) & 3
    operation: cython.uint = (word >> 22) & 3
    if mode == 0:
        if operation & 1:  # ldg, ldgm
            return clobber_general(word, out)
        if operation == 0:  # stzgm
            out.index = out.base
            return store(NONE, 8, out)
        return 0
    number: cython.longlong = signed_low(word >> 12, 9) * 16
    if mode == 2:
        out.offset = number
    else:
        out.moved = number
        out.before = mode == 3
    if operation & 1:
        return store(NONE, 16 if operation == 1 else 32, out)
    if mode != 2 and number:
        add(Effect.ADD, out.base, out.base, number, out)
        out.moved = 0
        out.before = False
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _atomic_pair(word: cython.uint, out: Instruction) -> cython.int:
    """swpp, ldclrp, rcwcas, ldtadd and their kind."""
    mode: cython.uint = (word >> 10) & 3
    known: cython.uint = 0x0F0A if mode == 0 else 0x010B if mode == 1 else 1
    if word >> 31 or (known >> ((word >> 12) & 15)) & 1 == 0:
        return bad(out)
    if mode == 1:  # ldtadd
        clobber_general(word, out)
        return store(NONE, 8 if word & SUBTRACTS else 4, out)
    if mode == 0:
        clobber_general(word, out)
        clobber_general(word >> 16, out)
        return store(NONE, 16, out)
    clobber_general(word >> 16, out)
    if mode == 3:
        if word & 0x10001:
            return bad(out)
        clobber_general((word >> 16) + 1, out)
    return store(NONE, 16 if mode == 3 else 8, out)
