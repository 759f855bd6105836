"""Instructions of AMD64 (compiled): lengths, where control goes, and what becomes of registers and the stack.

The vector extensions (VEX, EVEX and XOP) repeat the maps of `amd64opcodes` with prefixes of their own.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.code.amd64opcodes import one_byte_opcodes, two_byte_opcodes

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code import amd64opcodes as shape
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.effects import NONE, Effect, Flow
else:
    from walkback.base.cursor import as_signed
    from walkback.code import amd64opcodes as shape
    from walkback.code._instruction import Instruction
    from walkback.code.effects import NONE, Effect, Flow

_ALL = cython.declare(cython.ulonglong, WORD)
_HALF = cython.declare(cython.longlong, WORD >> 32)
_LONGEST = cython.declare(cython.Py_ssize_t, 15)
if cython.compiled:
    _ONE_BYTE = cython.declare(cython.const[cython.ushort][::1])
_ONE_BYTE = memoryview(one_byte_opcodes())
if cython.compiled:
    _TWO_BYTE = cython.declare(cython.const[cython.ushort][::1])
_TWO_BYTE = memoryview(two_byte_opcodes())

# Registers have their DWARF numbers.
_RAX = cython.declare(cython.int, 0)
_RDX = cython.declare(cython.int, 1)
_RCX = cython.declare(cython.int, 2)
_RBX = cython.declare(cython.int, 3)
_RSI = cython.declare(cython.int, 4)
_RDI = cython.declare(cython.int, 5)
_RBP = cython.declare(cython.int, 6)
_RSP = cython.declare(cython.int, 7)
_R11 = cython.declare(cython.int, 11)
_RIP = cython.declare(cython.int, -2)
"""In the place of a base register until the length is known."""
if cython.compiled:
    _NUMBERS = cython.declare(cython.const[cython.uchar][::1])
_NUMBERS = memoryview(bytes([0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15]))
"""The DWARF number of each register of the machine."""

# What prefixes say; the low bits are those of REX.
_B = cython.declare(cython.uint, 1)
_X = cython.declare(cython.uint, 2)
_R = cython.declare(cython.uint, 4)
_W = cython.declare(cython.uint, 8)
_REX = cython.declare(cython.uint, 16)
_ANY_REX = cython.declare(cython.uint, 31)
_WORD = cython.declare(cython.uint, 32)
_REP = cython.declare(cython.uint, 64)
_REPNE = cython.declare(cython.uint, 128)
_ELSEWHERE = cython.declare(cython.uint, 256)
"""Memory is not where the registers say: a segment with a base of its own, or addresses of 32 bits."""
_OTHER = cython.declare(cython.uint, 512)
"""Prefixes that change nothing that is of interest."""
_SHORT = cython.declare(cython.uint, 1024)
"""Addresses of 32 bits."""
_VECTOR = cython.declare(cython.uint, 2048)
"""VEX, EVEX or XOP."""
_VVVV = cython.declare(cython.int, 16)
"""The register in VEX.vvvv stands in the bits from here on."""
_PREFIX = {0x66: 32, 0xF3: 64, 0xF2: 128, 0x64: 256, 0x65: 256, 0x67: 256 | 1024}
_PREFIX |= dict.fromkeys((0xF0, 0x26, 0x2E, 0x36, 0x3E), 512)
if cython.compiled:
    _PREFIXES = cython.declare(cython.const[cython.ushort][::1])
_PREFIXES = memoryview(np.array([_PREFIX.get(byte, 0) for byte in range(256)], np.uint16))
if cython.compiled:
    _CONDITIONS = cython.declare(cython.const[cython.uchar][::1])
_CONDITIONS = memoryview(bytes([0, 0, 5, 4, 1, 2, 6, 3, *[0] * 8]))
"""The `Condition` of each condition code."""


@cython.boundscheck(False)
def decode(
    code,
    pos: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    address: cython.ulonglong,
    out: Instruction,
) -> cython.int:
    """Decode one instruction into `out`, which was cleared; what is none has the length 1."""
    stop: cython.Py_ssize_t = min(end, pos + _LONGEST)
    at: cython.Py_ssize_t = pos
    prefix: cython.uint = 0
    while at < stop:
        byte: cython.uint = code[at]
        if byte & 0xF0 == 0x40:
            prefix = (prefix & ~_ANY_REX) | _REX | (byte & 15)
        elif _PREFIXES[byte]:
            prefix = (prefix & ~_ANY_REX) | _PREFIXES[byte]
        else:
            break
        at += 1
    if at < stop:
        at = _opcode(code, at, stop, prefix, out)
    if at > stop or at <= pos or out.flow == Flow.BAD or stop == pos:
        out.clear()
        out.flow = Flow.BAD
        out.length = 1
        return 0
    out.length = cython.cast(cython.int, at - pos)
    if out.base == _RIP:
        out.base = NONE
        out.offset = as_signed((address + out.length + cython.cast(cython.ulonglong, out.offset)) & _ALL)
        if out.effect == Effect.ADD:
            out.effect = Effect.CONSTANT
    if out.flow == Flow.JUMP or out.flow == Flow.BRANCH or out.flow == Flow.CALL:
        out.target = (address + out.length + out.target) & _ALL
    return 0


_CUT_OFF = cython.declare(cython.Py_ssize_t, 1 << 60)
"""In the stead of the place behind an instruction that does not end in time."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _opcode(
    code: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Decode from the opcode on; returns the place behind the instruction."""
    byte: cython.uint = code[at]
    if byte == 0xC4 or byte == 0xC5 or byte == 0x62:
        return _vector(code, at, stop, prefix, out)
    if byte == 0x8F and at + 1 < stop and code[at + 1] & 0x1F >= 8:
        return _vector(code, at, stop, prefix, out)
    if byte != 0x0F:
        return _one_byte(code, at, stop, prefix, out)
    if at + 1 >= stop:
        return _CUT_OFF
    byte = code[at + 1]
    if byte == 0x38 or byte == 0x3A:
        return _three_bytes(code, at + 1, stop, prefix, out)
    return _two_bytes(code, at + 1, stop, prefix, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _one_byte(
    code: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    opcode: cython.uint = code[at]
    kind: cython.uint = _ONE_BYTE[opcode]
    modrm: cython.uint = 0
    at += 1
    if kind & shape.BAD:
        out.flow = Flow.BAD
    if kind & shape.MODRM:
        if at >= stop:
            return _CUT_OFF
        modrm = code[at]
        at = _operand(code, at, stop, prefix, out)
        if (opcode == 0xF6 or opcode == 0xF7) and modrm & 0x30 == 0:
            kind |= shape.IMM8 if opcode == 0xF6 else shape.IMM_Z
    size: cython.int = _size_of_immediate(kind, prefix)
    if opcode == 0xE8 or opcode == 0xE9:
        size = 4
    elif opcode & 0xFC == 0xA0:
        size = 4 if prefix & _SHORT else 8
    if at > stop - size:
        return _CUT_OFF
    _write(kind, opcode, modrm, prefix, out)
    if kind & shape.SPECIAL:
        _special(opcode, modrm, prefix, _number(code, at, size), out)
    return at + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _two_bytes(
    code: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    opcode: cython.uint = code[at]
    kind: cython.uint = _TWO_BYTE[opcode]
    modrm: cython.uint = 0
    at += 1
    if kind & shape.BAD:
        out.flow = Flow.BAD
    if kind & shape.MODRM:
        if at >= stop:
            return _CUT_OFF
        modrm = code[at]
        if opcode & 0xFC == 0x20:  # control and debug registers, never memory
            modrm |= 0xC0
            at += 1
        else:
            at = _operand(code, at, stop, prefix, out)
    size: cython.int = _size_of_immediate(kind, prefix)
    if opcode & 0xF0 == 0x80:
        size = 4
    elif opcode == 0x78 and prefix & (_WORD | _REPNE):
        size = 2  # extrq, insertq
    if at > stop - size:
        return _CUT_OFF
    _write(kind, opcode, modrm, prefix, out)
    if opcode & 0xF0 == 0x80:
        out.flow = Flow.BRANCH
        out.condition = _CONDITIONS[opcode & 15]
        out.target = cython.cast(cython.ulonglong, _number(code, at, size)) & _ALL
    elif kind & shape.SPECIAL:
        _special_two(opcode, modrm, prefix, out)
    return at + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _three_bytes(
    code: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """The maps behind 0F 38 and 0F 3A; the latter's instructions end in a byte."""
    is_second: cython.bint = code[at] == 0x3A
    at += 1
    if at + 1 >= stop:
        return _CUT_OFF
    opcode: cython.uint = code[at]
    modrm: cython.uint = code[at + 1]
    at = _operand(code, at + 1, stop, prefix, out)
    kind: cython.uint = 0
    if is_second:
        at += 1
        if opcode & 0xFC == 0x14:
            kind = shape.RM
        elif opcode == 0x61 or opcode == 0x63:
            _clobber(_RCX, out)
    elif opcode == 0xF0 or opcode == 0xF1:
        kind = shape.RM if opcode == 0xF1 and prefix & _REPNE == 0 else shape.REG  # crc32, movbe
    elif (opcode == 0xF6 and prefix & (_WORD | _REP)) or (opcode & 0xFE == 0xFA and prefix & _REP):
        kind = shape.REG
    elif opcode == 0xF9:
        kind = shape.RM
    _write(kind, opcode, modrm, prefix, out)
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _vector(
    code: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Instructions behind VEX, EVEX or XOP."""
    lead: cython.uint = code[at]
    length: cython.int = 2 if lead == 0xC5 else 4 if lead == 0x62 else 3
    if at + length + 1 >= stop:
        # vzeroupper is nothing but this and an opcode
        if lead != 0xC5 or at + 2 >= stop or code[at + 2] != 0x77:
            return _CUT_OFF
    one: cython.uint = code[at + 1]
    two: cython.uint = one if lead == 0xC5 else code[at + 2]
    map_: cython.uint = 1
    prefix &= ~_ANY_REX & ~(_WORD | _REP | _REPNE)
    prefix |= _VECTOR | ((~one >> 5) & _R)
    if lead != 0xC5:
        map_ = one & (7 if lead == 0x62 else 31)
        prefix |= ((~one >> 5) & (_X | _B)) | ((two >> 4) & _W)
    if lead == 0x62 and (one & 8 or two & 4 == 0):
        out.flow = Flow.BAD
    if two & 3:
        prefix |= _WORD if two & 3 == 1 else _REP if two & 3 == 2 else _REPNE
    prefix |= ((~two >> 3) & 15) << _VVVV
    at += length
    opcode: cython.uint = code[at]
    if lead != 0x62 and map_ == 1 and opcode == 0x77:
        return at + 1
    if (map_ < 1 or map_ > 3) and (lead != 0x62 or (map_ != 5 and map_ != 6)) and (lead != 0x8F or map_ > 10):
        out.flow = Flow.BAD
    modrm: cython.uint = code[at + 1]
    at = _operand(code, at + 1, stop, prefix, out)
    if map_ == 3 or map_ == 8 or (map_ == 1 and _TWO_BYTE[opcode] & shape.IMM8 and opcode & 0xF0 != 0xA0):
        at += 1
    elif map_ == 10:
        at += 4
    _write_of_vector(lead, map_, opcode, modrm, prefix, out)
    if map_ == 1 and lead != 0x62 and modrm < 0xC0 and _TWO_BYTE[opcode] & shape.WIDE:
        size: cython.int = _vector_width(opcode, prefix)
        _store(32 if size == 16 and two & 4 else size, out)
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _write_of_vector(
    lead: cython.uint,
    map_: cython.uint,
    opcode: cython.uint,
    modrm: cython.uint,
    prefix: cython.uint,
    out: Instruction,
) -> cython.int:
    """Which general registers are written behind VEX, EVEX or XOP."""
    kind: cython.uint = 0
    vvvv: cython.bint = False
    scalar: cython.bint = prefix & (_REP | _REPNE) != 0
    if map_ == 1 or map_ == 5:
        if opcode & 0xFE == 0x2C or (lead == 0x62 and opcode & 0xFE == 0x78):
            kind = shape.REG if scalar else 0
        elif opcode == 0x7E:
            kind = shape.RM if prefix & _WORD else 0
        elif map_ == 1 and (opcode == 0x50 or opcode == 0xC5 or opcode == 0xD7 or (lead != 0x62 and opcode == 0x93)):
            kind = shape.REG
    elif map_ == 2 and lead != 0x62:
        if opcode == 0xF2 or opcode == 0xF5 or opcode == 0xF7 or (opcode & 0xF0 == 0xE0 and prefix & _WORD):
            kind = shape.REG
        elif opcode == 0xF3 or opcode == 0xF6:
            vvvv = True
            kind = shape.REG if opcode == 0xF6 else 0
    elif map_ == 3:
        if opcode & 0xFC == 0x14:
            kind = shape.RM
        elif opcode == 0xF0 and lead != 0x62:
            kind = shape.REG
        elif opcode == 0x61 or opcode == 0x63:
            _clobber(_RCX, out)
    elif map_ == 9:
        vvvv = opcode == 1 or opcode == 2
    elif map_ == 10:
        kind = shape.REG if opcode == 0x10 else 0
    if vvvv:
        _clobber(_NUMBERS[(prefix >> _VVVV) & 15], out)
    return _write(kind, opcode, modrm, prefix, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _operand(
    code: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Read ModRM and what belongs to it; returns the place behind. Memory that is nowhere known has an index."""
    modrm: cython.uint = code[at]
    mode: cython.uint = modrm >> 6
    low: cython.uint = modrm & 7
    size: cython.int = 1 if mode == 1 else 4 if mode == 2 else 0
    at += 1
    if mode == 3:
        return at
    if low == 4:
        if at >= stop:
            return _CUT_OFF
        sib: cython.uint = code[at]
        at += 1
        low = sib & 7
        index: cython.uint = ((sib >> 3) & 7) | (8 if prefix & _X else 0)
        if index != 4:
            out.index = _NUMBERS[index]
            out.scale = 1 << (sib >> 6)
        if low == 5 and mode == 0:
            size = 4
        else:
            out.base = _NUMBERS[low | (8 if prefix & _B else 0)]
    elif low == 5 and mode == 0:
        out.base = _RIP
        size = 4
    else:
        out.base = _NUMBERS[low | (8 if prefix & _B else 0)]
    if at > stop - size:
        return _CUT_OFF
    out.offset = _number(code, at, size)
    if prefix & _ELSEWHERE:
        out.base = NONE
        out.index = _RAX
        out.offset = 0
    return at + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _number(code: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.int) -> cython.longlong:
    """A signed number of `size` bytes."""
    i: cython.int
    value: cython.ulonglong = 0
    for i in range(size):
        value |= cython.cast(cython.ulonglong, code[at + i]) << (8 * i)
    if 0 < size < 8 and value >> (8 * size - 1):
        return cython.cast(cython.longlong, value) - (cython.cast(cython.longlong, 1) << (8 * size))
    return as_signed(value)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _size_of_immediate(kind: cython.uint, prefix: cython.uint) -> cython.int:
    size: cython.int = 0
    if kind & shape.IMM8:
        size += 1
    if kind & shape.IMM16:
        size += 2
    if kind & (shape.IMM_Z | shape.IMM_V):
        size += 2 if prefix & (_WORD | _W) == _WORD else 4
        if kind & shape.IMM_V and prefix & _W:
            size += 4
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _width(kind: cython.uint, prefix: cython.uint) -> cython.int:
    """Bytes of an operand."""
    if kind & shape.BYTE:
        return 1
    return 8 if prefix & _W else 2 if prefix & _WORD else 4


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _vector_width(opcode: cython.uint, prefix: cython.uint) -> cython.int:
    """Bytes that the store of a vector register writes: one or two numbers, or all."""
    if opcode == 0x11:
        return 4 if prefix & _REP else 8 if prefix & _REPNE else 16
    if opcode == 0x13 or opcode == 0x17 or opcode == 0xD6:
        return 8
    return 8 if (opcode == 0x7F or opcode == 0xE7) and prefix & (_WORD | _REP) == 0 else 16


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _rm(kind: cython.uint, modrm: cython.uint, prefix: cython.uint) -> cython.int:
    """The register that rm names."""
    return _register(kind, (modrm & 7) | (8 if prefix & _B else 0), prefix)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _reg(kind: cython.uint, modrm: cython.uint, prefix: cython.uint) -> cython.int:
    """The register that reg names."""
    return _register(kind, ((modrm >> 3) & 7) | (8 if prefix & _R else 0), prefix)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _register(kind: cython.uint, number: cython.uint, prefix: cython.uint) -> cython.int:
    if kind & shape.BYTE and prefix & _REX == 0:
        number &= 3  # ah, ch, dh and bh are parts of rax, rcx, rdx and rbx
    return _NUMBERS[number]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _clobber(register: cython.int, out: Instruction) -> cython.int:
    out.clobbers |= cython.cast(cython.ulonglong, 1) << register
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _store(width: cython.int, out: Instruction) -> cython.int:
    """Something is stored at the operand."""
    out.effect = Effect.STORE
    out.width = width
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _write(
    kind: cython.uint, opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction
) -> cython.int:
    """What the shape of an opcode says of writing."""
    if kind & shape.RM:
        if modrm >= 0xC0:
            _clobber(_rm(kind, modrm, prefix), out)
        else:
            _store(_width(kind, prefix), out)
    if kind & shape.WIDE and modrm < 0xC0:
        _store(_vector_width(opcode, prefix), out)
    if kind & shape.REG:
        _clobber(_reg(kind, modrm, prefix), out)
    if kind & shape.AX:
        _clobber(_RAX, out)
    if kind & shape.LOW:
        _clobber(_register(kind, (opcode & 7) | (8 if prefix & _B else 0), prefix), out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _make(effect: cython.int, first: cython.int, second: cython.int, out: Instruction) -> cython.int:
    """An effect on one register, from another; nothing else is changed."""
    out.effect = effect
    out.first = first
    out.second = second
    out.clobbers = 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _add(first: cython.int, base: cython.int, offset: cython.longlong, out: Instruction) -> cython.int:
    _make(Effect.ADD, first, NONE, out)
    out.base = base
    out.offset = offset
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _push(register: cython.int, prefix: cython.uint, out: Instruction) -> cython.int:
    _make(Effect.STORE, register, NONE, out)
    out.width = 2 if prefix & _WORD else 8
    out.base = _RSP
    out.index = NONE
    out.offset = 0
    out.moved = -out.width
    out.before = True
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _pop(register: cython.int, prefix: cython.uint, out: Instruction) -> cython.int:
    _make(Effect.LOAD, register, NONE, out)
    out.width = 2 if prefix & _WORD else 8
    out.base = _RSP
    out.index = NONE
    out.offset = 0
    out.moved = out.width
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _special(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """What else is known of an instruction of the first map."""
    if opcode < 0x40:
        return _sum(opcode, modrm, prefix, number, out)
    if opcode < 0x60:
        register: cython.int = _NUMBERS[(opcode & 7) | (8 if prefix & _B else 0)]
        if opcode < 0x58:
            return _push(register, prefix, out)
        return _pop(register, prefix, out)
    if opcode == 0x80 or opcode == 0x81 or opcode == 0x83:
        return _sum_with_number(opcode, modrm, prefix, number, out)
    if opcode == 0x63 or 0x86 < opcode < 0x8E or 0x90 <= opcode <= 0x99 or 0xB8 <= opcode < 0xC0:
        return _move(opcode, modrm, prefix, number, out)
    if opcode & 0xF0 == 0x70 or opcode >= 0xC2:
        return _flow(opcode, modrm, prefix, number, out)
    if opcode == 0x8F:
        if modrm & 0x38:
            out.flow = Flow.BAD
        return _pop(_rm(0, modrm, prefix) if modrm >= 0xC0 else NONE, prefix, out)
    if opcode == 0x68 or opcode == 0x6A or opcode == 0x9C:
        return _push(NONE, prefix, out)
    if opcode == 0x9D:
        return _pop(NONE, prefix, out)
    if opcode & 0xFC == 0xA0:
        if opcode < 0xA2:
            _clobber(_RAX, out)
        return 0
    return _string(opcode, prefix, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _string(opcode: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """ins, outs, movs, cmps, stos, lods and scas."""
    if opcode & 0xFE != 0xAA and opcode & 0xFE != 0xAE and opcode & 0xFE != 0x6C:
        _clobber(_RSI, out)
    if opcode & 0xFE != 0xAC and opcode & 0xFE != 0x6E:
        _clobber(_RDI, out)
    if opcode & 0xFE == 0xAC:
        _clobber(_RAX, out)
    if prefix & (_REP | _REPNE):
        _clobber(_RCX, out)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _sum(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """add, or, adc, sbb, and, sub, xor and cmp of registers, and of rax and a number."""
    operation: cython.uint = opcode >> 3
    first: cython.int
    second: cython.int
    if opcode & 7 >= 4:
        return _sum_of_number(operation, _RAX, opcode & 1, prefix, number, out)
    if modrm < 0xC0:
        if operation == 7:
            out.effect = Effect.NOTHING
        return 0
    first = _rm(0, modrm, prefix)
    second = _reg(0, modrm, prefix)
    if opcode & 2:
        first, second = second, first
    if operation == 6 and first == second:
        _make(Effect.CONSTANT, first, NONE, out)
    elif prefix & _W == 0:
        return 0
    elif operation == 7:
        _make(Effect.COMPARE, first, second, out)
    elif operation == 0 or operation == 5:
        _make(Effect.ADD_REGISTERS if operation == 0 else Effect.SUBTRACT, first, NONE, out)
        out.base = first
        out.index = second
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _sum_of_number(
    operation: cython.uint,
    register: cython.int,
    whole: cython.bint,
    prefix: cython.uint,
    number: cython.longlong,
    out: Instruction,
) -> cython.int:
    """The same of a register and a number."""
    if operation == 7:
        _make(Effect.COMPARE_CONSTANT, register, NONE, out)
        out.offset = number
    elif prefix & _W and whole:
        if operation == 0 or operation == 5:
            _add(register, register, number if operation == 0 else -number, out)
        elif operation == 4:
            _add(register, register, number, out)
            out.effect = Effect.ALIGN
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _sum_with_number(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """The same of an operand and a number."""
    operation: cython.uint = (modrm >> 3) & 7
    kind: cython.uint = shape.BYTE if opcode == 0x80 else 0
    if modrm >= 0xC0:
        register: cython.int = _rm(kind, modrm, prefix)
        if operation != 7:
            _clobber(register, out)
        return _sum_of_number(operation, register, opcode != 0x80, prefix, number, out)
    if operation == 7:
        _make(Effect.COMPARE_CONSTANT, NONE, NONE, out)
        out.base = out.index = NONE
        out.offset = number
        return 0
    if number == 0 and operation != 2 and operation != 3 and operation != 4:
        return 0  # memory stays as it was: a fence, or a touch of the stack
    return _store(_width(kind, prefix), out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _move(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """mov, movsxd, lea, xchg, cdqe, cqo."""
    whole: cython.bint = prefix & _W != 0
    reg: cython.int = _reg(0, modrm, prefix)
    rm: cython.int = _rm(0, modrm, prefix)
    low: cython.int = _NUMBERS[(opcode & 7) | (8 if prefix & _B else 0)]
    if opcode == 0x98:
        _make(Effect.EXTEND, _RAX, _RAX, out)
    elif opcode == 0x99:
        _clobber(_RDX, out)
    elif opcode >= 0xB8:
        _make(Effect.CONSTANT, low, NONE, out)
        out.offset = number if whole else number & _HALF
    elif opcode >= 0x90:
        if low == _RAX:
            return 0
        if whole:
            return _make(Effect.EXCHANGE, _RAX, low, out)
        _clobber(_RAX, out)
        _clobber(low, out)
    elif opcode == 0x8D:
        if modrm >= 0xC0:
            out.flow = Flow.BAD
        elif whole and prefix & _SHORT == 0:
            _make(Effect.ADD if out.index == NONE else Effect.ADD_REGISTERS, reg, NONE, out)
    elif opcode == 0x89 and modrm < 0xC0:
        if whole:
            out.first = reg
    elif modrm >= 0xC0:
        if opcode == 0x87:
            return _make(Effect.EXCHANGE, rm, reg, out) if whole else 0
        if opcode == 0x89:
            reg, rm = rm, reg
        _make(Effect.COPY if whole and opcode != 0x63 else Effect.EXTEND, reg, rm, out)
    elif opcode == 0x8B and whole and out.index == NONE:
        _make(Effect.LOAD, reg, NONE, out)
    elif opcode == 0x8B or opcode == 0x63:
        if prefix & _WORD == 0:
            _make(Effect.LOAD_TABLE, reg, NONE, out)
            out.width = 8 if whole and opcode == 0x8B else 4
            out.signed = opcode == 0x63
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _flow(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """Jumps, calls, returns, and what else has an opcode from C2 on."""
    operation: cython.uint = (modrm >> 3) & 7
    if opcode & 0xF0 == 0x70 or opcode & 0xFC == 0xE0:
        out.flow = Flow.BRANCH
        if opcode < 0x80:
            out.condition = _CONDITIONS[opcode & 15]
        elif opcode < 0xE3:
            _clobber(_RCX, out)
    elif opcode == 0xE8:
        out.flow = Flow.CALL
    elif opcode == 0xE9 or opcode == 0xEB:
        out.flow = Flow.JUMP
    elif opcode == 0xC2 or opcode == 0xC3 or opcode == 0xCA or opcode == 0xCB or opcode == 0xCF:
        out.flow = Flow.RETURN
    elif opcode == 0xF4:
        out.flow = Flow.TRAP
    elif opcode == 0xC9:
        _make(Effect.LEAVE, _RSP, NONE, out)
        out.base = _RBP
    elif opcode == 0xC8:
        _clobber(_RSP, out)
        _clobber(_RBP, out)
    elif opcode == 0xCD:
        _clobber(_RAX, out)
    elif opcode == 0xC6 or opcode == 0xC7:
        return _move_number(opcode, modrm, prefix, number, out)
    elif opcode >= 0xF6:
        return _group(opcode, operation, modrm, prefix, out)
    else:
        return _float(opcode, operation, modrm, out)
    out.target = cython.cast(cython.ulonglong, number) & _ALL
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _move_number(
    opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, number: cython.longlong, out: Instruction
) -> cython.int:
    """Mov of a number; xbegin and xabort."""
    if modrm == 0xF8:
        out.clobbers = 0
        _clobber(_RAX, out)
        if opcode == 0xC7:
            out.flow = Flow.BRANCH
            out.target = cython.cast(cython.ulonglong, number) & _ALL
    elif modrm & 0x38:
        out.flow = Flow.BAD
    elif modrm >= 0xC0 and opcode == 0xC7:
        _make(Effect.CONSTANT, _rm(0, modrm, prefix), NONE, out)
        out.offset = number if prefix & _W else number & _HALF
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _group(
    opcode: cython.uint, operation: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction
) -> cython.int:
    """F6, F7, FE and FF."""
    kind: cython.uint = shape.RM if opcode & 1 else shape.RM | shape.BYTE
    if opcode < 0xF8:
        if operation >= 4:
            _clobber(_RAX, out)
            if opcode == 0xF7:
                _clobber(_RDX, out)
        elif operation >= 2:
            _write(kind, opcode, modrm, prefix, out)
    elif operation < 2:
        _write(kind, opcode, modrm, prefix, out)
        if opcode == 0xFF and modrm >= 0xC0 and prefix & _W:
            register: cython.int = _rm(0, modrm, prefix)
            _add(register, register, -1 if operation else 1, out)
    elif opcode == 0xFE or operation == 7:
        out.flow = Flow.BAD
    elif operation == 6:
        _push(_rm(0, modrm, prefix) if modrm >= 0xC0 else NONE, prefix, out)
    else:
        out.flow = Flow.CALL_INDIRECT if operation < 4 else Flow.JUMP_INDIRECT
        if modrm >= 0xC0:
            out.first = _rm(0, modrm, prefix)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _float(opcode: cython.uint, operation: cython.uint, modrm: cython.uint, out: Instruction) -> cython.int:
    """D8 to DF: what is stored, and `fnstsw %ax`."""
    if opcode == 0xDF and modrm == 0xE0:
        return _clobber(_RAX, out)
    if modrm >= 0xC0 or opcode & 1 == 0 or operation == 0 or operation == 4 or operation == 5:
        return 0
    if operation < 4:
        return _store(8 if opcode == 0xDD else 2 if opcode == 0xDF else 4, out)
    if operation == 6:
        return _store(28 if opcode == 0xD9 else 108 if opcode == 0xDD else 10, out)
    return _store(10 if opcode == 0xDB else 8 if opcode == 0xDF else 2, out)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _special_two(opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction) -> cython.int:
    """What else is known of an instruction of the second map."""
    operation: cython.uint = (modrm >> 3) & 7
    is_register: cython.bint = modrm >= 0xC0
    kind: cython.uint = 0
    if opcode == 0x05:
        _clobber(_RAX, out)
        _clobber(_RCX, out)
        _clobber(_R11, out)
    elif opcode == 0x07 or opcode == 0x35:
        out.flow = Flow.RETURN
    elif opcode == 0x0B or opcode == 0xB9 or opcode == 0xFF:
        out.flow = Flow.TRAP
    elif opcode == 0xA0 or opcode == 0xA8:
        return _push(NONE, prefix, out)
    elif opcode == 0xA1 or opcode == 0xA9:
        return _pop(NONE, prefix, out)
    elif opcode < 0x34 and opcode > 0x30:
        _clobber(_RAX, out)
        _clobber(_RDX, out)
    elif opcode == 0xA2:
        _clobber(_RAX, out)
        _clobber(_RBX, out)
        _clobber(_RCX, out)
        _clobber(_RDX, out)
    elif opcode == 0x00:
        kind = shape.RM if operation < 2 else 0
    elif opcode == 0x01:
        if operation == 4:
            kind = shape.RM
        elif modrm == 0xD0 or modrm == 0xEE or modrm == 0xF9:
            _clobber(_RAX, out)
            _clobber(_RDX, out)
            if modrm == 0xF9:
                _clobber(_RCX, out)
    elif opcode == 0x1E:
        kind = shape.RM if is_register and operation == 1 and prefix & _REP else 0
    elif opcode & 0xFE == 0x2C:
        kind = shape.REG if prefix & (_REP | _REPNE) else 0
    elif opcode & 0xFE == 0x78:
        kind = shape.RM if opcode == 0x78 and prefix & (_WORD | _REPNE) == 0 else 0
    elif opcode == 0x7E:
        kind = shape.RM if prefix & _REP == 0 else 0
    elif opcode & 0xFE == 0xA6:
        _clobber(_RAX, out)
        _clobber(_RCX, out)
        _clobber(_RSI, out)
        _clobber(_RDI, out)
    elif opcode == 0xAE:
        kind = shape.RM if is_register and operation < 2 and prefix & _REP else 0
    elif opcode & 0xFE == 0xB6:
        if not is_register:
            return _write(shape.REG, opcode, modrm, prefix, out)
        _make(Effect.EXTEND, _reg(0, modrm, prefix), _rm(0 if opcode & 1 else shape.BYTE, modrm, prefix), out)
    elif opcode == 0xB8:
        kind = shape.REG
        if prefix & _REP == 0:
            out.flow = Flow.BAD
    elif opcode == 0xBA:
        kind = shape.RM if operation > 4 else 0
        if operation < 4:
            out.flow = Flow.BAD
    elif opcode == 0xC7:
        if is_register:
            kind = shape.RM if operation > 5 and (prefix & _REP == 0 or operation == 7) else 0
        elif operation == 1:
            _clobber(_RAX, out)
            _clobber(_RDX, out)
            return _store(16 if prefix & _W else 8, out)
    return _write(kind, opcode, modrm, prefix, out)
