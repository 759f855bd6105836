"""Instructions of AMD64 (compiled): lengths, where control goes, and what becomes of registers and the stack.

`_onebyte` and `_twobytes` say what special instructions of the maps do, `_writes` what the others write. The vector
extensions (VEX, EVEX and XOP) repeat the maps of `opcodes` with prefixes of their own.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.code.amd64.opcodes import one_byte_opcodes, two_byte_opcodes
from walkback.code.amd64.prefixes import PREFIXES

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.amd64 import _onebyte, _twobytes, registers
    from cython.cimports.walkback.code.amd64 import opcodes as shape
    from cython.cimports.walkback.code.amd64 import prefixes as has
    from cython.cimports.walkback.code.amd64._writes import write, write_of_vector
    from cython.cimports.walkback.code.amd64.operands import condition_of, dwarf, vector_width
    from cython.cimports.walkback.code.effects import NONE, Effect, Flow
    from cython.cimports.walkback.code.filling import clear, clobber, store
else:
    from walkback.base.cursor import as_signed
    from walkback.code._instruction import Instruction
    from walkback.code.amd64 import _onebyte, _twobytes, registers
    from walkback.code.amd64 import opcodes as shape
    from walkback.code.amd64 import prefixes as has
    from walkback.code.amd64._writes import write, write_of_vector
    from walkback.code.amd64.operands import condition_of, dwarf, vector_width
    from walkback.code.effects import NONE, Effect, Flow
    from walkback.code.filling import clear, clobber, store

_ALL = cython.declare(cython.ulonglong, WORD)
_LONGEST = cython.declare(cython.Py_ssize_t, 15)
_CUT_OFF = cython.declare(cython.Py_ssize_t, 1 << 60)
"""In the stead of the place behind an instruction that does not end in time."""
_SIGN = cython.declare(cython.longlong, 1 << 31)
"""Of a number of 4 bytes."""
if cython.compiled:
    _ONE_BYTE = cython.declare(cython.const[cython.ushort][::1])
_ONE_BYTE = memoryview(one_byte_opcodes())
if cython.compiled:
    _TWO_BYTE = cython.declare(cython.const[cython.ushort][::1])
_TWO_BYTE = memoryview(two_byte_opcodes())
if cython.compiled:
    _PREFIXES = cython.declare(cython.const[cython.ushort][::1])
_PREFIXES = memoryview(np.array([PREFIXES.get(byte, 0) for byte in range(256)], np.uint16))


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
        found: cython.uint = _PREFIXES[code[at]]
        if not found:
            break
        prefix = (prefix & ~has.ANY_REX) | found
        at += 1
    if at < stop:
        at = _opcode(code, at, stop, prefix, out)
    if at > stop or at <= pos or out.flow == Flow.BAD or stop == pos:
        clear(out)
        out.flow = Flow.BAD
        out.length = 1
        return 0
    out.length = cython.cast(cython.int, at - pos)
    if out.base == registers.RIP:
        out.base = NONE
        out.offset = as_signed((address + out.length + cython.cast(cython.ulonglong, out.offset)) & _ALL)
        if out.effect == Effect.ADD:
            out.effect = Effect.CONSTANT
    if out.flow == Flow.JUMP or out.flow == Flow.BRANCH or out.flow == Flow.CALL:
        out.target = (address + out.length + out.target) & _ALL
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _opcode(
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Decode from the opcode on; returns the place behind the instruction."""
    byte: cython.uint = code[at]
    if _ONE_BYTE[byte] & shape.BAD == 0 and (byte != 0x8F or at + 1 >= stop or code[at + 1] & 0x1F < 8):
        return _one_byte(code, at, stop, prefix, out)
    if byte == 0xC4 or byte == 0xC5 or byte == 0x62 or byte == 0x8F:
        return _vector(code, at, stop, prefix, out)
    if byte != 0x0F:
        out.flow = Flow.BAD
        return at
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
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    opcode: cython.uint = code[at]
    kind: cython.uint = _ONE_BYTE[opcode]
    modrm: cython.uint = 0
    at += 1
    if kind & shape.MODRM:
        if at >= stop:
            return _CUT_OFF
        modrm = code[at]
        at = _operand(code, at, stop, prefix, out)
        if kind & shape.GROUP and modrm & 0x30 == 0:
            kind |= shape.IMM8 if opcode == 0xF6 else shape.IMM_Z
    size: cython.int = 0
    if kind & shape.NUMBER:
        size = _size_of_number(kind, prefix)
    if at > stop - size:
        return _CUT_OFF
    if kind & shape.WRITES:
        write(kind, opcode, modrm, prefix, out)
    if kind & shape.SPECIAL:
        _onebyte.special(opcode, modrm, prefix, _number(code, at, size), out)
    return at + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _two_bytes(
    code: cython.pointer(cython.const[cython.uchar]),
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
    size: cython.int = 0
    if kind & shape.NUMBER:
        size = _size_of_number(kind, prefix)
    elif opcode == 0x78 and prefix & (has.DATA_16 | has.REPNE):
        size = 2  # extrq, insertq
    if at > stop - size:
        return _CUT_OFF
    if kind & shape.WRITES:
        write(kind, opcode, modrm, prefix, out)
    if opcode & 0xF0 == 0x80:
        out.flow = Flow.BRANCH
        out.condition = condition_of(opcode)
        out.target = cython.cast(cython.ulonglong, _number(code, at, size)) & _ALL
    elif kind & shape.SPECIAL:
        _twobytes.special(opcode, modrm, prefix, out)
    return at + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _three_bytes(
    code: cython.pointer(cython.const[cython.uchar]),
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
            clobber(registers.RCX, out)
    elif opcode == 0xF0 or opcode == 0xF1:
        kind = shape.RM if opcode == 0xF1 and prefix & has.REPNE == 0 else shape.REG  # crc32, movbe
    elif (opcode == 0xF6 and prefix & (has.DATA_16 | has.REP)) or (opcode & 0xFE == 0xFA and prefix & has.REP):
        kind = shape.REG
    elif opcode == 0xF9:
        kind = shape.RM
    write(kind, opcode, modrm, prefix, out)
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _vector(
    code: cython.pointer(cython.const[cython.uchar]),
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
    prefix &= ~has.ANY_REX & ~(has.DATA_16 | has.REP | has.REPNE)
    prefix |= (~one >> 5) & has.REX_R
    if lead != 0xC5:
        map_ = one & (7 if lead == 0x62 else 31)
        prefix |= ((~one >> 5) & (has.REX_X | has.REX_B)) | ((two >> 4) & has.REX_W)
    if lead == 0x62 and (one & 8 or two & 4 == 0):
        out.flow = Flow.BAD
    if two & 3:
        prefix |= has.DATA_16 if two & 3 == 1 else has.REP if two & 3 == 2 else has.REPNE
    prefix |= ((~two >> 3) & 15) << has.VVVV
    at += length
    opcode: cython.uint = code[at]
    if lead != 0x62 and map_ == 1 and opcode == 0x77:
        return at + 1
    if (map_ < 1 or map_ > 3) and (lead != 0x62 or (map_ != 5 and map_ != 6)) and (lead != 0x8F or map_ > 10):
        out.flow = Flow.BAD
    modrm: cython.uint = code[at + 1]
    at = _operand(code, at + 1, stop, prefix, out)
    if lead == 0x62 and modrm >> 6 == 1:
        out.index = registers.RAX  # a distance of one byte counts in units that depend on the opcode
        out.offset = 0
    if map_ == 3 or map_ == 8 or (map_ == 1 and _TWO_BYTE[opcode] & shape.IMM8 and opcode & 0xF0 != 0xA0):
        at += 1
    elif map_ == 10:
        at += 4
    write_of_vector(lead, map_, opcode, modrm, prefix, out)
    if map_ == 1 and lead != 0x62 and modrm < 0xC0 and _TWO_BYTE[opcode] & shape.WIDE:
        size: cython.int = vector_width(opcode, prefix)
        store(NONE, 32 if size == 16 and two & 4 else size, out)
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _operand(
    code: cython.pointer(cython.const[cython.uchar]),
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
        index: cython.uint = ((sib >> 3) & 7) | (8 if prefix & has.REX_X else 0)
        if index != 4:
            out.index = dwarf(index)
            out.scale = 1 << (sib >> 6)
        if low == 5 and mode == 0:
            size = 4
        else:
            out.base = dwarf(low | (8 if prefix & has.REX_B else 0))
    elif low == 5 and mode == 0:
        out.base = registers.RIP
        size = 4
    else:
        out.base = dwarf(low | (8 if prefix & has.REX_B else 0))
    if at > stop - size:
        return _CUT_OFF
    out.offset = _number(code, at, size)
    if prefix & has.ELSEWHERE:
        out.base = NONE
        out.index = registers.RAX
        out.offset = 0
    return at + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _number(
    code: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, size: cython.int
) -> cython.longlong:
    """A signed number of `size` bytes."""
    i: cython.int
    value: cython.ulonglong = 0
    if size == 0:
        return 0
    if size == 1:
        return (code[at] ^ 0x80) - 0x80
    if size == 4:
        value = code[at] | (code[at + 1] << 8) | (code[at + 2] << 16) | (cython.cast(cython.uint, code[at + 3]) << 24)
        return (cython.cast(cython.longlong, value) ^ _SIGN) - _SIGN
    for i in range(size):
        value |= cython.cast(cython.ulonglong, code[at + i]) << (8 * i)
    if size == 8:
        return as_signed(value)
    if value >> (8 * size - 1):
        return cython.cast(cython.longlong, value) - (cython.cast(cython.longlong, 1) << (8 * size))
    return cython.cast(cython.longlong, value)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _size_of_number(kind: cython.uint, prefix: cython.uint) -> cython.int:
    """Bytes of an immediate, or of the distance or address that stands there."""
    size: cython.int = 4 if kind & shape.NEAR else 0
    if kind & shape.IMM8:
        size += 1
    if kind & shape.IMM16:
        size += 2
    if kind & (shape.IMM_Z | shape.IMM_V):
        size += 2 if prefix & (has.DATA_16 | has.REX_W) == has.DATA_16 else 4
        if kind & shape.IMM_V and prefix & has.REX_W:
            size += 4
    if kind & shape.ADDRESS:
        size += 4 if prefix & has.ADDRESS_32 else 8
    return size
