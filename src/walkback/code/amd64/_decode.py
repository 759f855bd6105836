"""Instructions of AMD64 (compiled): lengths, where control goes, and what becomes of registers and the stack.

`opcodes` has what stands behind each opcode, and `fields` reads it. `onebyte`, `twobytes` and `promoted` have what
instructions of the maps do, `writes` what the others write. The vector extensions (VEX, EVEX and XOP) repeat the maps
with prefixes of their own, and APX adds 16 registers, which EVEX or the prefix REX2 name.

Bytes are read before it is clear that the instruction does not end too early: see `decoding`.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.code.amd64.opcodes import one_byte_opcodes, promoted_opcodes, two_byte_opcodes
from walkback.code.amd64.prefixes import PREFIXES

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.amd64 import opcodes as shape
    from cython.cimports.walkback.code.amd64 import prefixes as has
    from cython.cimports.walkback.code.amd64 import registers
    from cython.cimports.walkback.code.amd64.fields import memory_operand, operand, signed_number, size_of_number
    from cython.cimports.walkback.code.amd64.onebyte import first_map
    from cython.cimports.walkback.code.amd64.operands import of_reg, of_rm, pop, rex, stack_width, vector_width
    from cython.cimports.walkback.code.amd64.promoted import fourth_map
    from cython.cimports.walkback.code.amd64.twobytes import second_map
    from cython.cimports.walkback.code.amd64.writes import (
        compressed_width,
        extracted_width,
        is_promoted,
        stored_width,
        write,
        write_of_vector,
    )
    from cython.cimports.walkback.code.effects import NONE, Effect, Flow
    from cython.cimports.walkback.code.filling import clear, clobber, store
else:
    from walkback.base.cursor import as_signed
    from walkback.code._instruction import Instruction
    from walkback.code.amd64 import opcodes as shape
    from walkback.code.amd64 import prefixes as has
    from walkback.code.amd64 import registers
    from walkback.code.amd64.fields import memory_operand, operand, signed_number, size_of_number
    from walkback.code.amd64.onebyte import first_map
    from walkback.code.amd64.operands import of_reg, of_rm, pop, rex, stack_width, vector_width
    from walkback.code.amd64.promoted import fourth_map
    from walkback.code.amd64.twobytes import second_map
    from walkback.code.amd64.writes import (
        compressed_width,
        extracted_width,
        is_promoted,
        stored_width,
        write,
        write_of_vector,
    )
    from walkback.code.effects import NONE, Effect, Flow
    from walkback.code.filling import clear, clobber, store

_ALL = cython.declare(cython.ulonglong, WORD)
if cython.compiled:
    _ONE_BYTE = cython.declare(cython.const[cython.uint][::1])
_ONE_BYTE = memoryview(one_byte_opcodes())
if cython.compiled:
    _TWO_BYTE = cython.declare(cython.const[cython.uint][::1])
_TWO_BYTE = memoryview(two_byte_opcodes())
if cython.compiled:
    _PROMOTED = cython.declare(cython.const[cython.uint][::1])
_PROMOTED = memoryview(promoted_opcodes())
if cython.compiled:
    _PREFIXES = cython.declare(cython.const[cython.ushort][::1])
_PREFIXES = memoryview(
    np.array([rex(byte & 15) if byte & 0xF0 == 0x40 else PREFIXES.get(byte, 0) for byte in range(256)], np.uint16)
)


@cython.boundscheck(False)
def decode(
    code,
    pos: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    address: cython.ulonglong,
    out: Instruction,
) -> cython.int:
    """Decode one instruction into `out`, which was cleared; what is none has the length 1."""
    stop: cython.Py_ssize_t = min(end, pos + 15)
    at: cython.Py_ssize_t = pos + 1
    prefix: cython.uint = 0
    byte: cython.uint = code[pos]
    found: cython.uint = _PREFIXES[byte]
    while found and at < stop:
        prefix = (prefix & ~has.ANY_REX) | found
        byte = code[at]
        at += 1
        found = _PREFIXES[byte]
    kind: cython.uint = _ONE_BYTE[byte]
    if byte == 0x0F:
        byte = code[at]
        at += 1
        kind = _TWO_BYTE[byte]
    if kind & shape.BAD and byte == has.REX2 and prefix & has.ANY_REX == 0:
        kind = _behind_rex2(code[at], code[at + 1])
        if kind != shape.BAD:
            prefix |= rex(code[at])
            byte = code[at + 1]
            at += 2
    if kind & shape.BAD:
        at = _other(code, at, address - pos, byte, prefix, out)
    else:
        at = _plain(code, at, byte, kind, prefix, out)
    if at > stop or out.flow == Flow.BAD:
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
def _behind_rex2(bits: cython.uint, opcode: cython.uint) -> cython.uint:
    """What stands behind an opcode behind REX2, which leaves out the rows of what needs no registers."""
    row: cython.uint = opcode >> 4
    if bits & 0x80 == 0 and (opcode == 0x8F or opcode == 0xA1):
        return shape.BAD | shape.MODRM  # pop and jmpabs, which are no opcodes without it
    if bits & 0x80:
        return shape.BAD if row == 3 or row == 8 else _TWO_BYTE[opcode]
    return shape.BAD if row == 4 or row == 7 or row == 10 or row == 14 else _ONE_BYTE[opcode]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _plain(
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    opcode: cython.uint,
    kind: cython.uint,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Decode what stands behind an opcode of the first two maps; returns the place behind the instruction."""
    modrm: cython.uint = 0
    size: cython.int = 0
    number: cython.longlong = 0
    if kind & shape.MODRM:
        modrm = code[at]
        at += 1
        if modrm < 0xC0:
            at = memory_operand(code, at, modrm, prefix, out)
    if kind & shape.NUMBER:
        size = size_of_number(kind, opcode, modrm, prefix)
        number = signed_number(code, at, size)
        at += size
    if kind & shape.WRITES:
        write(kind, opcode, modrm, prefix, out)
    kind >>= shape.DOES_SHIFT
    if kind == shape.SECOND:
        second_map(opcode, modrm, prefix, number, out)
    elif kind:
        first_map(kind, opcode, modrm, prefix, number, out)
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _other(
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    away: cython.ulonglong,
    lead: cython.uint,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Decode behind a byte that leads to other maps, or is no opcode; `away` leads from places to addresses."""
    if lead == 0x38 or lead == 0x3A:
        return _three_bytes(code, at, lead == 0x3A, prefix, out)
    modrm: cython.uint = code[at]
    if (
        lead == 0xC4
        or lead == 0xC5
        or lead == has.EVEX
        or (lead == 0x8F and modrm & 0x1F >= 8 and not prefix & has.REX)
    ):
        return _vector(code, at, lead, prefix, out)
    if lead == 0xA1 and prefix & (has.REX_W | has.DATA_16) == 0:  # jmpabs, whose target is absolute
        out.flow = Flow.JUMP
        out.target = cython.cast(cython.ulonglong, signed_number(code, at, 8)) - away - (at + 8)
        return at + 8
    if lead == 0x8F and modrm & 0x38 == 0:
        return _pop_operand(code, at, prefix, out)
    out.flow = Flow.BAD
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _pop_operand(
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Pop of what ModRM names."""
    modrm: cython.uint = code[at]
    at = operand(code, at, prefix, out)
    if modrm < 0xC0 and out.base == registers.RSP and out.index < 0:
        store(NONE, stack_width(prefix), out)  # where the stack pointer leads behind it
        out.moved = out.width
        out.before = True
    else:
        pop(of_rm(0, modrm, prefix) if modrm >= 0xC0 else NONE, prefix, out)
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _three_bytes(
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    is_second: cython.bint,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """The maps behind 0F 38 and 0F 3A; the latter's instructions end in a byte."""
    opcode: cython.uint = code[at]
    modrm: cython.uint = code[at + 1]
    at = operand(code, at + 1, prefix, out)
    kind: cython.uint = 0
    if is_second:
        at += 1
        if opcode & 0xFC == 0x14:
            if modrm < 0xC0:
                store(NONE, extracted_width(opcode, prefix), out)
                return at
            kind = shape.RM
        elif opcode == 0x61 or opcode == 0x63:
            clobber(registers.RCX, out)
    elif opcode == 0xF0 or opcode == 0xF1:
        kind = shape.RM if opcode == 0xF1 and prefix & has.REPNE == 0 else shape.REG  # crc32, movbe
    elif (opcode == 0xF6 and prefix & (has.DATA_16 | has.REP)) or (opcode & 0xFE == 0xFA and prefix & has.REP):
        kind = shape.REG
    elif opcode & 0xFE == 0x8A:
        kind = shape.REG  # movrs
    elif opcode == 0xF8 and modrm < 0xC0:  # movdir64b and enqcmd, from memory to where a register leads
        out.base = of_reg(0, modrm, prefix)
        out.index = NONE
        out.offset = 0
        store(NONE, 64, out)
    elif opcode == 0xF8 and prefix & has.REPNE:
        kind = shape.RM  # urdmsr
    elif opcode == 0xF9 or opcode == 0xFC or (opcode == 0xF5 and prefix & has.DATA_16) or opcode == 0xF6:
        kind = shape.RM  # movdiri, aadd, wruss, wrss
    if kind and opcode & 0xFE != 0xF0:
        prefix &= ~has.DATA_16  # it says which instruction, not how many bytes
    write(kind, opcode, modrm, prefix, out)
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _vector(
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    lead: cython.uint,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Instructions behind VEX, EVEX or XOP."""
    one: cython.uint = code[at]
    two: cython.uint = one if lead == 0xC5 else code[at + 1]
    map_: cython.uint = 1
    form: cython.uint = 0
    prefix &= ~has.ANY_REX & ~(has.DATA_16 | has.REP | has.REPNE)
    bits: cython.uint = (~one >> 5) & 4
    if lead != 0xC5:
        map_ = one & (7 if lead == has.EVEX else 31)
        bits = ((~one >> 5) & 7) | ((two >> 4) & 8)
    if two & 3:
        prefix |= has.DATA_16 if two & 3 == 1 else has.REP if two & 3 == 2 else has.REPNE
    prefix |= ((~two >> 3) & 15) << has.VVVV
    length: cython.uint = (two >> 2) & 1
    if lead == has.EVEX:
        form = code[at + 2]
        length = (form >> 5) & 3
        bits |= (one & 8) << 1 | (~two & 4) << 3 | (~one & 16) << 2
        prefix |= (~form & 8) << (has.VVVV + 1)
    prefix |= rex(bits)
    at += 1 if lead == 0xC5 else 3 if lead == has.EVEX else 2
    opcode: cython.uint = code[at]
    if lead != has.EVEX and map_ == 1 and opcode == 0x77:
        return at + 1  # vzeroupper is nothing but this
    if map_ == 4 and lead == has.EVEX:
        return _promoted(code, at, prefix, form, out)
    modrm: cython.uint = code[at + 1]
    if map_ == 7:  # rdmsr, wrmsrns, urdmsr and uwrmsr of a number
        is_none: cython.bint = (opcode != 0xF6 and opcode != 0xF8) or modrm & 0xF8 != 0xC0 or length != 0
        if is_none or two & 2 == 0 or prefix & has.REX_W or (prefix >> has.VVVV) & 31:
            out.flow = Flow.BAD
    elif (map_ < 1 or map_ > 3) and (lead != has.EVEX or map_ < 5 or map_ > 6) and (lead != 0x8F or map_ > 10):
        out.flow = Flow.BAD
    if modrm >= 0xC0 and prefix & has.REX_X4:
        out.flow = Flow.BAD
    at = operand(code, at + 1, prefix, out)
    index: cython.int = out.index
    units: cython.longlong = out.offset
    in_units: cython.bint = lead == has.EVEX and modrm >> 6 == 1 and not is_promoted(map_, opcode)
    if in_units:
        out.index = registers.RAX  # a distance of one byte counts in units that depend on the opcode
        out.offset = 0
    if map_ == 3 or map_ == 8 or (map_ == 1 and _TWO_BYTE[opcode] & shape.IMM8 and opcode & 0xF0 != 0xA0):
        at += 1
    elif map_ == 7 or map_ == 10:
        at += 4
    write_of_vector(lead, map_, opcode, modrm, prefix, out)
    if modrm < 0xC0:
        size: cython.int = stored_width(lead, map_, opcode, prefix, 16 << length)
        if map_ == 1 and opcode == 0xAE and modrm & 0x38 == 0x18:
            size = 4  # vstmxcsr
        elif map_ == 1 and _TWO_BYTE[opcode] & shape.WIDE:
            size = vector_width(opcode, prefix)
            size = size if size < 16 else 16 << length
        if size:
            store(NONE, size, out)
            if in_units:
                out.index = index
                out.offset = units * (size if map_ != 2 or prefix & has.REP else compressed_width(opcode, prefix))
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def _promoted(
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    prefix: cython.uint,
    form: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Instructions of map 4 of EVEX, from the opcode on."""
    opcode: cython.uint = code[at]
    modrm: cython.uint = code[at + 1]
    kind: cython.uint = _PROMOTED[opcode]
    at = operand(code, at + 1, prefix, out)
    if kind & shape.BAD or (modrm >= 0xC0 and prefix & has.REX_X4):
        out.flow = Flow.BAD
        return at
    size: cython.int = size_of_number(kind, opcode, modrm, prefix) if kind & shape.NUMBER else 0
    fourth_map(kind, opcode, modrm, prefix, form, signed_number(code, at, size), out)
    return at + size
