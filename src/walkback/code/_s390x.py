"""Instructions of s390x (compiled): lengths, where control goes, and what becomes of registers and the stack.

`s390xopcodes` has a kind for each opcode; the groups of what a kind does are the functions here. An instruction's 2, 4
or 6 bytes stand in the upper ones of 48 bits, so that each field has one place: the register fields in the second
byte, or in the fourth, an address in the third and fourth.
"""

import cython

from walkback.code.s390xopcodes import kinds, pages

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code import s390xopcodes as shape
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import NONE, Condition, Effect, Flow
    from cython.cimports.walkback.code.s390xopcodes import Does
else:
    from walkback.base.cursor import as_signed
    from walkback.code import s390xopcodes as shape
    from walkback.code._instruction import Instruction
    from walkback.code.effects import NONE, Condition, Effect, Flow
    from walkback.code.s390xopcodes import Does

if cython.compiled:
    _PAGES = cython.declare(cython.const[cython.uchar][::1])
_PAGES = memoryview(pages())
if cython.compiled:
    _KINDS = cython.declare(cython.const[cython.uint][::1])
_KINDS = memoryview(kinds())
if cython.compiled:
    _FLOATS = cython.declare(cython.const[cython.uchar][::1])
_FLOATS = memoryview(bytes([16, 20, 17, 21, 18, 22, 19, 23, 24, 28, 25, 29, 26, 30, 27, 31]))
"""The DWARF number of each floating point register."""
if cython.compiled:
    _CONDITIONS = cython.declare(cython.const[cython.uchar][::1])
_CONDITIONS = memoryview(bytes([0, 0, 3, 0, 5, 0, 2, 2, 1, 0, 4, 4, 6, 6, 0, 0]))
"""The `Condition` of each mask."""
if cython.compiled:
    _SIZES = cython.declare(cython.const[cython.uchar][::1])
_SIZES = memoryview(bytes([0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4]))
"""How many bytes a mask picks."""

