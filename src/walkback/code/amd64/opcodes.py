"""The opcode maps of AMD64: what stands behind each opcode, what it writes, and what kind of instruction it is.

Intel's manual, volume 2, appendix A, and AMD's, volume 3, appendix A.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from walkback.base.arrays import U32
from walkback.code.amd64.prefixes import PREFIXES

MODRM = 1
"""A ModRM byte."""
IMM8 = 2
IMM16 = 4
IMM_Z = 8
"""An immediate of 2 bytes with prefix 66, else of 4."""
IMM_V = 16
"""The same, of 8 with REX.W."""
BAD = 32
"""There is no such instruction, or the opcode leads to another map."""
RM = 64
"""The operand that ModRM's rm names is written."""
REG = 128
"""The general register that ModRM's reg names is written."""
AX = 256
"""rax is written."""
BYTE = 512
"""Operands are bytes."""
LOW = 1024
"""The register in the opcode's low bits is written."""
WIDE = 2048
"""A vector is stored."""
NEAR = 4096
"""A distance of 4 bytes."""
ADDRESS = 8192
"""An address."""
GROUP = 16384
"""Whether an immediate is there depends on ModRM's reg, or on prefixes."""
NUMBER = IMM8 | IMM16 | IMM_Z | IMM_V | NEAR | ADDRESS | GROUP
"""Whether anything can stand behind ModRM."""
WRITES = RM | REG | AX | LOW | WIDE
"""Whether the shape alone says that something is written."""

DOES_SHIFT = 16
"""From this bit on stands what more there is to know: one of these numbers, or 0 for nothing."""
DOES = 255
"""The bits of that number. Above them stands, for map 4 alone, which forms an instruction may have:"""
RENEWED = 1 << 24
"""With a register of its own for the result."""
REPEATED = 1 << 25
"""With the prefixes F2 or F3."""
ADDS = 1
"""Sums, comparisons and the like of registers."""
ADDS_TO_RAX = 2
"""The same of rax and a number."""
ADDS_NUMBER = 3
"""The same of an operand and a number."""
PUSHES = 4
POPS = 5
LOADS = 6
STORES = 7
ADDRESSES = 8
"""lea"""
EXCHANGES = 9
EXCHANGES_RAX = 10
MOVES_NUMBER = 11
"""To a register."""
STORES_NUMBER = 12
"""To an operand; or begins and ends transactions."""
BRANCHES = 13
JUMPS = 14
CALLS = 15
RETURNS = 16
LEAVES = 17
COUNTS = 18
"""What F6, F7, FE and FF do, to which jumps, calls and `push` belong."""
STORES_FLOAT = 19
RARE = 20
EXTENDS = 21
"""movzx, movsx of the second map"""
SECOND = 22
"""What else is in the second map."""


