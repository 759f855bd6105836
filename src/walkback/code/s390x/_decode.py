"""Instructions of s390x (compiled): lengths, where control goes, and what becomes of registers and the stack.

`opcodes` has a kind for each opcode; `kinds` says what that means, and a module does each group of kinds. An
instruction's 2, 4 or 6 bytes stand in the upper ones of 48 bits, so that each field has one place: see `fields`.
"""

import cython

from walkback.code.s390x.opcodes import kinds, pages

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import Effect, Flow
    from cython.cimports.walkback.code.filling import clobber
    from cython.cimports.walkback.code.s390x import _arithmetic, _branches, _memory
    from cython.cimports.walkback.code.s390x import kinds as shape
    from cython.cimports.walkback.code.s390x.fields import (
        FIFTH,
        FOURTH,
        SECOND,
        THIRD,
        UNKNOWN_SIZE,
        away,
        clobber_range,
        field,
        float_register,
        known_operand,
        number_32,
    )
    from cython.cimports.walkback.code.s390x.kinds import Does
else:
    from walkback.code._instruction import Instruction
    from walkback.code.effects import Effect, Flow
    from walkback.code.filling import clobber
    from walkback.code.s390x import _arithmetic, _branches, _memory
    from walkback.code.s390x import kinds as shape
    from walkback.code.s390x.fields import (
        FIFTH,
        FOURTH,
        SECOND,
        THIRD,
        UNKNOWN_SIZE,
        away,
        clobber_range,
        field,
        float_register,
        known_operand,
        number_32,
    )
    from walkback.code.s390x.kinds import Does

_EVERY = cython.declare(cython.ulonglong, 0xFFFFFFFF)
"""Registers."""
if cython.compiled:
    _PAGES = cython.declare(cython.const[cython.uchar][::1])
_PAGES = memoryview(pages())
if cython.compiled:
    _KINDS = cython.declare(cython.const[cython.uint][::1])
_KINDS = memoryview(kinds())


