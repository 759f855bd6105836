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
    form: size
    for size, forms in {
        0: (0x19,),  # flag_present
        1: (0x0B, 0x0C, 0x11, DW_FORM_STRX1, 0x29),  # data1, flag, ref1, strx1, addrx1
        2: (0x05, 0x12, DW_FORM_STRX2, 0x2A),  # data2, ref2, strx2, addrx2
        3: (DW_FORM_STRX3, 0x2B),  # strx3, addrx3
        4: (0x06, 0x13, 0x1C, DW_FORM_STRX4, 0x2C),  # data4, ref4, ref_sup4, strx4, addrx4
        8: (0x07, 0x14, 0x20, 0x24),  # data8, ref8, ref_sig8, ref_sup8
        16: (0x1E,),  # data16
    }.items()
    for form in forms
}
"""Forms that have a fixed number of bytes."""
OFFSETS: Final = frozenset({DW_FORM_STRP, 0x17, 0x1D, DW_FORM_LINE_STRP, 0x1F20, 0x1F21})
"""Forms of 4 bytes, or of 8 in 64-bit DWARF: also sec_offset, strp_sup, GNU_ref_alt, GNU_strp_alt."""
LEB128: Final = frozenset({0x0D, 0x0F, 0x15, DW_FORM_STRX, 0x1B, 0x22, 0x23, 0x1F01, DW_FORM_GNU_STR_INDEX})
"""Forms that are one number: also sdata, udata, ref_udata, addrx, loclistx, rnglistx, GNU_addr_index."""
BLOCKS: Final = {0x03: 2, 0x04: 4, 0x09: 0, 0x0A: 1, 0x18: 0}
"""Forms that begin with their length, in this many bytes, 0 for LEB128: block2, block4, block, block1, exprloc."""
STRING_INDICES: Final = frozenset(
    {DW_FORM_STRX, DW_FORM_STRX1, DW_FORM_STRX2, DW_FORM_STRX3, DW_FORM_STRX4, DW_FORM_GNU_STR_INDEX}
)

LANGUAGES: Final = {
    code: name
    for name, codes in {
        "C": (0x01, 0x02, 0x0C, 0x1D, 0x2C),
        "Ada": (0x03, 0x0D, 0x2E, 0x2F),
        "C++": (0x04, 0x19, 0x1A, 0x21, 0x2A, 0x2B),
        "COBOL": (0x05, 0x06),
        "Fortran": (0x07, 0x08, 0x0E, 0x22, 0x23, 0x2D),
        "Pascal": (0x09,),
        "Modula-2": (0x0A,),
        "Java": (0x0B,),
        "PL/I": (0x0F,),
        "Objective-C": (0x10,),
        "Objective-C++": (0x11,),
        "UPC": (0x12,),
        "D": (0x13,),
        "Python": (0x14,),
        "OpenCL": (0x15,),
        "Go": (0x16,),
        "Modula-3": (0x17,),
        "Haskell": (0x18,),
        "OCaml": (0x1B,),
        "Rust": (0x1C,),
        "Swift": (0x1E,),
        "Julia": (0x1F,),
        "Dylan": (0x20,),
        "RenderScript": (0x24,),
        "BLISS": (0x25,),
        "Kotlin": (0x26,),
        "Zig": (0x27,),
        "Crystal": (0x28,),
        "HIP": (0x30,),
        "Assembly": (0x31, 0x8001),
    }.items()
    for code in codes
}
"""DW_LANG_ codes without the years of their standards. 0x8001 is that of MIPS assembly, which all assemblers write."""
