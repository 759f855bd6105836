"""Instructions of AArch64 (compiled): where control goes, and what becomes of registers and the stack.

The chapters of Arm's manual on encodings (C4 of DDI 0487) have this order too: first the bits 28 to 25.
"""

import cython

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import NONE, Effect, Flow
else:
    from walkback.base.cursor import as_signed
    from walkback.code._instruction import Instruction
    from walkback.code.effects import NONE, Effect, Flow

# Registers: 31 is the stack pointer or a register that is always zero, as the instruction has it.
_LR = cython.declare(cython.int, 30)
_ZERO = cython.declare(cython.int, 31)
_VECTORS = cython.declare(cython.int, 32)
"""Where the numbers of the vector registers begin."""

_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_HALF = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_PAGES = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFF000)
_ALL_VECTORS = cython.declare(cython.ulonglong, 0xFFFFFFFF00000000)

# Bits that mean the same in many instructions.
_WIDE = cython.declare(cython.uint, 1 << 31)
"""Registers of 64 bits."""
_SUBTRACTS = cython.declare(cython.uint, 1 << 30)
_SETS_FLAGS = cython.declare(cython.uint, 1 << 29)
_IS_VECTOR = cython.declare(cython.uint, 1 << 26)
_IS_LOAD = cython.declare(cython.uint, 1 << 22)
_BIT_24 = cython.declare(cython.uint, 1 << 24)
_BIT_21 = cython.declare(cython.uint, 1 << 21)
_BIT_15 = cython.declare(cython.uint, 1 << 15)
_BIT_12 = cython.declare(cython.uint, 1 << 12)

if cython.compiled:
    _CONDITIONS = cython.declare(cython.const[cython.uchar][::1])
_CONDITIONS = memoryview(bytes([1, 2, 4, 5, 0, 0, 0, 0, 3, 6, 0, 0, 0, 0, 0, 0]))
"""The `Condition` of each condition code."""
if cython.compiled:
    _COUNTS = cython.declare(cython.const[cython.uchar][::1])
_COUNTS = memoryview(bytes([4, 0, 4, 0, 3, 0, 3, 1, 2, 0, 2, 0, 0, 0, 0, 0]))
"""Registers of the structures that vectors load."""