def decode(
    code,
    pos: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    address: cython.ulonglong,
    out: Instruction,
) -> cython.int:
    """Decode one instruction into `out`, which was cleared; what is cut off has the length 2."""
    word: cython.ulonglong
    out.length = 2
    if pos < 0 or end - pos < 2:
        out.flow = Flow.BAD
        return 0
    with cython.boundscheck(False):
        first: cython.uint = code[pos]
        word = cython.cast(cython.ulonglong, (first << 8) | code[pos + 1]) << 32
        if first >= 0x40:
            if end - pos < 4 or (first >= 0xC0 and end - pos < 6):
                out.flow = Flow.BAD
                return 0
            out.length = 4
            word |= cython.cast(cython.ulonglong, (cython.cast(cython.uint, code[pos + 2]) << 8) | code[pos + 3]) << 16
            if first >= 0xC0:
                out.length = 6
                word |= (cython.cast(cython.uint, code[pos + 4]) << 8) | code[pos + 5]
        page: cython.uint = _PAGES[first]
        row: cython.uint = first
        if page >= shape.SIXTH_BYTE:
            row = (page << 8) | cython.cast(cython.uint, word & 0xFF)
        elif page:
            row = (page << 8) | cython.cast(cython.uint, (word >> 32) & 0xFF)
        kind: cython.uint = _KINDS[row]
    place: cython.int = SECOND
    if 0 < page <= shape.LAST_WITH_FIELDS_BEHIND:
        place = FOURTH
    if kind & shape.WRITES:
        _write(kind, word, place, out)
    if kind & 0xFF:
        _do(kind, word, place, address, out)
        if kind & 0xFF == Does.EXECUTE and first == 0xC6:
            out.target = away(address, number_32(word))
            _execute(code, pos + 2 * number_32(word), end, out)
        elif kind & 0xFF == Does.EXECUTE:  # what it executes is where registers say, and may do anything
            out.clobbers = _EVERY
            if field(word, SECOND - 4) == 0 and field(word, THIRD):
                out.base = field(word, THIRD)
                out.offset = cython.cast(cython.longlong, (word >> 16) & 0xFFF)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _do(
    kind: cython.uint, word: cython.ulonglong, place: cython.int, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """What an opcode does beyond writing registers that its fields name."""
    group: cython.uint = (kind >> 4) & 15
    if group == 1:
        return _arithmetic.between(kind, word, place, out)
    if group == 2:
        return _arithmetic.with_number(kind, word, address, out)
    if group == 3:
        return _branches.comparison(kind, word, place, address, out)
    if group == 4:
        return _memory.load(kind, word, address, out)
    if group == 5:
        return _memory.store(kind, word, address, out)
    if group == 6:
        return _branches.control(kind, word, place, address, out)
    return _others(kind, word, place, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(kind: cython.uint, word: cython.ulonglong, place: cython.int, out: Instruction) -> cython.int:
    """The registers that the opcode changes, whatever else it does."""
    if kind & shape.AT_2:
        place = THIRD
    elif kind & shape.AT_4:
        place = FIFTH
    one: cython.int = field(word, place)
    if kind & shape.R1:
        clobber(one, out)
        if kind & shape.PAIR1:
            clobber((one + 1) & 15, out)
    elif kind & shape.F1:
        clobber(float_register(one), out)
        if kind & shape.X1:
            clobber(float_register((one + 2) & 15), out)
    elif kind & shape.V1 and word & (0x100 if kind & shape.AT_4 else 0x800) == 0:
        clobber(float_register(one), out)
    if kind & shape.R2:
        one = field(word, place - 4)
        clobber(one, out)
        if kind & shape.PAIR2:
            clobber((one + 1) & 15, out)
    if kind & shape.GR0:
        clobber(0, out)
    if kind & shape.GR1:
        clobber(1, out)
    if kind & shape.GR2:
        clobber(2, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _execute(
    code: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, end: cython.Py_ssize_t, out: Instruction
) -> cython.int:
    """What exrl executes, where that is in sight: mostly it moves or clears as many bytes as a register says."""
    if at < 0 or end - at < 6:
        return 0
    first: cython.uint = code[at]
    kind: cython.uint = _KINDS[first] if _PAGES[first] == 0 else 0
    if kind & shape.GR1:
        clobber(1, out)
        if kind & shape.GR2:
            clobber(2, out)
    does: cython.uint = kind & 0xFF
    if first >= 0xC0 and (does == Does.STORE_LENGTH or does == Does.STORE_SHORT or does == Does.STORE):
        word: cython.ulonglong = cython.cast(cython.ulonglong, code[at + 2]) << 24
        word |= cython.cast(cython.ulonglong, code[at + 3]) << 16
        out.effect = Effect.STORE
        out.width = 16 if does == Does.STORE_SHORT or does == Does.STORE else UNKNOWN_SIZE
        known_operand(0, word, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _others(kind: cython.uint, word: cython.ulonglong, place: cython.int, out: Instruction) -> cython.int:
    """Rare instructions with more registers than two fields name."""
    does: cython.uint = kind & 0xFF
    one: cython.int = field(word, place)
    two: cython.int = field(word, place - 4)
    three: cython.int = field(word, THIRD)
    if does == Does.RANGE_READ:
        return clobber_range(one, two, out)
    if does == Does.DIVIDE_TO_INTEGER:
        clobber(float_register(three), out)
        return clobber(float_register(one), out)
    if does == Does.UPDATE_TREE:
        return clobber_range(0, 5, out)
    if does == Does.FORMAT:
        clobber(float_register(0), out)
        clobber(float_register(2), out)
        return clobber(1, out)
    if does == Does.SWITCH or does == Does.CALL_SWITCH:
        return _switch(does, one, two, out)
    if does == Does.FORM_CODEWORD:
        return clobber_range(1, 3, out)
    clobber(three, out)
    if does == Does.THIRD_PAIR:
        clobber((three + 1) & 15, out)
    out.effect = Effect.STORE
    out.width = UNKNOWN_SIZE
    out.index = 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _switch(does: cython.uint, one: cython.int, two: cython.int, out: Instruction) -> cython.int:
    """For bsm and bassm, which change the size of addresses."""
    if two:
        out.flow = Flow.CALL_INDIRECT if does == Does.CALL_SWITCH else Flow.JUMP_INDIRECT
        out.first = two
    return clobber(one, out) if one or does == Does.CALL_SWITCH else 0
