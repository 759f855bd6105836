"""What prefixes of AMD64 say (a face: kernels compile these numbers in).

What REX has of a register stands where it can be added to the three bits that ModRM has of it.
"""

DATA_16 = 1
"""Operands have 16 bits."""
REP = 2
REPNE = 4
REX_B = 8
REX_B4 = 16
REX_X = 32
REX_X4 = 64
REX_R = 128
REX_R4 = 256
"""With a 4 stand the fifth bits of registers, which REX2 and EVEX have."""
REX_W = 512
REX = 1024
ANY_REX = 2040
ELSEWHERE = 2048
"""Memory is not where the registers say: a segment with a base of its own, or addresses of 32 bits."""
OTHER = 4096
"""A prefix that changes nothing that is of interest."""
ADDRESS_32 = 8192
"""Addresses have 32 bits."""
BASE = 24
"""The bits of a base, or a register in rm or in an opcode, above those of ModRM."""
TO_INDEX = 2
TO_REG = 4
"""So much higher are those of an index, and of a register in reg."""
VVVV = 16
"""The register in VEX.vvvv or EVEX.vvvv stands in the five bits from here on."""
REX2 = 0xD5
EVEX = 0x62
NEW_DATA = 16
"""In the last byte of EVEX, in map 4: vvvv names the register for the result."""
KEEPS_FLAGS = 4
"""There, too: flags stay. A conditional move writes the operand in rm, or nothing."""

PREFIXES = {0x66: DATA_16, 0xF3: REP, 0xF2: REPNE, 0x64: ELSEWHERE, 0x65: ELSEWHERE, 0x67: ELSEWHERE | ADDRESS_32}
PREFIXES |= dict.fromkeys((0xF0, 0x26, 0x2E, 0x36, 0x3E), OTHER)
"""What each byte says that is a prefix, but for REX and REX2."""
