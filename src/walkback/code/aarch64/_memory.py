"""Loads and stores of AArch64 (compiled); `_atomics` has those that are exclusive, ordered or atomic."""

import cython

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.aarch64.fields import (
        IS_LOAD,
        IS_VECTOR,
        VECTORS,
        away,
        bad,
        clobber_general,
        clobber_vector,
        clobber_vectors,
        or_none,
        signed_low,
    )
    from cython.cimports.walkback.code.effects import NONE, Effect
    from cython.cimports.walkback.code.filling import clobber, load, load_table, store
else:
    from walkback.base.cursor import as_signed
    from walkback.code._instruction import Instruction
    from walkback.code.aarch64.fields import (
        IS_LOAD,
        IS_VECTOR,
        VECTORS,
        away,
        bad,
        clobber_general,
        clobber_vector,
        clobber_vectors,
        or_none,
        signed_low,
    )
    from walkback.code.effects import NONE, Effect
    from walkback.code.filling import clobber, load, load_table, store

if cython.compiled:
    _COUNTS = cython.declare(cython.const[cython.uchar][::1])
_COUNTS = memoryview(bytes([4, 0, 4, 0, 3, 0, 3, 1, 2, 0, 2, 0, 0, 0, 0, 0]))
"""Registers of the structures that vectors load."""


