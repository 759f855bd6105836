"""What stands behind an opcode of AMD64: ModRM and what it names, and numbers (a face: kernels compile these in).

Bytes are read before it is clear that the instruction does not end too early.
"""

import cython

from walkback.code._instruction import Instruction
from walkback.code.amd64.opcodes import ADDRESS, GROUP, IMM8, IMM16, IMM_V, IMM_Z, NEAR, NUMBER
from walkback.code.amd64.operands import dwarf
from walkback.code.amd64.prefixes import ADDRESS_32, BASE, DATA_16, ELSEWHERE, REPNE, REX_W, TO_INDEX
from walkback.code.amd64.registers import RAX, RIP
from walkback.code.effects import NONE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def signed_number(
    code: cython.pointer(cython.const[cython.uchar]), at: cython.Py_ssize_t, size: cython.int
) -> cython.longlong:
    """A signed number of `size` bytes."""
    # Compilers make one load of bytes at one pointer.
    here: cython.pointer(cython.const[cython.uchar]) = code + at if cython.compiled else code[at : at + 8]
    value: cython.longlong = here[0] | here[1] << 8 | here[2] << 16 | cython.cast(cython.uint, here[3]) << 24
    beyond: cython.longlong = cython.cast(cython.longlong, 1) << (32 if size == 8 else 8 * size)
    sign: cython.longlong = beyond >> 1
    if size == 8:
        upper: cython.longlong = here[4] | here[5] << 8 | here[6] << 16 | cython.cast(cython.uint, here[7]) << 24
        return value + ((upper ^ sign) - sign) * beyond
    return ((value & (beyond - 1)) ^ sign) - sign


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def size_of_number(kind: cython.uint, opcode: cython.uint, modrm: cython.uint, prefix: cython.uint) -> cython.int:
    """Bytes of an immediate, or of the distance or address that stands there."""
    size: cython.int = 0
    if kind & NUMBER == IMM8:
        return 1
    if kind & NEAR:
        return 4
    if kind & GROUP:
        if opcode == 0x78:  # extrq and insertq
            return 2 if prefix & (DATA_16 | REPNE) else 0
        if modrm & 0x30 == 0:
            kind |= IMM8 if opcode == 0xF6 else IMM_Z
    if kind & IMM8:
        size += 1
    if kind & IMM16:
        size += 2
    if kind & (IMM_Z | IMM_V):
        size += 2 if prefix & (DATA_16 | REX_W) == DATA_16 else 4
        if kind & IMM_V and prefix & REX_W:
            size += 4
    if kind & ADDRESS:
        size += 4 if prefix & ADDRESS_32 else 8
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def memory_operand(
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    modrm: cython.uint,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Read what stands behind a ModRM that names memory. Memory that is nowhere known has an index."""
    low: cython.uint = modrm & 7
    size: cython.int = ((modrm >> 6) & 1) | ((modrm >> 5) & 4)
    if low == 4:
        sib: cython.uint = code[at]
        at += 1
        low = sib & 7
        index: cython.uint = ((sib >> 3) & 7) | ((prefix >> TO_INDEX) & BASE)
        if index != 4:
            out.index = dwarf(index)
            out.scale = 1 << (sib >> 6)
        if low == 5 and modrm < 0x40:
            size = 4
        else:
            out.base = dwarf(low | (prefix & BASE))
    elif low == 5 and modrm < 0x40:
        out.base = RIP
        size = 4
    else:
        out.base = dwarf(low | (prefix & BASE))
    out.offset = signed_number(code, at, size)
    if prefix & ELSEWHERE:
        out.base = NONE
        out.index = RAX
        out.offset = 0
    return at + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def operand(
    code: cython.pointer(cython.const[cython.uchar]),
    at: cython.Py_ssize_t,
    prefix: cython.uint,
    out: Instruction,
) -> cython.Py_ssize_t:
    """Read ModRM and what belongs to it; returns the place behind."""
    modrm: cython.uint = code[at]
    return at + 1 if modrm >= 0xC0 else memory_operand(code, at + 1, modrm, prefix, out)