_LINK = cython.declare(cython.int, 14)
_ALL = cython.declare(cython.ulonglong, (1 << 64) - 1)
_LOW_32 = cython.declare(cython.ulonglong, (1 << 32) - 1)
_SIGN_32 = cython.declare(cython.longlong, 1 << 31)
_ABOVE_32 = cython.declare(cython.longlong, 1 << 32)
_ALWAYS = cython.declare(cython.uint, 15)
_UNKNOWN_SIZE = cython.declare(cython.int, 256)
"""In the place of a length that only a register knows; the lengths of most such instructions have one byte."""
# Where a field starts in the 48 bits.
_SECOND = cython.declare(cython.int, 36)
_THIRD = cython.declare(cython.int, 28)
_FOURTH = cython.declare(cython.int, 20)
_FIFTH = cython.declare(cython.int, 12)


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
    end = min(end, code.shape[0])
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
    place: cython.int = _SECOND
    if 0 < page <= shape.LAST_WITH_FIELDS_BEHIND:
        place = _FOURTH
    if kind & shape.WRITES:
        _write(kind, word, place, out)
    if kind & 0xFF:
        _do(kind, word, place, address, out)
        if kind & 0xFF == Does.EXECUTE and first == 0xC6:
            out.target = (address + cython.cast(cython.ulonglong, 2 * _relative(word) & _ALL)) & _ALL
            _execute(code, pos + 2 * _relative(word), end, out)
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
        return _between(kind, word, place, out)
    if group == 2:
        return _with_number(kind, word, address, out)
    if group == 3:
        return _comparison(kind, word, place, address, out)
    if group == 4:
        return _load(kind, word, address, out)
    if group == 5:
        return _store(kind, word, address, out)
    if group == 6:
        return _control(kind, word, place, address, out)
    return _others(kind, word, place, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _field(word: cython.ulonglong, place: cython.int) -> cython.int:
    """Four bits."""
    return cython.cast(cython.int, (word >> place) & 15)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _short(word: cython.ulonglong) -> cython.longlong:
    """The signed number in the third and fourth byte."""
    number: cython.longlong = cython.cast(cython.longlong, (word >> 16) & 0xFFFF)
    return number - 0x10000 if number & 0x8000 else number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _relative(word: cython.ulonglong) -> cython.longlong:
    """The signed number in the last four bytes."""
    number: cython.longlong = cython.cast(cython.longlong, word & _LOW_32)
    return number - _ABOVE_32 if number & _SIGN_32 else number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _away(address: cython.ulonglong, halfwords: cython.longlong) -> cython.ulonglong:
    """The address that lies so far from this one."""
    return (address + cython.cast(cython.ulonglong, (2 * halfwords) & _ALL)) & _ALL


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _clobber(register: cython.int, out: Instruction) -> cython.int:
    out.clobbers |= cython.cast(cython.ulonglong, 1) << register
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _clobber_range(first: cython.int, last: cython.int, out: Instruction) -> cython.int:
    """Both and what is between them; behind the last register comes the first."""
    among: cython.uint = (2 << ((last - first) & 15)) - 1
    among <<= first
    out.clobbers |= (among | (among >> 16)) & 0xFFFF
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(kind: cython.uint, word: cython.ulonglong, place: cython.int, out: Instruction) -> cython.int:
    """The registers that the opcode changes, whatever else it does."""
    if kind & shape.AT_2:
        place = _THIRD
    elif kind & shape.AT_4:
        place = _FIFTH
    one: cython.int = _field(word, place)
    if kind & shape.R1:
        _clobber(one, out)
        if kind & shape.PAIR1:
            _clobber((one + 1) & 15, out)
    elif kind & shape.F1:
        _clobber(_FLOATS[one], out)
        if kind & shape.X1:
            _clobber(_FLOATS[(one + 2) & 15], out)
    elif kind & shape.V1 and word & (0x100 if kind & shape.AT_4 else 0x800) == 0:
        _clobber(_FLOATS[one], out)
    if kind & shape.R2:
        one = _field(word, place - 4)
        _clobber(one, out)
        if kind & shape.PAIR2:
            _clobber((one + 1) & 15, out)
    if kind & shape.GR0:
        _clobber(0, out)
    if kind & shape.GR1:
        _clobber(1, out)
    if kind & shape.GR2:
        _clobber(2, out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _make(effect: cython.int, first: cython.int, second: cython.int, out: Instruction) -> cython.int:
    """An effect on one register, from another."""
    out.effect = effect
    out.first = first
    out.second = second
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _combine(
    effect: cython.int, first: cython.int, base: cython.int, index: cython.int, out: Instruction
) -> cython.int:
    """An effect on one register, from one or two others."""
    out.effect = effect
    out.first = first
    out.base = base
    out.index = index
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _constant(first: cython.int, value: cython.longlong, out: Instruction) -> cython.int:
    out.effect = Effect.CONSTANT
    out.first = first
    out.offset = value
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _add(first: cython.int, base: cython.int, value: cython.longlong, out: Instruction) -> cython.int:
    out.effect = Effect.ADD
    out.first = first
    out.base = base
    out.offset = value
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _between(kind: cython.uint, word: cython.ulonglong, place: cython.int, out: Instruction) -> cython.int:
    """What registers get from registers."""
    does: cython.uint = kind & 0xFF
    one: cython.int = _field(word, place)
    two: cython.int = _field(word, place - 4)
    three: cython.int = _field(word, _THIRD)
    if does == Does.COPY:
        return _make(Effect.COPY, one, two, out)
    if does == Does.COPY_FLOAT:
        return _make(Effect.COPY, _FLOATS[one], _FLOATS[two], out)
    if does == Does.TO_FLOAT:
        return _make(Effect.COPY, _FLOATS[one], two, out)
    if does == Does.FROM_FLOAT:
        return _make(Effect.COPY, one, _FLOATS[two], out)
    if does == Does.EXTEND:
        return _make(Effect.EXTEND, one, two, out)
    if does == Does.TEST:
        return _test(kind, one, two, out)
    if does == Does.ADD_REGISTERS:
        return _combine(Effect.ADD_REGISTERS, one, one, two, out)
    if does == Does.SUBTRACT:
        return _combine(Effect.SUBTRACT, one, one, two, out)
    if does == Does.ADD_THREE:
        return _combine(Effect.ADD_REGISTERS, one, two, three, out)
    if does == Does.SUBTRACT_THREE:
        return _combine(Effect.SUBTRACT, one, two, three, out)
    if does == Does.CLEAR and one == two:
        return _constant(one, 0, out)
    if does == Does.SHIFT_LEFT and three == 0 and 0 < (word >> 16) & 63 <= 3:
        out.scale = 1 << cython.cast(cython.int, (word >> 16) & 63)
        return _combine(Effect.ADD_REGISTERS, one, NONE, two, out)
    return _clobber(one, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _test(kind: cython.uint, one: cython.int, two: cython.int, out: Instruction) -> cython.int:
    """The loads ltr and ltgr, which compare with zero."""
    out.width = (kind >> shape.NUMBER) & 0xFF
    if one == two:
        out.signed = True
        return _make(Effect.COMPARE_CONSTANT, one, NONE, out)
    if out.width == 8:
        return _make(Effect.COPY, one, two, out)
    out.width = 8
    return _clobber(one, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _with_number(kind: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """What registers get from numbers."""
    does: cython.uint = kind & 0xFF
    one: cython.int = _field(word, _SECOND)
    unsigned: cython.longlong = cython.cast(cython.longlong, word & _LOW_32)
    if does == Does.ADDRESS:
        return _constant(one, as_signed(_away(address, _relative(word))), out)
    if does == Does.LOAD_ADDRESS:
        return _load_address(kind, word, one, out)
    if does == Does.ADD:
        return _add(one, one, _short(word), out)
    if does == Does.ADD_TO:
        return _add(one, _field(word, _SECOND - 4), _short(word), out)
    if does == Does.ADD_32:
        return _add(one, one, _relative(word), out)
    if does == Does.ADD_UNSIGNED:
        return _add(one, one, unsigned, out)
    if does == Does.SUBTRACT_UNSIGNED:
        return _add(one, one, -unsigned, out)
    if does == Does.CONSTANT:
        return _constant(one, _short(word), out)
    if does == Does.CONSTANT_32:
        return _constant(one, _relative(word), out)
    if does == Does.CONSTANT_UNSIGNED:
        return _constant(one, as_signed(((word >> 16) & 0xFFFF) << ((kind >> shape.NUMBER) & 0xFF)), out)
    if does == Does.CONSTANT_UNSIGNED_32:
        return _constant(one, as_signed((word & _LOW_32) << ((kind >> shape.NUMBER) & 0xFF)), out)
    if does == Does.AND:
        return _and(one, cython.cast(cython.longlong, (word >> 16) & 0xFFFF) - 0x10000, out)
    if does == Does.AND_32:
        return _and(one, unsigned - _ABOVE_32, out)
    return _rotate(does, word, one, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _and(one: cython.int, mask: cython.longlong, out: Instruction) -> cython.int:
    """Only low bits are cleared where the others are those of a power of two, negated."""
    cleared: cython.longlong = ~mask
    if cleared & (cleared + 1):
        return _clobber(one, out)
    _add(one, one, mask, out)
    out.effect = Effect.ALIGN
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rotate(does: cython.uint, word: cython.ulonglong, one: cython.int, out: Instruction) -> cython.int:
    """The like of risbg: with all bits from the highest on, and zeros below, it aligns."""
    start: cython.uint = cython.cast(cython.uint, (word >> 24) & 0xFF)
    last: cython.uint = cython.cast(cython.uint, (word >> 16) & 0xFF)
    turn: cython.uint = cython.cast(cython.uint, (word >> 8) & 63)
    two: cython.int = _field(word, _SECOND - 4)
    if does == Does.ROTATE_OR_TEST:
        return _clobber(one, out) if start & 0x80 == 0 else 0
    if turn == 0 and last & 0x80 and start & 63 == 0 and last & 63:
        _add(one, two, -(cython.cast(cython.longlong, 1) << (63 - (last & 63))), out)
        out.effect = Effect.ALIGN
        return 0
    if turn == 0 and last & 0x80 and start & 63 == 32 and last & 63 == 63:
        return _make(Effect.EXTEND, one, two, out)
    return _clobber(one, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _displacement(kind: cython.uint, word: cython.ulonglong) -> cython.longlong:
    number: cython.longlong = cython.cast(cython.longlong, (word >> 16) & 0xFFF)
    if kind & shape.LONG:
        number |= cython.cast(cython.longlong, (word >> 8) & 0xFF) << 12
        if number & 0x80000:
            number -= 0x100000
    return number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _memory(kind: cython.uint, word: cython.ulonglong, out: Instruction) -> cython.int:
    """The operand in memory; 0 stands for no register. Says whether an index is left."""
    out.base = _field(word, _THIRD)
    out.offset = _displacement(kind, word)
    if out.base == 0:
        out.base = NONE
    if kind & shape.INDEX:
        index: cython.int = _field(word, _SECOND - 4)
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
def _place(kind: cython.uint, word: cython.ulonglong, out: Instruction) -> cython.int:
    """The same, where memory that no register leads to is nowhere known."""
    _memory(kind, word, out)
    if out.base == NONE:
        out.index = 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _load_address(kind: cython.uint, word: cython.ulonglong, one: cython.int, out: Instruction) -> cython.int:
    """For la and lay."""
    out.first = one
    out.effect = Effect.ADD
    if _memory(kind | shape.INDEX, word, out):
        out.effect = Effect.ADD_REGISTERS
    elif out.base == NONE:
        out.effect = Effect.CONSTANT
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _comparison(
    kind: cython.uint, word: cython.ulonglong, place: cython.int, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """Comparisons, and branches that compare."""
    does: cython.uint = kind & 0xFF
    out.width = (kind >> shape.NUMBER) & 0xFF
    out.signed = kind & shape.SIGNED != 0
    out.first = _field(word, place)
    out.effect = Effect.COMPARE_CONSTANT
    if does == Does.COMPARE_16:
        out.offset = _short(word)
        return 0
    if does == Does.COMPARE_32:
        out.offset = _relative(word) if out.signed else cython.cast(cython.longlong, word & _LOW_32)
        return 0
    if does == Does.COMPARE_NUMBER_BRANCH or does == Does.COMPARE_NUMBER_BRANCH_TO:
        out.offset = cython.cast(cython.longlong, (word >> 8) & 0xFF)
        if out.signed and out.offset & 0x80:
            out.offset -= 0x100
        return _compared_branch(does, _field(word, _SECOND - 4), word, address, out)
    out.effect = Effect.COMPARE
    out.second = _field(word, place - 4)
    if does == Does.COMPARE_BRANCH or does == Does.COMPARE_BRANCH_TO:
        return _compared_branch(does, _field(word, _FIFTH), word, address, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compared_branch(
    does: cython.uint, mask: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """Where it goes after the comparison, which never gives the fourth condition code."""
    mask &= 14
    if mask == 14:
        mask = _ALWAYS
    if does == Does.COMPARE_BRANCH or does == Does.COMPARE_NUMBER_BRANCH:
        _branch(mask, _away(address, _short(word)), out)
    else:
        _branch_to(mask, word, address, out)
    if out.flow != Flow.BRANCH:
        out.effect = Effect.NOTHING
        out.offset = 0
        out.width = 8
        out.signed = False
        out.second = NONE
        if out.flow == Flow.NEXT or out.flow == Flow.JUMP:
            out.first = NONE
    elif out.signed and out.condition != Condition.EQUAL and out.condition != Condition.NOT_EQUAL:
        out.condition = Condition.OTHER
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _branch(mask: cython.uint, target: cython.ulonglong, out: Instruction) -> cython.int:
    """A branch that a mask guards."""
    if mask:
        out.flow = Flow.JUMP if mask == _ALWAYS else Flow.BRANCH
        out.condition = _CONDITIONS[mask]
        out.target = target
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _branch_to(mask: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """A branch to the address of an operand, which a mask guards."""
    if mask != _ALWAYS:
        return _branch(mask, (address + out.length) & _ALL, out)
    base: cython.int = _field(word, _THIRD)
    out.flow = Flow.JUMP_INDIRECT
    out.first = NONE
    if base and word & 0xFFF0000 == 0 and (out.length == 6 or _field(word, _SECOND - 4) == 0):
        out.first = base
        if base == _LINK:
            out.flow = Flow.RETURN
    elif out.length == 4:
        index: cython.int = _field(word, _SECOND - 4)
        out.effect = Effect.ADD_REGISTERS
        out.base = base if base else NONE
        out.index = index if index else NONE
        out.offset = cython.cast(cython.longlong, (word >> 16) & 0xFFF)
    else:
        out.index = 0
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _load(kind: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Loads that set whole registers, or more than one."""
    does: cython.uint = kind & 0xFF
    one: cython.int = _field(word, _SECOND)
    two: cython.int = _field(word, _SECOND - 4)
    number: cython.int = (kind >> shape.NUMBER) & 0xFF
    if does == Does.LOAD:
        _place(kind, word, out)
        return _make(Effect.LOAD if out.index <= 0 else Effect.LOAD_TABLE, one, NONE, out)
    if does == Does.LOAD_SEVERAL:
        return _several(Effect.LOAD, kind, word, out)
    if does == Does.LOAD_TABLE or does == Does.LOAD_RELATIVE:
        _make(Effect.LOAD_TABLE, one, NONE, out)
        out.width = number
        out.signed = kind & shape.SIGNED != 0
        if does == Does.LOAD_TABLE:
            return _memory(kind, word, out)
        out.offset = as_signed(_away(address, _relative(word)))
        return 0
    if does == Does.LOAD_FLOAT:
        if _memory(kind, word, out) or out.base == NONE:
            out.base = out.index = NONE
            out.offset = 0
            return _clobber(_FLOATS[one], out)
        return _make(Effect.LOAD, _FLOATS[one], NONE, out)
    if does == Does.LOAD_LOW:
        return _clobber_range(one, two, out)
    if does == Does.LOAD_VECTORS:
        return _clobber_vectors(word, out)
    if does == Does.LOAD_MASKED:
        return _clobber(one, out) if two else 0
    if does == Does.SET_ELEMENT:
        number = 8 >> (_field(word, _FIFTH) & 3)
        if _field(word, _THIRD) == 0 and cython.cast(cython.int, word >> 16) & (2 * number - 1) >= number:
            return 0
    elif _field(word, _FIFTH) >= number:
        return 0
    return _clobber(_FLOATS[one], out) if word & 0x800 == 0 else 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _clobber_vectors(word: cython.ulonglong, out: Instruction) -> cython.int:
    """Vectors from the first field to the second, as far as they are floating point registers; behind 31 comes 0."""
    one: cython.int = _field(word, _SECOND) | (16 if word & 0x800 else 0)
    last: cython.int = _field(word, _SECOND - 4) | (16 if word & 0x400 else 0)
    count: cython.int = ((last - one) & 31) + 1
    i: cython.int
    for i in range(count):
        if (one + i) & 31 < 16:
            _clobber(_FLOATS[(one + i) & 15], out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _several(effect: cython.int, kind: cython.uint, word: cython.ulonglong, out: Instruction) -> cython.int:
    """For lmg and stmg; behind the last register comes the first."""
    one: cython.int = _field(word, _SECOND)
    out.effect = effect
    out.first = one
    out.count = ((_field(word, _SECOND - 4) - one) & 15) + 1
    if out.count == 2:
        out.second = (one + 1) & 15
    return _place(kind, word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _store(kind: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Stores; which registers else are written is known by now."""
    does: cython.uint = kind & 0xFF
    one: cython.int = _field(word, _SECOND)
    two: cython.int = _field(word, _SECOND - 4)
    number: cython.int = (kind >> shape.NUMBER) & 0xFF
    if does == Does.STORE_SEVERAL:
        return _several(Effect.STORE, kind, word, out)
    out.effect = Effect.STORE
    if does == Does.STORE_WHOLE or does == Does.STORE_WHOLE_RELATIVE:
        out.first = one
    elif does == Does.STORE_FLOAT:
        out.first = _FLOATS[one]
    elif does == Does.STORE_PART:
        out.width = number * (((two - one) & 15) + 1)
    elif does == Does.STORE_LENGTH:
        out.width = 16 * one + two + 1
    elif does == Does.STORE_SHORT:
        out.width = one + 1
    elif does == Does.STORE_UPTO or does == Does.STORE_SOMEWHERE:
        out.width = _UNKNOWN_SIZE
    elif does == Does.STORE_VECTORS:
        out.width = 16 * (((two - one + (16 if word & 0x400 else 0) - (16 if word & 0x800 else 0)) & 31) + 1)
    elif does == Does.STORE_MASKED:
        out.width = _SIZES[two]
        if two == 0:
            out.effect = Effect.NOTHING
            return 0
    else:
        out.width = number
    if does == Does.STORE_RELATIVE or does == Does.STORE_WHOLE_RELATIVE:
        out.offset = as_signed(_away(address, _relative(word)))
    elif does == Does.STORE_SOMEWHERE:
        out.index = 0
    else:
        _place(kind, word, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _control(
    kind: cython.uint, word: cython.ulonglong, place: cython.int, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """Branches, calls and returns."""
    does: cython.uint = kind & 0xFF
    one: cython.int = _field(word, _SECOND)
    if does == Does.BRANCH_16:
        return _jump(one, _short(word), address, out)
    if does == Does.BRANCH_32:
        return _jump(one, _relative(word), address, out)
    if does == Does.CALL_16 or does == Does.CALL_32:
        out.flow = Flow.CALL
        out.target = _away(address, _short(word) if does == Does.CALL_16 else _relative(word))
        return _clobber(one, out)
    if does == Does.COUNT_16 or does == Does.COUNT_32:
        out.flow = Flow.BRANCH
        out.target = _away(address, _short(word) if does == Does.COUNT_16 else _relative(word))
        return _clobber(one, out)
    if does == Does.COUNT_TO or does == Does.COUNT_REGISTER:
        if does == Does.COUNT_TO or _field(word, place - 4):
            out.flow = Flow.BRANCH
            out.target = (address + out.length) & _ALL
        return _clobber(_field(word, place), out)
    if does == Does.BRANCH_REGISTER:
        return _branch_register(one, _field(word, _SECOND - 4), address, out)
    if does == Does.BRANCH_TO:
        return _branch_to(one, word, address, out)
    if does == Does.CALL_REGISTER or does == Does.CALL_TO:
        return _call(does, one, word, address, out)
    if does == Does.JUMP_MEMORY:
        return _jump_memory(kind, one, word, address, out)
    if does == Does.RETURN:
        out.flow = Flow.RETURN
    elif does == Does.TRAP:
        out.flow = Flow.TRAP
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _jump(mask: cython.uint, halfwords: cython.longlong, address: cython.ulonglong, out: Instruction) -> cython.int:
    """For brc and brcl; into its own second half, which is no instruction, a jump is a trap and a branch may be one."""
    if halfwords == 1:
        if mask == _ALWAYS:
            out.flow = Flow.TRAP
        return 0
    return _branch(mask, _away(address, halfwords), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _branch_register(
    mask: cython.uint, register: cython.int, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """bcr, which does nothing for the register 0."""
    if register == 0:
        return 0
    if mask != _ALWAYS:
        return _branch(mask, (address + out.length) & _ALL, out)
    out.first = register
    out.flow = Flow.RETURN if register == _LINK else Flow.JUMP_INDIRECT
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _call(
    does: cython.uint, one: cython.int, word: cython.ulonglong, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """basr, balr, bas and bal; the first two get the address of the next instruction where the second field is 0."""
    two: cython.int = _field(word, _SECOND - 4)
    if does == Does.CALL_REGISTER:
        if two == 0:
            return _constant(one, as_signed((address + out.length) & _ALL), out)
        out.first = two
    elif two == 0 and (word >> 16) & 0xFFF == 0 and _field(word, _THIRD):
        out.first = _field(word, _THIRD)
    else:
        out.index = 0
    out.flow = Flow.CALL_INDIRECT
    return _clobber(one, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _jump_memory(
    kind: cython.uint, mask: cython.uint, word: cython.ulonglong, address: cython.ulonglong, out: Instruction
) -> cython.int:
    """bic, which finds its target in memory."""
    if mask != _ALWAYS:
        return _branch(mask, (address + out.length) & _ALL, out)
    out.flow = Flow.JUMP_INDIRECT
    return _place(kind, word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _execute(
    code: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t, out: Instruction
) -> cython.int:
    """What exrl executes, where that is in sight: mostly it moves or clears as many bytes as a register says."""
    if at < 0 or end - at < 6:
        return 0
    first: cython.uint = code[at]
    kind: cython.uint = _KINDS[first] if _PAGES[first] == 0 else 0
    if kind & shape.GR1:
        _clobber(1, out)
        if kind & shape.GR2:
            _clobber(2, out)
    does: cython.uint = kind & 0xFF
    if first >= 0xC0 and (does == Does.STORE_LENGTH or does == Does.STORE_SHORT or does == Does.STORE):
        word: cython.ulonglong = cython.cast(cython.ulonglong, code[at + 2]) << 24
        word |= cython.cast(cython.ulonglong, code[at + 3]) << 16
        out.effect = Effect.STORE
        out.width = 16 if does == Does.STORE_SHORT or does == Does.STORE else _UNKNOWN_SIZE
        _place(0, word, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _others(kind: cython.uint, word: cython.ulonglong, place: cython.int, out: Instruction) -> cython.int:
    """Rare instructions with more registers than two fields name."""
    does: cython.uint = kind & 0xFF
    one: cython.int = _field(word, place)
    two: cython.int = _field(word, place - 4)
    three: cython.int = _field(word, _THIRD)
    if does == Does.RANGE_READ:
        return _clobber_range(one, two, out)
    if does == Does.DIVIDE_TO_INTEGER:
        _clobber(_FLOATS[three], out)
        return _clobber(_FLOATS[one], out)
    if does == Does.UPDATE_TREE:
        return _clobber_range(0, 5, out)
    if does == Does.FORMAT:
        _clobber(_FLOATS[0], out)
        _clobber(_FLOATS[2], out)
        return _clobber(1, out)
    if does == Does.SWITCH or does == Does.CALL_SWITCH:
        return _switch(does, one, two, out)
    if does == Does.FORM_CODEWORD:
        return _clobber_range(1, 3, out)
    _clobber(three, out)
    if does == Does.THIRD_PAIR:
        _clobber((three + 1) & 15, out)
    out.effect = Effect.STORE
    out.width = _UNKNOWN_SIZE
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
    return _clobber(one, out) if one or does == Does.CALL_SWITCH else 0
