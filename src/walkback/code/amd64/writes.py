"""Which registers and what memory instructions of AMD64 write (a face: kernels compile this in)."""

import cython

from walkback.code._instruction import Instruction
from walkback.code.amd64.opcodes import AX, LOW, REG, RM, WIDE
from walkback.code.amd64.operands import of_opcode, of_reg, of_rm, of_vvvv, operand_width, vector_width
from walkback.code.amd64.prefixes import DATA_16, EVEX, REP, REPNE, REX_W
from walkback.code.amd64.registers import RAX, RCX
from walkback.code.effects import NONE
from walkback.code.filling import clobber, store


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def write(
    kind: cython.uint, opcode: cython.uint, modrm: cython.uint, prefix: cython.uint, out: Instruction
) -> cython.int:
    """What the shape of an opcode says of writing."""
    if kind & RM:
        if modrm >= 0xC0:
            clobber(of_rm(kind, modrm, prefix), out)
        else:
            store(NONE, operand_width(kind, prefix), out)
    if kind & WIDE and modrm < 0xC0:
        store(NONE, vector_width(opcode, prefix), out)
    if kind & REG:
        clobber(of_reg(kind, modrm, prefix), out)
    if kind & AX:
        clobber(RAX, out)
    if kind & LOW:
        clobber(of_opcode(kind, opcode, prefix), out)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_promoted(map_: cython.uint, opcode: cython.uint) -> cython.bint:
    """Whether EVEX repeats an instruction of VEX without vectors, for more registers: distances are in bytes."""
    if map_ == 1:
        return opcode & 0xFC == 0x90  # kmov
    if map_ == 2:
        is_count: cython.bint = 0xF2 <= opcode < 0xF8
        return is_count or opcode == 0x49 or opcode == 0x4B or opcode & 0xF0 == 0xE0
    return map_ == 3 and opcode == 0xF0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def extracted_width(opcode: cython.uint, prefix: cython.uint) -> cython.int:
    """Bytes that pextr and extractps write to memory."""
    return 1 if opcode == 0x14 else 2 if opcode == 0x15 else 8 if opcode == 0x16 and prefix & REX_W else 4


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def stored_width(
    lead: cython.uint, map_: cython.uint, opcode: cython.uint, prefix: cython.uint, whole: cython.int
) -> cython.int:
    """Bytes that an instruction behind VEX or EVEX writes to memory, where its map does not say so; 0 for none."""
    low: cython.uint = opcode & 15
    if map_ == 1 and opcode == 0x91:  # kmov
        return (1 if prefix & DATA_16 else 2) * (4 if prefix & REX_W else 1)
    if map_ == 1 and opcode == 0x7E and prefix & DATA_16:
        return operand_width(0, prefix & REX_W)  # vmovd and vmovq
    if map_ == 3 and opcode & 0xFC == 0x14:
        return extracted_width(opcode, prefix)
    if map_ == 2 and is_promoted(map_, opcode):
        if opcode == 0x49 and prefix & DATA_16:
            return 64  # sttilecfg
        if opcode == 0x4B and prefix & REP:
            return 64  # tilestored: a row, which has no more
        return operand_width(0, prefix & REX_W) if opcode & 0xF0 == 0xE0 else 0  # cmpccxadd
    if map_ == 2 and lead == EVEX:
        if opcode == 0x63 or opcode == 0x8A or opcode == 0x8B:
            return whole  # vpcompress
        if prefix & REP and 0x10 <= opcode < 0x36 and low < 6:  # vpmov of narrower numbers
            return whole >> (3 if low == 2 else 2 if low == 1 or low == 4 else 1)
    elif map_ == 2:
        if opcode == 0x2E or opcode == 0x2F or opcode == 0x8E:
            return whole  # vmaskmov
    elif map_ == 3:
        if opcode & 0xDF == 0x19:
            return 16  # vextract
        if opcode & 0xDF == 0x1B:
            return 32
        if opcode == 0x1D:
            return whole >> 1  # vcvtps2ph
    elif map_ == 5 and ((opcode == 0x11 and prefix & REP) or (opcode == 0x7E and prefix & DATA_16)):
        return 2  # vmovsh and vmovw
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def compressed_width(opcode: cython.uint, prefix: cython.uint) -> cython.int:
    """Bytes of one number that vpcompress stores, in which its distance counts."""
    width: cython.int = 1 if opcode == 0x63 else 4
    return 2 * width if prefix & REX_W else width


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def write_of_vector(
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
    scalar: cython.bint = prefix & (REP | REPNE) != 0
    if map_ == 1 or map_ == 5:
        if opcode & 0xFE == 0x2C or (lead == EVEX and opcode & 0xFE == 0x78):
            kind = REG if scalar else 0
        elif opcode == 0x7E:
            kind = RM if prefix & DATA_16 and modrm >= 0xC0 else 0
        elif map_ == 5 and opcode & 0xFE == 0x6C:
            kind = REG if scalar else 0
        elif map_ == 1 and (opcode == 0x50 or opcode == 0xC5 or opcode == 0xD7 or opcode == 0x93):
            kind = REG
    elif map_ == 2:
        if opcode == 0xF2 or opcode == 0xF5 or opcode == 0xF7 or (opcode & 0xF0 == 0xE0 and prefix & DATA_16):
            kind = REG
        elif opcode == 0xF3 or opcode == 0xF6:
            vvvv = True
            kind = REG if opcode == 0xF6 else 0
    elif map_ == 3:
        if opcode & 0xFC == 0x14:
            kind = RM if modrm >= 0xC0 else 0
        elif opcode == 0xF0:
            kind = REG
        elif opcode == 0x61 or opcode == 0x63:
            clobber(RCX, out)
    elif map_ == 7:
        kind = RM if prefix & REPNE else 0  # rdmsr and urdmsr of a number
    elif map_ == 9:
        vvvv = opcode == 1 or opcode == 2
        kind = RM if opcode == 0x12 and modrm & 0x38 == 8 else 0  # slwpcb
    elif map_ == 10:
        kind = REG if opcode == 0x10 else 0
    if vvvv:
        clobber(of_vvvv(prefix), out)
    return write(kind, opcode, modrm, prefix & ~DATA_16, out)
