"""Constants of compilation units, in the words of DWARF 5, sections 7.5 and 7.12, and of GNU's extensions before it."""

from __future__ import annotations

from typing import Final

WIDE: Final = 0xFFFFFFFF
"""The length that says that the true one follows, and that offsets have 8 bytes (64-bit DWARF)."""
FIRST_RESERVED: Final = 0xFFFFFFF0

DW_UT_COMPILE: Final = 0x01
COMPILE_UNITS: Final = frozenset({DW_UT_COMPILE, 0x04, 0x05})
"""Also the skeletons of split units (DW_UT_skeleton), and these (DW_UT_split_compile)."""
DW_TAG_PARTIAL_UNIT: Final = 0x3C
UNIT_TAGS: Final = rb"([\x11\x3c\x4a])"
"""What units of code begin with: DW_TAG_compile_unit, DW_TAG_partial_unit, DW_TAG_skeleton_unit."""

DW_AT_LANGUAGE: Final = 0x13
DW_AT_PRODUCER: Final = 0x25
DW_AT_STR_OFFSETS_BASE: Final = 0x72

DW_FORM_ADDR: Final = 0x01
DW_FORM_STRING: Final = 0x08
DW_FORM_STRP: Final = 0x0E
DW_FORM_REF_ADDR: Final = 0x10
DW_FORM_INDIRECT: Final = 0x16
DW_FORM_STRX: Final = 0x1A
DW_FORM_LINE_STRP: Final = 0x1F
DW_FORM_IMPLICIT_CONST: Final = 0x21
DW_FORM_STRX1: Final = 0x25
DW_FORM_STRX2: Final = 0x26
DW_FORM_STRX3: Final = 0x27
DW_FORM_STRX4: Final = 0x28
DW_FORM_GNU_STR_INDEX: Final = 0x1F02

SIZES: Final = {
    0x05: 2,  # data2
    0x06: 4,  # data4
    0x07: 8,  # data8
    0x0B: 1,  # data1
    0x0C: 1,  # flag
    0x11: 1,  # ref1
    0x12: 2,  # ref2
    0x13: 4,  # ref4
    0x14: 8,  # ref8
    0x19: 0,  # flag_present
    0x1C: 4,  # ref_sup4
    0x1E: 16,  # data16
    0x20: 8,  # ref_sig8
    0x24: 8,  # ref_sup8
    DW_FORM_STRX1: 1,
    DW_FORM_STRX2: 2,
    DW_FORM_STRX3: 3,
    DW_FORM_STRX4: 4,
    0x29: 1,  # addrx1
    0x2A: 2,  # addrx2
    0x2B: 3,  # addrx3
    0x2C: 4,  # addrx4
}
"""Forms of so many bytes."""
OFFSETS: Final = frozenset({DW_FORM_STRP, 0x17, 0x1D, DW_FORM_LINE_STRP, 0x1F20, 0x1F21})
"""Forms of 4 bytes, or of 8 in 64-bit DWARF: also sec_offset, strp_sup, GNU_ref_alt, GNU_strp_alt."""
LEB128: Final = frozenset({0x0D, 0x0F, 0x15, DW_FORM_STRX, 0x1B, 0x22, 0x23, 0x1F01, DW_FORM_GNU_STR_INDEX})
"""Forms that are one number: also sdata, udata, ref_udata, addrx, loclistx, rnglistx, GNU_addr_index."""
BLOCKS: Final = {0x03: 2, 0x04: 4, 0x09: 0, 0x0A: 1, 0x18: 0}
"""Forms that say their length first, in so many bytes or as LEB128: block2, block4, block, block1, exprloc."""
STRING_INDICES: Final = frozenset(
    {DW_FORM_STRX, DW_FORM_STRX1, DW_FORM_STRX2, DW_FORM_STRX3, DW_FORM_STRX4, DW_FORM_GNU_STR_INDEX}
)

LANGUAGES: Final = {
    0x01: "C",
    0x02: "C",
    0x03: "Ada",
    0x04: "C++",
    0x05: "COBOL",
    0x06: "COBOL",
    0x07: "Fortran",
    0x08: "Fortran",
    0x09: "Pascal",
    0x0A: "Modula-2",
    0x0B: "Java",
    0x0C: "C",
    0x0D: "Ada",
    0x0E: "Fortran",
    0x0F: "PL/I",
    0x10: "Objective-C",
    0x11: "Objective-C++",
    0x12: "UPC",
    0x13: "D",
    0x14: "Python",
    0x15: "OpenCL",
    0x16: "Go",
    0x17: "Modula-3",
    0x18: "Haskell",
    0x19: "C++",
    0x1A: "C++",
    0x1B: "OCaml",
    0x1C: "Rust",
    0x1D: "C",
    0x1E: "Swift",
    0x1F: "Julia",
    0x20: "Dylan",
    0x21: "C++",
    0x22: "Fortran",
    0x23: "Fortran",
    0x24: "RenderScript",
    0x25: "BLISS",
    # Given out since the standard was printed.
    0x26: "Kotlin",
    0x27: "Zig",
    0x28: "Crystal",
    0x2A: "C++",
    0x2B: "C++",
    0x2C: "C",
    0x2D: "Fortran",
    0x2E: "Ada",
    0x2F: "Ada",
    0x30: "HIP",
    0x31: "Assembly",
    0x8001: "Assembly",
}
"""DW_LANG_ codes without the years of their standards. 0x8001 is that of MIPS assembly, which all assemblers write."""