def scaled(word: cython.uint, out: Instruction) -> cython.int:
    """At a base and a number that counts what is loaded or stored."""
    out.base = (word >> 5) & 31
    out.offset = cython.cast(cython.longlong, (word >> 10) & 0xFFF) << _log_size(word)
    return one(word, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _log_size(word: cython.uint) -> cython.uint:
    """The size of one register in memory, as a power of two."""
    if word & 0x04800000 == 0x04800000 and word >> 30 == 0:
        return 4
    return word >> 30


def one(word: cython.uint, out: Instruction) -> cython.int:
    """Load or store one register, at the place that `out` has."""
    size: cython.uint = word >> 30
    operation: cython.uint = (word >> 22) & 3
    register: cython.uint = word & 31
    if word & IS_VECTOR:
        return one_vector(word, out)
    if operation == 0:
        return store(or_none(register) if size == 3 else NONE, 1 << size, out)
    if size == 3:
        if operation == 1:
            return load(or_none(register), 8, out)
        if operation == 3 or (word & 0x01000400 == 0x400):
            return bad(out)
        return 0  # prfm
    if operation == 3 and size == 2:
        return bad(out)
    if operation == 3 or out.moved:  # the sign stops at 32 bits, or it is no entry of a table
        clobber_general(register, out)
        return load(NONE, 1 << size, out)
    return load_table(or_none(register), 1 << size, operation == 2, out)


def one_vector(word: cython.uint, out: Instruction) -> cython.int:
    """The same of a vector register."""
    size: cython.uint = word >> 30
    register: cython.int = VECTORS + (word & 31)
    if word & (1 << 23):
        if size:
            return bad(out)
        size = 4
    if word & IS_LOAD == 0:
        return store(register if size >= 3 else NONE, 1 << size, out)
    if size >= 3:
        return load(register, 1 << size, out)
    clobber(register, out)
    return load(NONE, 1 << size, out)


def near(word: cython.uint, out: Instruction) -> cython.int:
    """At a base and a number, which may move the base."""
    number: cython.longlong = signed_low(word >> 12, 9)
    mode: cython.uint = (word >> 10) & 3
    if mode & 1 == 0:
        if mode and (word & IS_VECTOR or (word >> 30 == 3 and word & (1 << 23))):
            return bad(out)
        out.offset = number
    else:
        out.moved = number
        out.before = mode == 3
    return one(word, out)


def indexed(word: cython.uint, out: Instruction) -> cython.int:
    """At a base and another register."""
    index: cython.uint = (word >> 16) & 31
    if word & (1 << 14) == 0:
        return bad(out)
    one(word, out)
    if index == 31 or out.effect == Effect.NOTHING:
        return 0
    out.index = index
    if word & (1 << 12):
        out.scale = 1 << _log_size(word)
    if out.effect != Effect.LOAD:
        return 0
    if word & IS_VECTOR == 0 and out.first != NONE:
        out.effect = Effect.LOAD_TABLE
        return 0
    if out.first != NONE:
        clobber(out.first, out)
    out.effect = Effect.NOTHING
    return 0


def authenticated(word: cython.uint, out: Instruction) -> cython.int:
    """Load with an address that has a signature."""
    if word >> 30 != 3 or word & IS_VECTOR:
        return bad(out)
    clobber_general(word, out)  # from an address that no register has
    if word & 0x800:
        clobber(out.base, out)
    return 0


def pair(word: cython.uint, out: Instruction) -> cython.int:
    """ldp, stp and their kind."""
    kind: cython.uint = word >> 30
    mode: cython.uint = (word >> 23) & 3
    width: cython.int = 8 if kind > 1 else 4
    first: cython.uint = word & 31
    second: cython.uint = (word >> 10) & 31
    scale: cython.int = width
    if word & IS_VECTOR:
        width = scale = 16 if kind > 1 else 4 << kind
    elif kind == 1:
        if mode == 0:
            return bad(out)
        if word & IS_LOAD == 0:  # stgp
            width = 8
            scale = 16
    out.base = (word >> 5) & 31
    if mode & 1:
        out.moved = signed_low(word >> 15, 7) * scale
        out.before = mode == 3
    else:
        out.offset = signed_low(word >> 15, 7) * scale
    if width == 8 or width == 16:
        out.effect = Effect.LOAD if word & IS_LOAD else Effect.STORE
        out.count = 2
        out.width = width
        out.first = VECTORS + cython.cast(cython.int, first) if word & IS_VECTOR else or_none(first)
        out.second = VECTORS + cython.cast(cython.int, second) if word & IS_VECTOR else or_none(second)
        return 0
    if word & IS_LOAD == 0:
        return store(NONE, 2 * width, out)
    if word & IS_VECTOR:
        clobber_vector(first, out)
        clobber_vector(second, out)
    else:
        clobber_general(first, out)
        clobber_general(second, out)
    return load(NONE, 2 * width, out)


def literal(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Load what stands near the instruction."""
    kind: cython.uint = word >> 30
    if word & IS_VECTOR:
        if kind == 3:
            return bad(out)
        return clobber_vector(word, out)
    if kind == 3:  # prfm
        return 0
    out.offset = as_signed(away(address, signed_low(word >> 5, 19) * 4))
    return load_table(or_none(word & 31), 8 if kind == 1 else 4, kind == 2, out)


def structures(word: cython.uint, out: Instruction) -> cython.int:
    """ld1 to ld4 and st1 to st4."""
    count: cython.uint
    width: cython.uint
    if word & (1 << 24):
        count = ((word >> 12) & 2) + ((word >> 21) & 1) + 1
        width = count * _size_of_lane(word)
    else:
        count = 0 if word & (1 << 21) else _COUNTS[(word >> 12) & 15]
        width = count * (16 if word & (1 << 30) else 8)
    out.base = (word >> 5) & 31
    if width == 0 or word >> 31:
        return bad(out)
    if word & (1 << 23):
        if word & 0x1F0000 == 0x1F0000:
            out.moved = width
        else:
            clobber(out.base, out)
    elif word & 0x1F0000 and word & 0x3FBFFC00 != 0x0D018400:  # ldap1 and stl1 have something there
        return bad(out)
    if word & IS_LOAD == 0:
        return store(NONE, width, out)
    clobber_vectors(word, count, 1, out)
    return load(NONE, width, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _size_of_lane(word: cython.uint) -> cython.uint:
    """Bytes of one lane of a vector, and 0 where the instruction is none."""
    kind: cython.uint = (word >> 14) & 3
    size: cython.uint = (word >> 10) & 3
    if kind == 3:  # all lanes from one
        return 0 if word & IS_LOAD == 0 or word & (1 << 12) else 1 << size
    if kind == 2 and size:
        return 0 if size != 1 or word & (1 << 12) else 8
    if kind == 1 and size & 1:
        return 0
    return 1 << kind