@cython.boundscheck(False)
def decode(
    code,
    pos: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    address: cython.ulonglong,
    out: Instruction,
) -> cython.int:
    """Decode one instruction into `out`, which was cleared."""
    out.length = 4
    if end - pos < 4 or pos < 0 or end > code.shape[0]:
        out.flow = Flow.BAD
        return 0
    word: cython.uint = code[pos]
    word |= cython.cast(cython.uint, code[pos + 1]) << 8
    word |= cython.cast(cython.uint, code[pos + 2]) << 16
    word |= cython.cast(cython.uint, code[pos + 3]) << 24
    top: cython.uint = word >> 24
    # What programs are mostly made of.
    if top == 0x91 or top == 0xD1 or top == 0x11 or top == 0x51:
        return _add_number(word, out)
    elif top == 0xF1 or top == 0x71:  # noqa: RET505 - one chain becomes one jump
        return _subtract_number(word, out)
    elif top == 0xAA or top == 0x2A:
        return _logical(word, out)
    elif top == 0x8B or top == 0xCB or top == 0xEB or top == 0x6B or top == 0x0B or top == 0x4B:
        return _add_registers(word, out)
    elif top == 0xF9 or top == 0xB9 or top == 0x39 or top == 0x79 or top == 0x3D or top == 0xFD:
        return _scaled(word, out)
    elif top == 0xF8 or top == 0xB8 or top == 0x38 or top == 0x78 or top == 0x3C or top == 0xFC:
        return _unscaled(word, out)
    elif top == 0xA9 or top == 0xA8 or top == 0x29 or top == 0x6D or top == 0xAD:
        return _pair(word, out)
    elif top == 0x94 or top == 0x95 or top == 0x96 or top == 0x97:
        return _call(word, address, out)
    elif top == 0x14 or top == 0x15 or top == 0x16 or top == 0x17:
        return _jump(word, address, out)
    elif top == 0x54:
        return _conditional(word, address, out)
    elif top == 0x34 or top == 0x35 or top == 0xB4 or top == 0xB5:
        return _branch_if_zero(word, address, out)
    elif top == 0x36 or top == 0x37 or top == 0xB6 or top == 0xB7:
        return _branch_if_bit(word, address, out)
    elif top == 0x90 or top == 0xB0 or top == 0xD0 or top == 0xF0:
        return _page(word, address, out)
    elif top == 0x52 or top == 0xD2 or top == 0x12 or top == 0x92 or top == 0x72 or top == 0xF2:
        return _number(word, out)
    return _by_group(word, address, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _by_group(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Decode by the groups of the manual."""
    group: cython.uint = (word >> 25) & 15
    if group & 5 == 4:
        return _memory(word, address, out)
    if group & 14 == 8:
        return _immediate(word, address, out)
    if group & 14 == 10:
        return _branch(word, address, out)
    if group & 7 == 5:
        return _registers(word, out)
    if group & 7 == 7:
        return _floating(word, out)
    if group == 2:
        return _scalable(word, out)
    if group == 0 and word >> 31:
        return _matrix(word, out)
    if word < 0x10000:
        out.flow = Flow.TRAP  # udf
        return 0
    return _bad(out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _bad(out: Instruction) -> cython.int:
    out.clear()
    out.flow = Flow.BAD
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _clobber(register: cython.int, out: Instruction) -> cython.int:
    out.clobbers |= cython.cast(cython.ulonglong, 1) << register
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _clobber_general(register: cython.uint, out: Instruction) -> cython.int:
    """Clobber a register whose number 31 is the register that is always zero."""
    if register & 31 != _ZERO:
        out.clobbers |= cython.cast(cython.ulonglong, 1) << (register & 31)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _clobber_vectors(register: cython.uint, count: cython.uint, step: cython.uint, out: Instruction) -> cython.int:
    """Clobber up to four vector registers."""
    out.clobbers |= cython.cast(cython.ulonglong, 1) << (32 + (register & 31))
    if count > 1:
        out.clobbers |= cython.cast(cython.ulonglong, 1) << (32 + ((register + step) & 31))
    if count > 2:
        out.clobbers |= cython.cast(cython.ulonglong, 1) << (32 + ((register + 2 * step) & 31))
    if count > 3:
        out.clobbers |= cython.cast(cython.ulonglong, 1) << (32 + ((register + 3 * step) & 31))
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _or_none(register: cython.uint) -> cython.int:
    """A general register, where 31 is the register that is always zero."""
    return NONE if register == 31 else cython.cast(cython.int, register)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _signed(value: cython.uint, bits: cython.int) -> cython.longlong:
    """The number in the low bits of a value; there are at most 26."""
    sign: cython.uint = cython.cast(cython.uint, 1) << (bits - 1)
    value &= 2 * sign - 1
    return cython.cast(cython.longlong, value ^ sign) - cython.cast(cython.longlong, sign)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _away(address: cython.ulonglong, distance: cython.longlong) -> cython.ulonglong:
    """The address at a distance."""
    return (address + cython.cast(cython.ulonglong, distance)) & _WORD


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _constant(first: cython.uint, value: cython.ulonglong, out: Instruction) -> cython.int:
    if first != 31:
        out.effect = Effect.CONSTANT
        out.first = first
        out.offset = as_signed(value)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _move(effect: cython.int, first: cython.int, second: cython.int, out: Instruction) -> cython.int:
    out.effect = effect
    out.first = first
    out.second = second
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _immediate(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Data processing with a number."""
    kind: cython.uint = (word >> 23) & 7
    if kind < 2:
        if word >> 31:
            return _page(word, address, out)
        return _constant(word & 31, _away(address, _distance(word)), out)
    if kind == 2:
        return _subtract_number(word, out) if word & _SUBTRACTS else _add_number(word, out)
    if kind == 3:
        return _tag_or_limit(word, out)
    if kind == 6:
        return _bitfield(word, out)
    if kind == 7:
        return _extract(word, out)
    return _number(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _tag_or_limit(word: cython.uint, out: Instruction) -> cython.int:
    """Numbers with tags (addg and subg), and smax, umax, smin and umin."""
    if word & _SETS_FLAGS:
        return _bad(out)
    if word & _IS_LOAD:
        if word & 0x40300000:
            return _bad(out)
        return _clobber_general(word, out)
    if word >> 31 == 0:
        return _bad(out)
    return _clobber(word & 31, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _distance(word: cython.uint) -> cython.longlong:
    """The number of adr, and of adrp in pages."""
    return _signed(word >> 5, 19) * 4 + ((word >> 29) & 3)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _page(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Address of a page."""
    return _constant(word & 31, _away(address & _PAGES, _distance(word) * 4096), out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _number(word: cython.uint, out: Instruction) -> cython.int:
    """Numbers of 16 bits, and logic with masks."""
    if word & 0x00800000:
        return _move_wide(word, out)
    return _logical_number(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_number(word: cython.uint, out: Instruction) -> cython.int:
    """Addition and subtraction; cmn is adds without a destination."""
    first: cython.int = word & 31
    base: cython.int = (word >> 5) & 31
    number: cython.longlong = ((word >> 10) & 0xFFF) << (12 if word & (1 << 22) else 0)
    if word & 0x00800000:
        return _tag_or_limit(word, out)
    if word & _SETS_FLAGS and first == _ZERO:
        return 0
    if word >> 31 == 0:
        if number:
            return _clobber(first, out)
        return _move(Effect.EXTEND, first, base, out)
    if number == 0:
        return _move(Effect.COPY, first, base, out)
    out.effect = Effect.ADD
    out.first = first
    out.base = base
    out.offset = -number if word & _SUBTRACTS else number
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _subtract_number(word: cython.uint, out: Instruction) -> cython.int:
    """Comparison is subs without a destination."""
    if word & 0x20800000 != _SETS_FLAGS or word & 31 != 31:
        return _add_number(word, out)
    out.effect = Effect.COMPARE_CONSTANT
    out.first = (word >> 5) & 31
    out.offset = ((word >> 10) & 0xFFF) << (12 if word & (1 << 22) else 0)
    out.width = 8 if word >> 31 else 4
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _logical_number(word: cython.uint, out: Instruction) -> cython.int:
    """and, orr, eor, ands and tst."""
    operation: cython.uint = (word >> 29) & 3
    first: cython.int = word & 31
    base: cython.int = (word >> 5) & 31
    mask: cython.ulonglong = _mask(word)
    if mask == 0:
        return _bad(out)
    if operation == 3 and first == _ZERO:
        return 0
    if operation == 1 and base == _ZERO:
        out.effect = Effect.CONSTANT
        out.first = first
        out.offset = as_signed(mask)
        return 0
    others: cython.ulonglong = mask ^ _WORD
    if operation & 1 == operation >> 1 and base != _ZERO and others & (others + 1) == 0:
        out.effect = Effect.ALIGN
        out.first = first
        out.base = base
        out.offset = as_signed(mask)
        return 0
    return _clobber(first, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _mask(word: cython.uint) -> cython.ulonglong:
    """The bits that an instruction on bits names, and 0 where it names none: a rotated run of ones, repeated."""
    size: cython.uint = 64
    ones: cython.uint = (word >> 10) & 63
    if word & (1 << 22) == 0:
        size = 32
        while size > 1 and ones & size:
            size >>= 1
    elif word >> 31 == 0:
        return 0
    ones &= size - 1
    if ones == size - 1:  # of a size of 1 too
        return 0
    rotation: cython.uint = (word >> 16) & (size - 1)
    every: cython.ulonglong = _WORD >> (64 - size)
    mask: cython.ulonglong = every >> (size - 1 - ones)
    if rotation:
        mask = ((mask >> rotation) | (mask << (size - rotation))) & every
    stop: cython.uint = 64 if word & _WIDE else 32
    while size < stop:
        mask |= mask << size
        size *= 2
    return mask


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _move_wide(word: cython.uint, out: Instruction) -> cython.int:
    """movn, movz and movk."""
    operation: cython.uint = (word >> 29) & 3
    value: cython.ulonglong = (word >> 5) & 0xFFFF
    if operation == 1 or (word >> 31 == 0 and word & (1 << 22)):
        return _bad(out)
    if operation == 3:
        return _clobber_general(word, out)
    value <<= ((word >> 21) & 3) * 16
    if operation == 0:
        value ^= _WORD if word & _WIDE else _HALF
    return _constant(word & 31, value, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bitfield(word: cython.uint, out: Instruction) -> cython.int:
    """Fields of bits: those of all lower 32 bits are sxtw and uxtw, and short shifts to the left multiply."""
    operation: cython.uint = (word >> 29) & 3
    rotation: cython.uint = (word >> 16) & 63
    last: cython.uint = (word >> 10) & 63
    second: cython.uint = (word >> 5) & 31
    if operation == 3 or (word >> 31) != ((word >> 22) & 1) or (word >> 31 == 0 and word & 0x208000):
        return _bad(out)
    if operation == 2 and rotation == last + 1 and last > 58 and second != 31 and word & 31 != 31:
        out.effect = Effect.ADD_REGISTERS
        out.first = word & 31
        out.index = second
        out.scale = 1 << (63 - last)
        return 0
    if rotation == 0 and last == 31 and operation != 1:
        return _extend(word & 31, second, operation == 0 and word >> 31 != 0, out)
    return _clobber_general(word, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _extend(first: cython.uint, second: cython.uint, signed: cython.bint, out: Instruction) -> cython.int:
    """Extend the lower half of a register."""
    if second == 31:
        return _constant(first, 0, out)
    if first != 31:
        _move(Effect.EXTEND, first, second, out)
        out.signed = signed
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _extract(word: cython.uint, out: Instruction) -> cython.int:
    """extr, and autiasppc and autibsppc with a number."""
    if word >> 22 == 0x3CE and word & 31 == 31:
        return _move(Effect.AUTHENTICATE, _LR, NONE, out)
    if word & 0x60200000 or (word >> 31) != ((word >> 22) & 1) or (word >> 31 == 0 and word & _BIT_15):
        return _bad(out)
    return _clobber_general(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _branch(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Branches, exceptions and what concerns the system."""
    kind: cython.uint = word >> 29
    if kind == 0:
        return _jump(word, address, out)
    if kind == 4:
        return _call(word, address, out)
    if kind & 3 == 1:
        if word & 0x02000000:
            return _branch_if_bit(word, address, out)
        return _branch_if_zero(word, address, out)
    if kind & 3 == 3:
        return _compare_and_branch(word, address, out)
    if kind == 2:
        return _conditional(word, address, out)
    if word & 0x02000000:
        return _branch_to_register(word, out)
    if word & _BIT_24:
        return _system(word, out)
    return _exception(word, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _jump(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    out.flow = Flow.JUMP
    out.target = _away(address, _signed(word, 26) * 4)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _call(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    out.flow = Flow.CALL
    out.target = _away(address, _signed(word, 26) * 4)
    return _clobber(_LR, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _branch_if_zero(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """cbz, cbnz."""
    out.flow = Flow.BRANCH
    out.target = _away(address, _signed(word >> 5, 19) * 4)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _branch_if_bit(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """tbz, tbnz."""
    out.flow = Flow.BRANCH
    out.target = _away(address, _signed(word >> 5, 14) * 4)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _conditional(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """b.cond and bc.cond; retaasppc and retabsppc with a number."""
    if word & 0x02000000:
        return _bad(out)
    if word & _BIT_24:
        if word & 0x00C0001F != 0x1F:
            return _bad(out)
        out.flow = Flow.RETURN
        return _move(Effect.AUTHENTICATE, _LR, NONE, out)
    out.flow = Flow.JUMP if word & 14 == 14 else Flow.BRANCH
    out.condition = _CONDITIONS[word & 15]
    out.target = _away(address, _signed(word >> 5, 19) * 4)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compare_and_branch(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Comparison and branch in one."""
    operation: cython.uint = (word >> 21) & 7
    if word & 0x02000000:
        return _bad(out)
    if word & _BIT_24:
        if word & (1 << 14) or operation == 4 or operation == 5:
            return _bad(out)
    elif word & 0xC000 == 0x4000 or (word & _WIDE and word & _BIT_15) or operation == 4 or operation == 5:
        return _bad(out)
    out.flow = Flow.BRANCH
    out.target = _away(address, _signed(word >> 5, 9) * 4)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _branch_to_register(word: cython.uint, out: Instruction) -> cython.int:
    """br, blr, ret and their kind; those that authenticate have the lowest bit of bits 15 to 10 for the key."""
    operation: cython.uint = (word >> 21) & 15
    base: cython.int = (word >> 5) & 31
    authenticates: cython.bint = word & 0xF800 == 0x0800
    if word & 0x1F0000 != 0x1F0000 or (not authenticates and word & 0xFC1F):
        return _bad(out)
    if operation & 7 > 1 and (operation > 5 or operation == 3 or (operation > 3 and base != _ZERO)):
        return _bad(out)
    if operation & 7 < 2:
        if operation & 8 and not authenticates:
            return _bad(out)
        out.flow = Flow.JUMP_INDIRECT if operation & 1 == 0 else Flow.CALL_INDIRECT
        out.first = _or_none(base)
        if operation & 1:
            _clobber(_LR, out)
        return 0
    out.flow = Flow.RETURN
    if operation == 2:
        if authenticates:
            _move(Effect.AUTHENTICATE, _LR, NONE, out)
        else:
            out.first = _or_none(base)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _exception(word: cython.uint, out: Instruction) -> cython.int:
    """svc, hvc, smc, brk, hlt, tcancel and dcps."""
    operation: cython.uint = (word >> 21) & 7
    level: cython.uint = word & 31
    if operation == 0 and 1 <= level <= 3:
        out.clobbers = 1 if level == 1 else 15
        return 0
    if (0 < operation < 4 and level == 0) or (operation == 5 and 1 <= level <= 3):
        out.flow = Flow.TRAP
        return 0
    return _bad(out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _system(word: cython.uint, out: Instruction) -> cython.int:
    """Hints, barriers, and instructions on registers of the system."""
    if word & 0x00800000:  # tchangef, tchangeb
        return _bad(out) if word & 0x00600000 else _clobber_general(word, out)
    if word & 0x7FFFF01F == 0x5503201F:
        return _hint((word >> 5) & 127, out)
    if word & 0x58F000 == 0x2000:  # hints yet to be given out
        return 0
    if word & (1 << 21):  # mrs, sysl, tstart, ttest
        _clobber_general(word, out)
        if word & (1 << 22):  # mrrs
            _clobber_general(word + 1, out)
    elif word & 0x7FFFFAFF == 0x5503427F or word & 0x7FFFFFE0 == 0x551B4240:
        out.clobbers |= _ALL_VECTORS  # smstart and smstop, and SVCR: the vector registers become zero
    elif word & 0x7FFFFFE0 == 0x550B7420 or word & 0x7FFFFFE0 == 0x550B7480:
        out.effect = Effect.STORE  # dc zva, dc gzva: how much they clear depends on the machine
        out.index = _or_none(word & 31)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hint(number: cython.uint, out: Instruction) -> cython.int:
    if number >= 24 and number < 28:  # paciaz, paciasp, pacibz, pacibsp
        return _move(Effect.SIGN, _LR, NONE, out)
    if number >= 28 and number < 32:  # autiaz, autiasp, autibz, autibsp
        return _move(Effect.AUTHENTICATE, _LR, NONE, out)
    if number == 7:  # xpaclri
        return _clobber(_LR, out)
    if number >= 8 and number < 16 and number & 1 == 0:  # pacia1716 and the like
        return _clobber(17, out)
    if number == 40:  # chkfeat
        return _clobber(16, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _registers(word: cython.uint, out: Instruction) -> cython.int:
    """Data processing with registers."""
    if word & (1 << 28) == 0:
        if word & _BIT_24 == 0:
            return _logical(word, out)
        return _add_registers(word, out)
    if word & _BIT_24:
        return _multiply(word, out)
    kind: cython.uint = (word >> 21) & 7
    if kind == 4:  # csel and the like
        if word & 0x20000800:
            return _bad(out)
        return _clobber_general(word, out)
    if kind == 6:
        if word & _SUBTRACTS:
            return _one_source(word, out)
        return _two_sources(word, out)
    if kind == 2:  # ccmp, ccmn
        return _bad(out) if word & 0x20000410 != 0x20000000 else 0
    if kind:
        return _bad(out)
    if word & 0xFC00 == 0:  # adc, sbc
        return _clobber_general(word, out)
    if word & _WIDE:
        if word & 0x60007C10 == 0x20000400:  # rmif
            return 0
        if word & 0x2000E000 == 0x2000:  # addpt, subpt
            return _clobber(word & 31, out)
    elif word & 0x7FFFBC1F == 0x3A00080D:  # setf8, setf16
        return 0
    return _bad(out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _multiply(word: cython.uint, out: Instruction) -> cython.int:
    """Multiplication with three sources."""
    kind: cython.uint = (word >> 21) & 7
    if word & 0x60000000 or kind == 4 or kind == 7 or (kind and word >> 31 == 0) or (kind & 3 == 2 and word & _BIT_15):
        return _bad(out)
    return _clobber_general(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _logical(word: cython.uint, out: Instruction) -> cython.int:
    """and, orr, eor, ands and their negations; mov is one of them."""
    if word & 0x7FE0FFE0 != 0x2A0003E0:
        if word >> 31 == 0 and word & _BIT_15:
            return _bad(out)
        return _clobber_general(word, out)
    first: cython.uint = word & 31
    second: cython.uint = (word >> 16) & 31
    if word >> 31 == 0:
        return _extend(first, second, False, out)
    return _copy(first, second, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(first: cython.uint, second: cython.uint, out: Instruction) -> cython.int:
    """Copy a register; neither is the stack pointer."""
    if second == 31:
        return _constant(first, 0, out)
    if first != 31:
        _move(Effect.COPY, first, second, out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _add_registers(word: cython.uint, out: Instruction) -> cython.int:
    if word & _BIT_21:
        return _add_extended(word, out)
    return _add_shifted(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_shifted(word: cython.uint, out: Instruction) -> cython.int:
    """add, sub, cmp and cmn of registers; the second may be shifted."""
    first: cython.uint = word & 31
    base: cython.int = _or_none((word >> 5) & 31)
    index: cython.int = _or_none((word >> 16) & 31)
    shift: cython.uint = (word >> 10) & 63
    left: cython.bint = word & 0x00C00000 == 0
    if word & 0x00C00000 == 0x00C00000 or (word >> 31 == 0 and shift > 31):
        return _bad(out)
    if word & _SETS_FLAGS and first == 31:
        if word & (_WIDE | _SUBTRACTS) == _WIDE | _SUBTRACTS and shift == 0:
            return _compare(base, index, out)
        return 0
    if first == 31:
        return 0
    if word >> 31 == 0 or index == NONE:
        return _clobber(first, out)
    if word & _SUBTRACTS == 0 and left and shift <= 4:
        out.effect = Effect.ADD_REGISTERS
        out.scale = 1 << shift
    elif word & _SUBTRACTS and shift == 0 and base != NONE:
        out.effect = Effect.SUBTRACT
    else:
        return _clobber(first, out)
    out.first = first
    out.base = base
    out.index = index
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _compare(first: cython.int, second: cython.int, out: Instruction) -> cython.int:
    """Compare registers."""
    if first == NONE:
        return 0
    if second == NONE:
        out.effect = Effect.COMPARE_CONSTANT
        out.first = first
        return 0
    return _move(Effect.COMPARE, first, second, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_extended(word: cython.uint, out: Instruction) -> cython.int:
    """add, sub, cmp and cmn of registers; the second is extended from what width and signed say."""
    first: cython.int = word & 31
    base: cython.int = (word >> 5) & 31
    index: cython.int = _or_none((word >> 16) & 31)
    extension: cython.uint = (word >> 13) & 7
    shift: cython.uint = (word >> 10) & 7
    whole: cython.bint = extension & 3 == 3 and shift == 0
    if word & 0x00C00000 or shift > 4:
        return _bad(out)
    if word & _SETS_FLAGS and first == _ZERO:
        if word & (_WIDE | _SUBTRACTS) == _WIDE | _SUBTRACTS and whole:
            return _compare(base, index, out)
        return 0
    if word >> 31 == 0:
        return _clobber(first, out)
    if index == NONE:
        return _move(Effect.COPY, first, base, out)
    if word & _SUBTRACTS == 0:
        out.effect = Effect.ADD_REGISTERS
        out.scale = 1 << shift
        out.width = 1 << (extension & 3)
        out.signed = extension > 3
    elif whole:
        out.effect = Effect.SUBTRACT
    else:
        return _clobber(first, out)
    out.first = first
    out.base = base
    out.index = index
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _two_sources(word: cython.uint, out: Instruction) -> cython.int:
    """Division, shifts, checksums, and what has to do with tags."""
    operation: cython.uint = (word >> 10) & 63
    known: cython.uint = 0x0FFF1F3D if word & _WIDE else 0x0FFF0F0C
    if (word & _SETS_FLAGS and operation) or operation > 31 or (known >> operation) & 1 == 0:
        return _bad(out)
    if operation == 4:  # irg
        return _clobber(word & 31, out)
    return _clobber_general(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _one_source(word: cython.uint, out: Instruction) -> cython.int:
    """Reversal and counting of bits, and authentication."""
    operation: cython.uint = (word >> 10) & 63
    kind: cython.uint = (word >> 16) & 31
    if word & _SETS_FLAGS or kind > 1:
        return _bad(out)
    if kind == 0:
        return _clobber_general(word, out)
    if operation & 0x20:  # with the program counter
        if operation & 0x16 == 2:  # pacia171615 and the like
            return _clobber(17, out)
        if operation & 0x14 == 4:
            return _move(Effect.AUTHENTICATE, _LR, NONE, out)
        return _move(Effect.SIGN, _LR, NONE, out)
    if operation & 0x10 == 0 and operation & 2 == 0 and word & 31 == _LR:
        return _move(Effect.AUTHENTICATE if operation & 4 else Effect.SIGN, _LR, NONE, out)
    return _clobber_general(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _memory(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Loads and stores."""
    kind: cython.uint = (word >> 28) & 3
    if kind == 2:
        return _pair(word, out)
    if kind == 3:
        if word & _BIT_24:
            return _scaled(word, out)
        return _unscaled(word, out)
    if kind == 1:
        if word & _BIT_24 == 0:
            return _literal(word, address, out)
        return _later(word, out)
    if word & _IS_VECTOR:
        return _structures(word, out)
    return _exclusive(word, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _scaled(word: cython.uint, out: Instruction) -> cython.int:
    """At a base and a number that counts what is loaded or stored."""
    out.base = (word >> 5) & 31
    out.offset = cython.cast(cython.longlong, (word >> 10) & 0xFFF) << _log_size(word)
    return _one(word, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unscaled(word: cython.uint, out: Instruction) -> cython.int:
    """At a base and a number of bytes, at a base and a register, or whatever else shares their first bits."""
    out.base = (word >> 5) & 31
    if word & _BIT_21 == 0:
        return _near(word, out)
    if word & 0xC00 == 0x800:
        return _indexed(word, out)
    if word & 0x400:
        return _authenticated(word, out)
    return _atomic(word, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _log_size(word: cython.uint) -> cython.uint:
    """The size of one register in memory, as a power of two."""
    if word & 0x04800000 == 0x04800000 and word >> 30 == 0:
        return 4
    return word >> 30


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _load(first: cython.int, width: cython.int, out: Instruction) -> cython.int:
    out.effect = Effect.LOAD
    out.first = first
    out.width = width
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _store(first: cython.int, width: cython.int, out: Instruction) -> cython.int:
    out.effect = Effect.STORE
    out.first = first
    out.width = width
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _one(word: cython.uint, out: Instruction) -> cython.int:
    """Load or store one register, at the place that `out` has."""
    size: cython.uint = word >> 30
    operation: cython.uint = (word >> 22) & 3
    register: cython.uint = word & 31
    if word & _IS_VECTOR:
        return _one_vector(word, out)
    if operation == 0:
        return _store(_or_none(register) if size == 3 else NONE, 1 << size, out)
    if size == 3:
        if operation == 1:
            return _load(_or_none(register), 8, out)
        if operation == 3 or (word & (_BIT_24 | 0x400) == 0x400):
            return _bad(out)
        return 0  # prfm
    if operation == 3:  # the sign stops at 32 bits
        if size == 2:
            return _bad(out)
        _clobber_general(register, out)
        return _load(NONE, 1 << size, out)
    out.effect = Effect.LOAD_TABLE
    out.first = _or_none(register)
    out.width = 1 << size
    out.signed = operation == 2
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _one_vector(word: cython.uint, out: Instruction) -> cython.int:
    """The same of a vector register."""
    size: cython.uint = word >> 30
    register: cython.int = _VECTORS + (word & 31)
    if word & 0x00800000:
        if size:
            return _bad(out)
        size = 4
    if word & _IS_LOAD == 0:
        return _store(register if size >= 3 else NONE, 1 << size, out)
    if size >= 3:
        return _load(register, 1 << size, out)
    _clobber(register, out)
    return _load(NONE, 1 << size, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _near(word: cython.uint, out: Instruction) -> cython.int:
    """At a base and a number, which may move the base."""
    number: cython.longlong = _signed(word >> 12, 9)
    mode: cython.uint = (word >> 10) & 3
    if mode & 1 == 0:
        if mode and (word & _IS_VECTOR or (word >> 30 == 3 and word & 0x00800000)):
            return _bad(out)
        out.offset = number
    else:
        out.moved = number
        out.before = mode == 3
    return _one(word, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _indexed(word: cython.uint, out: Instruction) -> cython.int:
    """At a base and another register."""
    index: cython.uint = (word >> 16) & 31
    if word & (1 << 14) == 0:
        return _bad(out)
    _one(word, out)
    if index == 31 or out.effect == Effect.NOTHING:
        return 0
    out.index = index
    if word & _BIT_12:
        out.scale = 1 << _log_size(word)
    if out.effect != Effect.LOAD:
        return 0
    if word & _IS_VECTOR == 0 and out.first != NONE:
        out.effect = Effect.LOAD_TABLE
        return 0
    if out.first != NONE:
        _clobber(out.first, out)
    out.effect = Effect.NOTHING
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _authenticated(word: cython.uint, out: Instruction) -> cython.int:
    """Load with an address that has a signature."""
    if word >> 30 != 3 or word & _IS_VECTOR:
        return _bad(out)
    _clobber_general(word, out)  # from an address that no register has
    if word & 0x800:
        _clobber(out.base, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _atomic(word: cython.uint, out: Instruction) -> cython.int:
    """Operations on memory that give the old value."""
    operation: cython.uint = (word >> 12) & 15
    if word & _IS_VECTOR:
        if (0xF1F1 >> operation) & 1 == 0 or (word & _BIT_15 and (word & 31 != 31 or word & 0x00800000)):
            return _bad(out)
        if word & _BIT_15 == 0:
            _clobber(_VECTORS + (word & 31), out)
        return _store(NONE, 1 << (word >> 30 if word >> 30 else 1), out)
    if operation == 12 and word & 0x00C00000 == 0x00800000:  # ldapr
        return _acquire(word, out)
    if word >> 30 == 3 and operation > 8:
        return _block(word, operation, out)
    if operation > 11:
        return _bad(out)
    _clobber_general(word, out)
    return _store(NONE, 1 << (word >> 30), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _block(word: cython.uint, operation: cython.uint, out: Instruction) -> cython.int:
    """st64b, st64bv, st64bv0 and ld64b."""
    if word & 0x00C00000 or operation > 13 or operation == 12 or word & 1 or word & 31 > 22:
        return _bad(out)
    if operation == 13:
        out.clobbers |= cython.cast(cython.ulonglong, 0xFF) << (word & 31)
        return 0
    if operation != 9:
        _clobber_general(word >> 16, out)
    return _store(NONE, 64, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _acquire(word: cython.uint, out: Instruction) -> cython.int:
    """Load one register without its sign, at the place that `out` has."""
    _load(_or_none(word & 31), 1 << (word >> 30), out)
    if word >> 30 != 3:
        out.effect = Effect.LOAD_TABLE
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _pair(word: cython.uint, out: Instruction) -> cython.int:
    """ldp, stp and their kind."""
    kind: cython.uint = word >> 30
    mode: cython.uint = (word >> 23) & 3
    width: cython.int = 8 if kind > 1 else 4
    first: cython.uint = word & 31
    second: cython.uint = (word >> 10) & 31
    scale: cython.int = width
    if word & _IS_VECTOR:
        width = scale = 16 if kind > 1 else 4 << kind
    elif kind == 1:
        if mode == 0:
            return _bad(out)
        if word & _IS_LOAD == 0:  # stgp
            width = 8
            scale = 16
    out.base = (word >> 5) & 31
    if mode & 1:
        out.moved = _signed(word >> 15, 7) * scale
        out.before = mode == 3
    else:
        out.offset = _signed(word >> 15, 7) * scale
    if width == 8 or width == 16:
        out.effect = Effect.LOAD if word & _IS_LOAD else Effect.STORE
        out.count = 2
        out.width = width
        out.first = _VECTORS + cython.cast(cython.int, first) if word & _IS_VECTOR else _or_none(first)
        out.second = _VECTORS + cython.cast(cython.int, second) if word & _IS_VECTOR else _or_none(second)
        return 0
    if word & _IS_LOAD == 0:
        return _store(NONE, 2 * width, out)
    if word & _IS_VECTOR:
        _clobber(_VECTORS + cython.cast(cython.int, first), out)
        _clobber(_VECTORS + cython.cast(cython.int, second), out)
    else:
        _clobber_general(first, out)
        _clobber_general(second, out)
    return _load(NONE, 2 * width, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _literal(word: cython.uint, address: cython.ulonglong, out: Instruction) -> cython.int:
    """Load what stands near the instruction."""
    kind: cython.uint = word >> 30
    if word & _IS_VECTOR:
        if kind == 3:
            return _bad(out)
        return _clobber(_VECTORS + (word & 31), out)
    if kind == 3:  # prfm
        return 0
    out.effect = Effect.LOAD_TABLE
    out.first = _or_none(word & 31)
    out.offset = as_signed(_away(address, _signed(word >> 5, 19) * 4))
    out.width = 8 if kind == 1 else 4
    out.signed = kind == 2
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _exclusive(word: cython.uint, out: Instruction) -> cython.int:
    """Exclusive and ordered loads and stores, and compare and swap; with bit 24 those without privileges."""
    size: cython.uint = word >> 30
    kind: cython.uint = (word >> 21) & 7
    status: cython.uint = (word >> 16) & 31
    out.base = (word >> 5) & 31
    if word & _BIT_24 and size < 2 and kind < 4:
        return _bad(out)
    if kind == 2 or (kind == 6 and word & _BIT_24 == 0):
        return _acquire(word, out)
    if kind == 4 and word & _BIT_24 == 0:
        return _store(_or_none(word & 31) if size == 3 else NONE, 1 << size, out)
    if kind == 3 and size > 1 and word & _BIT_24 == 0:  # ldxp
        return _load_two(word, size, out)
    if word & _BIT_24:
        if kind & 5 == 4 and size & 1:  # cast, caspt
            return _compare_and_swap(word, size == 1, out)
    elif kind & 5 == 5 or (kind & 5 == 1 and size < 2):  # cas, casp
        return _compare_and_swap(word, kind & 4 == 0, out)
    if kind > 1 or (kind and word & _BIT_24):
        return _bad(out)
    _clobber_general(status, out)
    return _store(NONE, (1 << size) * (2 if kind else 1), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compare_and_swap(word: cython.uint, of_pairs: cython.bint, out: Instruction) -> cython.int:
    """The old value goes where the expected one was."""
    size: cython.uint = word >> 30
    if (word & _BIT_24 == 0 and word & 0x7C00 != 0x7C00) or (of_pairs and word & 0x10001):
        return _bad(out)
    _clobber_general(word >> 16, out)
    if of_pairs:
        _clobber_general((word >> 16) + 1, out)
        size = 4 if word & (_BIT_24 | _SUBTRACTS) else 3
    return _store(NONE, 1 << size, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _load_two(word: cython.uint, size: cython.uint, out: Instruction) -> cython.int:
    """Load two registers exclusively."""
    if size == 3:
        _load(_or_none(word & 31), 8, out)
        out.count = 2
        out.second = _or_none((word >> 10) & 31)
        return 0
    _clobber_general(word, out)
    _clobber_general(word >> 10, out)
    return _load(NONE, 8, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _later(word: cython.uint, out: Instruction) -> cython.int:
    """What later versions brought: ordered accesses, copies of memory, tags, and atomic operations on pairs."""
    size: cython.uint = word >> 30
    mode: cython.uint = (word >> 10) & 3
    out.base = (word >> 5) & 31
    if word & _BIT_21:
        if word & _IS_VECTOR:
            return _bad(out)
        return _tags(word, out) if size == 3 else _atomic_pair(word, out)
    if word & _IS_VECTOR:
        if mode == 2:
            out.offset = _signed(word >> 12, 9)
            return _one_vector(word, out)
        if (mode == 1 or (mode == 0 and word & 0x00C00000 == 0x00C00000)) and size == 0:
            return _copy_memory(word, out)
        return _bad(out)
    if mode == 0:
        out.offset = _signed(word >> 12, 9)
        return _bad(out) if size == 3 and word & 0x00800000 else _one(word, out)
    if mode == 1 and size == 0:
        return _copy_memory(word, out)
    if mode == 2 and size > 1:
        return _ordered(word, size, out)
    if mode == 3 and word & 0x7FFFE000 == 0x591F0000:  # gcsstr, gcssttr
        return _store(_or_none(word & 31), 8, out)
    return _bad(out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _ordered(word: cython.uint, size: cython.uint, out: Instruction) -> cython.int:
    """ldiapp, stilp, ldap, stlp, and ldapr and stlr that move their base."""
    width: cython.int = 1 << size
    second: cython.uint = (word >> 16) & 31
    if word & 0x00800000:
        if word & 0x3FF000:
            return _bad(out)
        if word & _IS_LOAD:
            out.moved = width
            return _acquire(word, out)
        out.moved = -width
        out.before = True
        return _store(_or_none(word & 31) if size == 3 else NONE, width, out)
    if word & 0xF000 == 0:
        out.moved = 2 * width if word & _IS_LOAD else -2 * width
        out.before = word & _IS_LOAD == 0
    if size == 3:
        out.effect = Effect.LOAD if word & _IS_LOAD else Effect.STORE
        out.count = 2
        out.first = _or_none(word & 31)
        out.second = _or_none(second)
        return 0
    if word & _IS_LOAD == 0:
        return _store(NONE, 8, out)
    _clobber_general(word, out)
    _clobber_general(second, out)
    return _load(NONE, 8, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy_memory(word: cython.uint, out: Instruction) -> cython.int:
    """The steps of copying and setting memory, which end nobody knows where: the index says that."""
    _clobber_general(word, out)
    _clobber_general(word >> 5, out)
    if word & 0x00C00000 != 0x00C00000:
        _clobber_general(word >> 16, out)
    out.base = _or_none(word & 31)
    out.index = _or_none((word >> 5) & 31)
    return _store(NONE, 1, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _tags(word: cython.uint, out: Instruction) -> cython.int:
    """Loads and stores of tags; some store zeros too."""
    mode: cython.uint = (word >> 10) & 3
    operation: cython.uint = (word >> 22) & 3
    if mode == 0:
        if operation & 1:  # ldg, ldgm
            return _clobber_general(word, out)
        if operation == 0:  # stzgm
            out.index = out.base
            return _store(NONE, 8, out)
        return 0
    number: cython.longlong = _signed(word >> 12, 9) * 16
    if mode == 2:
        out.offset = number
    else:
        out.moved = number
        out.before = mode == 3
    if operation & 1:
        return _store(NONE, 16 if operation == 1 else 32, out)
    if mode != 2 and number:
        out.effect = Effect.ADD
        out.first = out.base
        out.offset = number
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
    if word & _WIDE or (known >> ((word >> 12) & 15)) & 1 == 0:
        return _bad(out)
    if mode == 1:  # ldtadd
        _clobber_general(word, out)
        return _store(NONE, 8 if word & _SUBTRACTS else 4, out)
    if mode == 0:
        _clobber_general(word, out)
        _clobber_general(word >> 16, out)
        return _store(NONE, 16, out)
    _clobber_general(word >> 16, out)
    if mode == 3:
        if word & 0x10001:
            return _bad(out)
        _clobber_general((word >> 16) + 1, out)
    return _store(NONE, 16 if mode == 3 else 8, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _structures(word: cython.uint, out: Instruction) -> cython.int:
    """ld1 to ld4 and st1 to st4."""
    count: cython.uint
    width: cython.uint
    if word & _BIT_24:
        count = ((word >> 12) & 2) + ((word >> 21) & 1) + 1
        width = count * _size_of_lane(word)
    else:
        count = 0 if word & _BIT_21 else _COUNTS[(word >> 12) & 15]
        width = count * (16 if word & (1 << 30) else 8)
    out.base = (word >> 5) & 31
    if width == 0 or word & _WIDE:
        return _bad(out)
    if word & 0x00800000:
        if word & 0x1F0000 == 0x1F0000:
            out.moved = width
        else:
            _clobber(out.base, out)
    elif word & 0x1F0000 and word & 0x3FBFFC00 != 0x0D018400:  # ldap1 and stl1 have something there
        return _bad(out)
    if word & _IS_LOAD == 0:
        return _store(NONE, width, out)
    _clobber_vectors(word, count, 1, out)
    return _load(NONE, width, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _size_of_lane(word: cython.uint) -> cython.uint:
    """Bytes of one lane of a vector, and 0 where the instruction is none."""
    kind: cython.uint = (word >> 14) & 3
    size: cython.uint = (word >> 10) & 3
    if kind == 3:  # all lanes from one
        return 0 if word & _IS_LOAD == 0 or word & _BIT_12 else 1 << size
    if kind == 2 and size:
        return 0 if size != 1 or word & _BIT_12 else 8
    if kind == 1 and size & 1:
        return 0
    return 1 << kind


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _floating(word: cython.uint, out: Instruction) -> cython.int:
    """Floating point and vectors: all write the vector register in the lowest bits, but for those that are named."""
    if word & 0x5F000000 == 0x1E000000:
        return _scalar(word, out)
    if word & 0x5F000000 == 0x1F000000:
        if word & (_WIDE | _SETS_FLAGS):
            return _bad(out)
    elif word >> 31 == 0 and word & 0x3FE08400 == 0x0E000400 and word & 0x6800 == 0x2800:  # smov, umov
        return _clobber_general(word, out)
    elif word & _WIDE and word >> 24 != 0xCE:
        return _bad(out)
    return _clobber(_VECTORS + (word & 31), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scalar(word: cython.uint, out: Instruction) -> cython.int:
    """Floating point of one number: conversions may go into general registers, and comparisons nowhere."""
    kind: cython.uint = (word >> 10) & 63
    operation: cython.uint = (word >> 16) & 31
    if word & _SETS_FLAGS:
        return _bad(out)
    if word & _BIT_21 == 0:
        if operation & 6 == 0:  # fcvtzs, fcvtzu
            return _clobber_general(word, out)
    elif kind == 0:
        if operation & 6 == 0 or operation == 4 or operation == 5 or operation & 0x17 == 6 or operation == 0x1E:
            return _clobber_general(word, out)
    elif word & _WIDE:
        return _bad(out)
    elif kind & 3 == 1 or kind & 15 == 8:  # fccmp, fcmp
        return 0
    return _clobber(_VECTORS + (word & 31), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scalable(word: cython.uint, out: Instruction) -> cython.int:
    """Vectors whose length the machine chooses, and predicates."""
    kind: cython.uint = word >> 29
    if kind == 7:
        return _store_scalable(word, out)
    if kind > 3:
        return _load_scalable(word, out)
    operation: cython.uint = (word >> 13) & 7
    if kind == 0:
        if word & _BIT_21:
            if word & _BIT_24:
                return _permute(word, out)
            if operation == 7:  # cntb, incb and the like
                return _clobber_general(word, out)
            if operation == 2 and word & _BIT_12:
                if word & 0x00800000:  # rdvl
                    return _clobber_general(word, out)
                return _clobber(word & 31, out)  # addvl, addpl
    elif kind == 1:
        if word & (_BIT_24 | _BIT_21) != _BIT_24 | _BIT_21 or operation < 4:  # they write predicates
            return 0
        if operation < 6:
            return _count_predicates(word, out)
    elif word & _BIT_24:
        if kind == 2 and word & _BIT_21:
            if operation == 4:  # match
                return 0
            if operation == 7 and word & 0xC00800 == 0x800:  # aese and the like on many registers
                return _clobber_vectors(word, 4 if word & 0x41000 == 0x40000 else 2, 1, out)
        if kind == 3 and word & _BIT_21 == 0 and (operation & 2 or (operation == 1 and word & 0x180000 == 0x100000)):
            return 0  # fcmeq and the like
    return _clobber(_VECTORS + (word & 31), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _permute(word: cython.uint, out: Instruction) -> cython.int:
    """Instructions that reorder what vectors and predicates have."""
    operation: cython.uint = (word >> 13) & 7
    if operation == 2 or word & 0x39FC00 == 0x283800:  # those of predicates, pmov into one
        return 0
    if operation == 5 and word & 0xE0000 == 0:  # lasta, clasta
        return _clobber_general(word, out)
    return _clobber(_VECTORS + (word & 31), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_predicates(word: cython.uint, out: Instruction) -> cython.int:
    """cntp, incp and the like."""
    if word & 0x00180000 == 0:
        return _clobber_general(word, out)
    if word & 0x1000:  # setffr, wrffr
        return 0
    if word & 0x800:
        return _clobber_general(word, out)
    return _clobber(_VECTORS + (word & 31), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _store_scalable(word: cython.uint, out: Instruction) -> cython.int:
    """Where the end is depends on the machine: the index says that the place is not known."""
    out.base = (word >> 5) & 31
    out.index = out.base
    return _store(NONE, 1, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _load_scalable(word: cython.uint, out: Instruction) -> cython.int:
    """Loads into up to four registers, and prefetching."""
    kind: cython.uint = word >> 29
    operation: cython.uint = (word >> 13) & 7
    part: cython.uint = (word >> 21) & 3
    count: cython.uint = 1
    if kind == 5:
        if operation == 6 or (operation == 7 and word & (1 << 20) == 0):  # ld2b and the like
            count = part + 1
        elif (operation == 4 and part == 1) or (operation == 7 and part == 0):  # ld2q and the like
            count = ((word >> 23) & 3) + 1
        return _clobber_vectors(word, count, 1, out)
    if word & 16 == 0 and _is_prefetch(kind, operation, part, (word >> 23) & 3):
        return 0
    if kind == 4 and operation == 0 and word & 0x01C00000 == 0x01800000:  # ldr of a predicate
        return 0
    return _clobber_vectors(word, 1, 1, out)


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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _matrix(word: cython.uint, out: Instruction) -> cython.int:
    """Instructions on matrices, and those on up to four scalable vectors at once."""
    kind: cython.uint = (word >> 24) & 0x7F
    if kind == 0x41:
        if word & _BIT_21 and word & _BIT_15:
            return _many(word, out)
    elif kind == 0x40:
        return _from_matrix(word, out)
    elif kind & 0x7E == 0x60:
        if word & _BIT_21:
            return _store_scalable(word, out)
    elif kind & 0x7E == 0x20 and word & 0x00800000 == 0:
        if word & _BIT_21:
            return _store_scalable(word, out)
        if kind & 1 == 0:
            return _clobber_vectors(word & (28 if word & _BIT_15 else 30), 4 if word & _BIT_15 else 2, 1, out)
        if word & _BIT_15:
            return _clobber_vectors(word & 0x13, 4, 4, out)
        return _clobber_vectors(word & 0x17, 2, 8, out)
    elif kind > 1 and kind & 0x7E != 0x20:
        return _bad(out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _from_matrix(word: cython.uint, out: Instruction) -> cython.int:
    """Out of a matrix or the lookup table: mova, movt, luti2 and the like."""
    size: cython.uint = (word >> 22) & 3
    operation: cython.uint = (word >> 17) & 31
    if operation == 1 or (size == 3 and operation > 3 and operation < 8):
        return _clobber_vectors(word, 1, 1, out)
    if operation == 3:
        return _clobber_vectors(word, 4 if word & (1 << 10) else 2, 1, out)
    if size == 1 and operation == 6:
        return _clobber_general(word, out)
    if size == 2 and operation < 16 and operation & 7 > 4:
        if word & (1 << 14):
            return _clobber_vectors(word, 2, 8 if operation & 8 else 1, out)
        return _clobber_vectors(word, 4, 4 if operation & 8 else 1, out)
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
        return _clobber_vectors(word, count, 4, out)
    return _clobber_vectors(word & (32 - count), count, 1, out)  # what is below the number means something else
