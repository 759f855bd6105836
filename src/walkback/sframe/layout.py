"""Constants and on-disk shapes, in the words of the SFrame specification.

Names follow `sframe.h` without their prefixes. Section numbers are those of the published specification of version 2
errata 1; version 3 is described by what GNU binutils 2.46 and later write and read.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.base.arrays import record_type

MAGIC: Final = 0xDEE2
VERSIONS: Final = (1, 2, 3)

# Flags of the preamble ("SFrame Flags").
F_FDE_SORTED: Final = 0x1
F_FRAME_POINTER: Final = 0x2
F_FDE_FUNC_START_PCREL: Final = 0x4
FLAG_NAMES: Final = {
    F_FDE_SORTED: "SFRAME_F_FDE_SORTED",
    F_FRAME_POINTER: "SFRAME_F_FRAME_POINTER",
    F_FDE_FUNC_START_PCREL: "SFRAME_F_FDE_FUNC_START_PCREL",
}
FLAGS_DEFINED: Final = {1: 0x3, 2: 0x7, 3: 0x5}
"""Which flags a version defines. Version 2 has PCREL since errata 1; version 3 has no FRAME_POINTER."""

# "SFrame ABI/arch Identifier".
ABI_AARCH64_ENDIAN_BIG: Final = 1
ABI_AARCH64_ENDIAN_LITTLE: Final = 2
ABI_AMD64_ENDIAN_LITTLE: Final = 3
ABI_S390X_ENDIAN_BIG: Final = 4
ABI_NAMES: Final = {
    ABI_AARCH64_ENDIAN_BIG: "AArch64 big-endian",
    ABI_AARCH64_ENDIAN_LITTLE: "AArch64 little-endian",
    ABI_AMD64_ENDIAN_LITTLE: "AMD64 little-endian",
    ABI_S390X_ENDIAN_BIG: "s390x big-endian",
}
ABI_MACHINES: Final[dict[int, Machine]] = {
    ABI_AARCH64_ENDIAN_BIG: AARCH64,
    ABI_AARCH64_ENDIAN_LITTLE: AARCH64,
    ABI_AMD64_ENDIAN_LITTLE: AMD64,
    ABI_S390X_ENDIAN_BIG: S390X,
}
ABI_BYTE_ORDERS: Final[dict[int, ByteOrder]] = {
    ABI_AARCH64_ENDIAN_BIG: "big",
    ABI_AARCH64_ENDIAN_LITTLE: "little",
    ABI_AMD64_ENDIAN_LITTLE: "little",
    ABI_S390X_ENDIAN_BIG: "big",
}

# The FDE info word ("The SFrame FDE Info Word").
FRE_TYPE_ADDR1: Final = 0
FRE_TYPE_ADDR2: Final = 1
FRE_TYPE_ADDR4: Final = 2
FRE_START_SIZES: Final = (1, 2, 4)
"""Bytes of a row's start, by FRE type."""
PC_TYPE_INC: Final = 0
PC_TYPE_MASK: Final = 1
FDE_PC_TYPE_SHIFT: Final = 4
FDE_PAUTH_KEY_SHIFT: Final = 5
FDE_SIGNAL: Final = 0x80
"""Signal frame; version 3."""
FDE_INFO_DEFINED: Final = {1: 0x1F, 2: 0x3F, 3: 0xBF}
"""Bits of the info word that a version defines. The pointer-authentication key (bit 5) is AArch64's; GNU tools set
it in version 1 too, whose text does not name it."""

# The second info byte of version 3.
FDE_TYPE_DEFAULT: Final = 0
FDE_TYPE_FLEX: Final = 1
FDE_TYPE_MASK: Final = 0x1F