def one_byte_opcodes() -> U32:
    """The first map."""
    map_: list[int] = [0] * 256
    for operation in range(8):
        shapes = (MODRM | RM | BYTE, MODRM | RM, MODRM | REG | BYTE, MODRM | REG, AX | IMM8 | BYTE, AX | IMM_Z)
        for place, shape in enumerate(shapes):
            compare = operation == 7
            map_[8 * operation + place] = shape & ~(RM | REG | AX) if compare else shape
        for place, does in ((1, ADDS), (3, ADDS), (4, ADDS_TO_RAX), (5, ADDS_TO_RAX)):
            map_[8 * operation + place] |= does << DOES_SHIFT
    for number in (0x06, 0x07, 0x0E, 0x16, 0x17, 0x1E, 0x1F, 0x27, 0x2F, 0x37, 0x3F, 0x60, 0x61, 0x82, 0x9A, 0xCE):
        map_[number] = BAD
    for number in (0x0F, 0x62, 0x8F, 0xC4, 0xC5, 0xD4, 0xD5, 0xD6, 0xEA, *range(0x40, 0x50), *PREFIXES):
        map_[number] = BAD
    map_[0x69], map_[0x6B] = MODRM | REG | IMM_Z, MODRM | REG | IMM8
    map_[0x84], map_[0x85] = MODRM | BYTE, MODRM
    map_[0x86], map_[0x88], map_[0x8A] = MODRM | RM | REG | BYTE, MODRM | RM | BYTE, MODRM | REG | BYTE
    map_[0x8E], map_[0x9F] = MODRM, AX
    map_[0xA8], map_[0xA9] = IMM8 | BYTE, IMM_Z
    for number in range(0xB0, 0xB8):
        map_[number] = IMM8 | LOW | BYTE
    map_[0xC0], map_[0xC1] = MODRM | RM | IMM8 | BYTE, MODRM | RM | IMM8
    map_[0xD0], map_[0xD1], map_[0xD2], map_[0xD3] = (MODRM | RM | one for one in (BYTE, 0, BYTE, 0))
    map_[0xD7] = AX
    map_[0xE4], map_[0xE5], map_[0xE6], map_[0xE7], map_[0xEC], map_[0xED] = AX | IMM8, AX | IMM8, IMM8, IMM8, AX, AX
    known: tuple[tuple[int, int, Iterable[int]], ...] = (
        (PUSHES, 0, range(0x50, 0x58)),
        (POPS, 0, range(0x58, 0x60)),
        (LOADS, MODRM, (0x63, 0x8B)),
        (RARE, MODRM, (0x8C,)),
        (RARE, IMM_Z, (0x68,)),
        (RARE, IMM8, (0x6A, 0xCD, 0xE0, 0xE1, 0xE2, 0xE3)),
        (RARE, 0, (0x6C, 0x6D, 0x6E, 0x6F, 0xA4, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF)),
        (BRANCHES, IMM8, range(0x70, 0x80)),
        (ADDS_NUMBER, MODRM | IMM8 | BYTE, (0x80,)),
        (ADDS_NUMBER, MODRM | IMM_Z, (0x81,)),
        (ADDS_NUMBER, MODRM | IMM8, (0x83,)),
        (EXCHANGES, MODRM | RM | REG, (0x87,)),
        (STORES, MODRM, (0x89,)),
        (ADDRESSES, MODRM, (0x8D,)),
        (EXCHANGES_RAX, 0, range(0x90, 0x98)),
        (RARE, 0, (0x98, 0x99, 0x9C, 0x9D, 0xCF, 0xF4)),
        (RARE, ADDRESS, range(0xA0, 0xA4)),
        (MOVES_NUMBER, IMM_V | LOW, range(0xB8, 0xC0)),
        (RETURNS, IMM16, (0xC2, 0xCA)),
        (RETURNS, 0, (0xC3, 0xCB)),
        (STORES_NUMBER, MODRM | RM | IMM8 | BYTE, (0xC6,)),
        (STORES_NUMBER, MODRM | RM | IMM_Z, (0xC7,)),
        (RARE, IMM16 | IMM8, (0xC8,)),
        (LEAVES, 0, (0xC9,)),
        (STORES_FLOAT, MODRM, range(0xD8, 0xE0)),
        (CALLS, NEAR, (0xE8,)),
        (JUMPS, NEAR, (0xE9,)),
        (JUMPS, IMM8, (0xEB,)),
        (COUNTS, MODRM | GROUP | BYTE, (0xF6,)),
        (COUNTS, MODRM | GROUP, (0xF7,)),
        (COUNTS, MODRM | BYTE, (0xFE,)),
        (COUNTS, MODRM, (0xFF,)),
    )
    for does, shape, opcodes in known:
        for number in opcodes:
            map_[number] = shape | (does << DOES_SHIFT)
    return np.array(map_, np.uint32)


