"""What prefixes of AMD64 say (a face: kernels compile these numbers in); the low bits are those of REX."""

REX_B = 1
REX_X = 2
REX_R = 4
REX_W = 8
REX = 16
ANY_REX = 31
DATA_16 = 32
"""Operands have 16 bits."""
REP = 64
REPNE = 128
ELSEWHERE = 256
"""Memory is not where the registers say: a segment with a base of its own, or addresses of 32 bits."""
OTHER = 512
"""A prefix that changes nothing that is of interest."""
ADDRESS_32 = 1024
"""Addresses have 32 bits."""
VVVV = 16
"""The register in VEX.vvvv stands in the bits from here on."""

PREFIXES = {0x66: DATA_16, 0xF3: REP, 0xF2: REPNE, 0x64: ELSEWHERE, 0x65: ELSEWHERE, 0x67: ELSEWHERE | ADDRESS_32}
PREFIXES |= dict.fromkeys((0xF0, 0x26, 0x2E, 0x36, 0x3E), OTHER)
PREFIXES |= {0x40 | bits: REX | bits for bits in range(16)}
"""What each byte says that is a prefix."""