# The FRE info word ("The SFrame FRE Info Word").
FRE_BASE_REG_FP: Final = 0
FRE_BASE_REG_SP: Final = 1
FRE_WORD_SIZES: Final = (1, 2, 4)
"""Bytes of a data word, by size code."""
FRE_NO_WORD_SIZE: Final = 3
"""The size code that means nothing."""
FRE_WORD_SIZE_SHIFT: Final = 5
FRE_WORD_SIZE_MASK: Final = 3
FRE_WORD_COUNT_SHIFT: Final = 1
FRE_RA_MANGLED: Final = 0x80
FRE_MAX_WORDS: Final = 15

# The control word of a rule in a flex row (version 3).
FLEX_REG: Final = 0x1
FLEX_DEREF: Final = 0x2
FLEX_UNUSED: Final = 0x4
FLEX_REGISTER_SHIFT: Final = 3

# s390x ("s390x" in "ABI/arch-specific Definition").
S390X_CFA_OFFSET_ADJUSTMENT: Final = 160
S390X_CFA_OFFSET_ALIGNMENT_FACTOR: Final = 8

V3_MAX_FRES: Final = 0xFFFF
"""Rows that one function of version 3 can have: the count has 16 bits."""

V1_REP_SIZE: Final = 16
"""Version 1 carries no block size. Its only producer, GNU ld 2.40, made repeating blocks for `.plt` and `.plt.sec`,
whose entries have 16 bytes; its own reader takes a row's start against the low 8 bits of the PC."""

HEADER_SIZE: Final = 28
ATTRIBUTE_SIZE: Final = 5
FRE_OFFSET_OFFSET: Final = 8
"""Of the place of its rows in an index entry of versions 1 and 2."""
V1_INFO_OFFSET: Final = 16
"""Of the info byte in an index entry of versions 1 and 2."""
V2_PADDING_OFFSET: Final = 18
V3_INFO_OFFSET: Final = 2
"""Of the info byte in an attribute record."""

_HEADER: Final = (
    "magic u2, version u1, flags u1, abi_arch u1, cfa_fixed_fp_offset i1, cfa_fixed_ra_offset i1, auxhdr_len u1, "
    "num_fdes u4, num_fres u4, fre_len u4, fdeoff u4, freoff u4"
)
_FDE: Final = {
    1: "start i4, size u4, fre_offset u4, num_fres u4, info u1",
    2: "start i4, size u4, fre_offset u4, num_fres u4, info u1, rep_size u1, padding u2",
    3: "start i8, size u4, fre_offset u4",
}
_ATTRIBUTE: Final = "num_fres u2, info u1, info2 u1, rep_size u1"


def _in_order(fields: str, order: ByteOrder) -> np.dtype[np.void]:
    return record_type(fields).newbyteorder("<" if order == "little" else ">")


def attribute_bytes(buffer: memoryview | npt.NDArray[np.uint8]) -> npt.NDArray[np.void]:
    """The five bytes from every byte of a buffer on: chosen ones are copied whole, which copying fields is not."""
    return _bytes_from_each(buffer, ATTRIBUTE_SIZE)


def index_bytes(buffer: memoryview, version: int) -> npt.NDArray[np.void]:
    """The same for entries of the function index."""
    return _bytes_from_each(buffer, FDE_SIZES[version])


def _bytes_from_each(buffer: memoryview | npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.void]:
    return np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))


@cache
def header_dtype(order: ByteOrder) -> np.dtype[np.void]:
    """The header, the same in all versions."""
    return _in_order(_HEADER, order)


@cache
def fde_dtype(version: int, order: ByteOrder) -> np.dtype[np.void]:
    """One entry of the function index."""
    return _in_order(_FDE[version], order)


@cache
def attribute_dtype(order: ByteOrder) -> np.dtype[np.void]:
    """The attribute record that stands before a function's rows in version 3."""
    return _in_order(_ATTRIBUTE, order)


FDE_SIZES: Final = {version: fde_dtype(version, "little").itemsize for version in VERSIONS}
"""Bytes of an entry of the index, by version."""