def two_byte_opcodes() -> U32:
    """The map behind 0F; REG and RM where that is a general register whatever the prefix."""
    map_: list[int] = [MODRM] * 256
    for number in (0x04, 0x0A, 0x0C, 0x24, 0x25, 0x26, 0x27, 0x36, 0x7A, 0x7B, *range(0x38, 0x40)):
        map_[number] = BAD
    for number in (0x06, 0x08, 0x09, 0x0E, 0x30, 0x37, 0x77):
        map_[number] = 0
    for number in (0x05, 0x07, 0x0B, 0x31, 0x32, 0x33, 0x34, 0x35, 0xAA, 0xA0, 0xA1, 0xA2, 0xA8, 0xA9):
        map_[number] = SECOND << DOES_SHIFT
    for number in range(0x80, 0x90):
        map_[number] = NEAR | (BRANCHES << DOES_SHIFT)
    for number in (0x02, 0x03, *range(0x40, 0x51), 0xAF, 0xB2, 0xB4, 0xB5, 0xBC, 0xBD, 0xBE, 0xBF, 0xD7):
        map_[number] = MODRM | REG
    for number in range(0x90, 0xA0):
        map_[number] = MODRM | RM | BYTE
    for number in (0xA4, 0xAC):
        map_[number] = MODRM | RM | IMM8
    for number in (0xA5, 0xAB, 0xAD, 0xB3, 0xBB):
        map_[number] = MODRM | RM
    for number in (0x70, 0x71, 0x72, 0x73, 0xC2, 0xC4, 0xC6):
        map_[number] = MODRM | IMM8
    for number in (0x11, 0x13, 0x17, 0x29, 0x2B, 0x7F, 0xD6, 0xE7):
        map_[number] = MODRM | WIDE
    for number in (0x00, 0x01, 0x1E, 0x2C, 0x2D, 0x79, 0x7E, 0xA6, 0xA7, 0xAE, 0xB8, 0xB9, 0xC7, 0xFF):
        map_[number] = MODRM | (SECOND << DOES_SHIFT)
    map_[0xB6] = map_[0xB7] = MODRM | (EXTENDS << DOES_SHIFT)
    map_[0x78] = MODRM | GROUP | (SECOND << DOES_SHIFT)
    for number in range(0x20, 0x24):  # control and debug registers: never memory, whatever ModRM says
        map_[number] = IMM8 | (SECOND << DOES_SHIFT)
    map_[0x0F] = MODRM | IMM8
    map_[0xB0], map_[0xB1] = MODRM | RM | AX | BYTE, MODRM | RM | AX
    map_[0xBA] = MODRM | IMM8 | (SECOND << DOES_SHIFT)
    map_[0xC0], map_[0xC1] = MODRM | RM | REG | BYTE, MODRM | RM | REG
    map_[0xC3] = MODRM | RM
    map_[0xC5] = MODRM | REG | IMM8
    for number in range(0xC8, 0xD0):
        map_[number] = LOW
    return np.array(map_, np.uint32)


def promoted_opcodes() -> U32:
    """Map 4 of EVEX, with instructions of the first three maps that may write another register than they read."""
    map_ = np.full(256, BAD, np.uint32)
    renewed = [8 * operation + place for operation in range(7) for place in range(4)]
    renewed += [0x24, 0x2C, *range(0x40, 0x50), 0x66, 0x69, 0x6B, 0x80, 0x81, 0x83, 0x8F, 0xA5, 0xAD, 0xAF]
    renewed += [0xC0, 0xC1, *range(0xD0, 0xD4), 0xF6, 0xF7, 0xFE, 0xFF]
    of_first = [8 * operation + place for operation in range(8) for place in range(4)]
    of_first += [0x69, 0x6B, 0x80, 0x81, 0x83, 0x84, 0x85, 0xC0, 0xC1, *range(0xD0, 0xD4), 0xF6, 0xF7, 0xFE, 0xFF]
    of_second = [*range(0x40, 0x50), 0xA5, 0xAD, 0xAF]
    map_[of_first] = one_byte_opcodes()[of_first]
    map_[of_second] = two_byte_opcodes()[of_second]
    map_[[0x24, 0x2C]] = MODRM | RM | IMM8  # shld and shrd
    map_[[0x60, 0x66, 0x88, 0x8A, 0x8B, 0xF0, 0xF1, 0xF4, 0xF5]] = MODRM | REG
    map_[[0x61, 0x65, 0xF9, 0xFC]] = MODRM | RM
    map_[[0x8F, 0xF2, 0xF8]] = MODRM
    map_[renewed] |= RENEWED
    map_[[*range(0x40, 0x50), 0x66, 0xF0, 0xF1, 0xF2, 0xF8, 0xFC]] |= REPEATED
    return map_
