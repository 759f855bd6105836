"""The opcode maps of AMD64: what stands behind each opcode, and what it writes.

Intel's manual, volume 2, appendix A, and AMD's, volume 3, appendix A.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import U16

MODRM = 1
"""A ModRM byte."""
IMM8 = 2
IMM16 = 4
IMM_Z = 8
"""An immediate of 2 bytes with prefix 66, else of 4."""
IMM_V = 16
"""The same, of 8 with REX.W."""
BAD = 32
"""There is no such instruction; in the first map, also what leads to other maps."""
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
SPECIAL = 4096
"""The decoder knows more about it."""
NEAR = 8192
"""A distance of 4 bytes."""
ADDRESS = 16384
"""An address."""
GROUP = 32768
"""Whether an immediate is there depends on ModRM's reg."""
NUMBER = IMM8 | IMM16 | IMM_Z | IMM_V | NEAR | ADDRESS | GROUP
"""Whether anything can stand behind ModRM."""
WRITES = RM | REG | AX | LOW | WIDE
"""Whether anything is written that `SPECIAL` does not have to find."""


def one_byte_opcodes() -> U16:
    """The first map."""
    map_: list[int] = [0] * 256
    for operation in range(8):
        shapes = (MODRM | RM | BYTE, MODRM | RM, MODRM | REG | BYTE, MODRM | REG, AX | IMM8 | BYTE, AX | IMM_Z)
        for place, shape in enumerate(shapes):
            compare = operation == 7
            map_[8 * operation + place] = shape & ~(RM | REG | AX) if compare else shape
        for place in (1, 3, 4, 5):
            map_[8 * operation + place] |= SPECIAL
    map_[0x3C] |= SPECIAL
    for number in (0x0F, 0x62, 0xC4, 0xC5):
        map_[number] = BAD
    for number in (0x06, 0x07, 0x0E, 0x16, 0x17, 0x1E, 0x1F, 0x27, 0x2F, 0x37, 0x3F, 0x60, 0x61, 0x82, 0x9A, 0xCE):
        map_[number] = BAD
    for number in (0xD4, 0xD5, 0xD6, 0xEA):
        map_[number] = BAD
    for number in range(0x50, 0x60):
        map_[number] = SPECIAL
    map_[0x63] = MODRM | SPECIAL
    map_[0x68], map_[0x6A] = IMM_Z | SPECIAL, IMM8 | SPECIAL
    map_[0x69], map_[0x6B] = MODRM | REG | IMM_Z, MODRM | REG | IMM8
    for number in (0x6C, 0x6D, 0x6E, 0x6F, 0xA4, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF):
        map_[number] = SPECIAL
    for number in range(0x70, 0x80):
        map_[number] = IMM8 | SPECIAL
    map_[0x80], map_[0x81], map_[0x83] = (MODRM | SPECIAL | one for one in (IMM8 | BYTE, IMM_Z, IMM8))
    map_[0x84], map_[0x85] = MODRM | BYTE, MODRM
    map_[0x86], map_[0x87] = MODRM | RM | REG | BYTE, MODRM | RM | REG | SPECIAL
    map_[0x88], map_[0x89] = MODRM | RM | BYTE, MODRM | SPECIAL
    map_[0x8A], map_[0x8B] = MODRM | REG | BYTE, MODRM | SPECIAL
    map_[0x8C], map_[0x8D], map_[0x8E], map_[0x8F] = MODRM | RM, MODRM | SPECIAL, MODRM, MODRM | SPECIAL
    for number in range(0x90, 0x98):
        map_[number] = SPECIAL
    map_[0x98], map_[0x99], map_[0x9C], map_[0x9D], map_[0x9F] = SPECIAL, SPECIAL, SPECIAL, SPECIAL, AX
    for number in range(0xA0, 0xA4):
        map_[number] = ADDRESS | SPECIAL
    map_[0xA8], map_[0xA9] = IMM8 | BYTE, IMM_Z
    for number in range(0xB0, 0xB8):
        map_[number] = IMM8 | LOW | BYTE
        map_[number + 8] = IMM_V | LOW | SPECIAL
    map_[0xC0], map_[0xC1] = MODRM | RM | IMM8 | BYTE, MODRM | RM | IMM8
    map_[0xC2], map_[0xC3], map_[0xCA], map_[0xCB], map_[0xCF] = (
        IMM16 | SPECIAL,
        SPECIAL,
        IMM16 | SPECIAL,
        SPECIAL,
        SPECIAL,
    )
    map_[0xC6], map_[0xC7] = MODRM | RM | IMM8 | BYTE | SPECIAL, MODRM | RM | IMM_Z | SPECIAL
    map_[0xC8], map_[0xC9], map_[0xCD] = IMM16 | IMM8 | SPECIAL, SPECIAL, IMM8 | SPECIAL
    map_[0xD0], map_[0xD1], map_[0xD2], map_[0xD3] = (MODRM | RM | one for one in (BYTE, 0, BYTE, 0))
    map_[0xD7] = AX
    for number in range(0xD8, 0xE0):
        map_[number] = MODRM | SPECIAL
    for number in range(0xE0, 0xE4):
        map_[number] = IMM8 | SPECIAL
    map_[0xE4], map_[0xE5], map_[0xE6], map_[0xE7] = AX | IMM8, AX | IMM8, IMM8, IMM8
    map_[0xE8], map_[0xE9], map_[0xEB], map_[0xEC], map_[0xED] = NEAR | SPECIAL, NEAR | SPECIAL, IMM8 | SPECIAL, AX, AX
    map_[0xF4] = SPECIAL
    map_[0xF6], map_[0xF7] = MODRM | GROUP | BYTE | SPECIAL, MODRM | GROUP | SPECIAL
    map_[0xFE], map_[0xFF] = MODRM | BYTE | SPECIAL, MODRM | SPECIAL
    return np.array(map_, np.uint16)


def two_byte_opcodes() -> U16:
    """The map behind 0F; REG and RM where that is a general register whatever the prefix."""
    map_: list[int] = [MODRM] * 256
    for number in (0x04, 0x0A, 0x0C, 0x24, 0x25, 0x26, 0x27, 0x36, 0x39, 0x3B, 0x3C, 0x3D, 0x3E, 0x3F, 0x7A, 0x7B):
        map_[number] = BAD
    for number in (0x06, 0x08, 0x09, 0x0E, 0x30, 0x35, 0x37, 0x77, 0xAA):
        map_[number] = 0
    for number in (0x05, 0x07, 0x0B, 0x31, 0x32, 0x33, 0x34, 0xA0, 0xA1, 0xA2, 0xA8, 0xA9):
        map_[number] = SPECIAL
    for number in range(0x80, 0x90):
        map_[number] = NEAR | SPECIAL
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
    for number in (
        0x00,
        0x01,
        0x1E,
        0x2C,
        0x2D,
        0x78,
        0x79,
        0x7E,
        0xA6,
        0xA7,
        0xAE,
        0xB6,
        0xB7,
        0xB8,
        0xB9,
        0xC7,
        0xFF,
    ):
        map_[number] = MODRM | SPECIAL
    map_[0x0F] = MODRM | IMM8
    map_[0x20] = map_[0x21] = MODRM | RM
    map_[0xB0], map_[0xB1] = MODRM | RM | AX | BYTE, MODRM | RM | AX
    map_[0xBA] = MODRM | IMM8 | SPECIAL
    map_[0xC0], map_[0xC1] = MODRM | RM | REG | BYTE, MODRM | RM | REG
    map_[0xC3] = MODRM | RM
    map_[0xC5] = MODRM | REG | IMM8
    for number in range(0xC8, 0xD0):
        map_[number] = LOW
    return np.array(map_, np.uint16)
