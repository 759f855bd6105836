"""Constants of debugging information.

In the words of DWARF 5 (section 7) and, with `GNU` in the name, of what GCC, gold and dwz added to DWARF 4 (a face:
kernels compile them in).
"""

from __future__ import annotations

from typing import Final

WIDE: Final = 0xFFFFFFFF
"""The length that says that the true one follows, and that offsets have 8 bytes (64-bit DWARF)."""
FIRST_RESERVED: Final = 0xFFFFFFF0

# Units (section 7.5.1)
DW_UT_COMPILE: Final = 0x01
DW_UT_TYPE: Final = 0x02
DW_UT_SKELETON: Final = 0x04
DW_UT_SPLIT_COMPILE: Final = 0x05
DW_UT_SPLIT_TYPE: Final = 0x06

# Tags (section 7.5.3)
DW_TAG_CLASS_TYPE: Final = 0x02
DW_TAG_COMPILE_UNIT: Final = 0x11
DW_TAG_STRUCTURE_TYPE: Final = 0x13
DW_TAG_UNION_TYPE: Final = 0x17
DW_TAG_INLINED_SUBROUTINE: Final = 0x1D
DW_TAG_SUBPROGRAM: Final = 0x2E
DW_TAG_NAMESPACE: Final = 0x39
DW_TAG_PARTIAL_UNIT: Final = 0x3C
DW_TAG_SKELETON_UNIT: Final = 0x4A

# Attributes (section 7.5.4)
DW_AT_SIBLING: Final = 0x01
DW_AT_NAME: Final = 0x03
DW_AT_STMT_LIST: Final = 0x10
DW_AT_LOW_PC: Final = 0x11
DW_AT_HIGH_PC: Final = 0x12
DW_AT_COMP_DIR: Final = 0x1B
DW_AT_ABSTRACT_ORIGIN: Final = 0x31
DW_AT_SPECIFICATION: Final = 0x47
DW_AT_RANGES: Final = 0x55
DW_AT_CALL_FILE: Final = 0x58
DW_AT_CALL_LINE: Final = 0x59
DW_AT_LINKAGE_NAME: Final = 0x6E
DW_AT_STR_OFFSETS_BASE: Final = 0x72
DW_AT_ADDR_BASE: Final = 0x73
DW_AT_RNGLISTS_BASE: Final = 0x74
DW_AT_DWO_NAME: Final = 0x76
DW_AT_MIPS_LINKAGE_NAME: Final = 0x2007
DW_AT_GNU_DWO_NAME: Final = 0x2130
DW_AT_GNU_DWO_ID: Final = 0x2131
DW_AT_GNU_RANGES_BASE: Final = 0x2132
DW_AT_GNU_ADDR_BASE: Final = 0x2133

# Forms (section 7.5.6)
DW_FORM_ADDR: Final = 0x01
DW_FORM_BLOCK2: Final = 0x03
DW_FORM_BLOCK4: Final = 0x04
DW_FORM_DATA2: Final = 0x05
DW_FORM_DATA4: Final = 0x06
DW_FORM_DATA8: Final = 0x07
DW_FORM_STRING: Final = 0x08
DW_FORM_BLOCK: Final = 0x09
DW_FORM_BLOCK1: Final = 0x0A
DW_FORM_DATA1: Final = 0x0B
DW_FORM_FLAG: Final = 0x0C
DW_FORM_SDATA: Final = 0x0D
DW_FORM_STRP: Final = 0x0E
DW_FORM_UDATA: Final = 0x0F
DW_FORM_REF_ADDR: Final = 0x10
DW_FORM_REF1: Final = 0x11
DW_FORM_REF2: Final = 0x12
DW_FORM_REF4: Final = 0x13
DW_FORM_REF8: Final = 0x14
DW_FORM_REF_UDATA: Final = 0x15
DW_FORM_INDIRECT: Final = 0x16
DW_FORM_SEC_OFFSET: Final = 0x17
DW_FORM_EXPRLOC: Final = 0x18
DW_FORM_FLAG_PRESENT: Final = 0x19
DW_FORM_STRX: Final = 0x1A
DW_FORM_ADDRX: Final = 0x1B
DW_FORM_REF_SUP4: Final = 0x1C
DW_FORM_STRP_SUP: Final = 0x1D
DW_FORM_DATA16: Final = 0x1E
DW_FORM_LINE_STRP: Final = 0x1F
DW_FORM_REF_SIG8: Final = 0x20
DW_FORM_IMPLICIT_CONST: Final = 0x21
DW_FORM_LOCLISTX: Final = 0x22
DW_FORM_RNGLISTX: Final = 0x23
DW_FORM_REF_SUP8: Final = 0x24
DW_FORM_STRX1: Final = 0x25
DW_FORM_STRX2: Final = 0x26
DW_FORM_STRX3: Final = 0x27
DW_FORM_STRX4: Final = 0x28
DW_FORM_ADDRX1: Final = 0x29
DW_FORM_ADDRX2: Final = 0x2A
DW_FORM_ADDRX3: Final = 0x2B
DW_FORM_ADDRX4: Final = 0x2C
DW_FORM_GNU_ADDR_INDEX: Final = 0x1F01
DW_FORM_GNU_STR_INDEX: Final = 0x1F02
DW_FORM_GNU_REF_ALT: Final = 0x1F20
DW_FORM_GNU_STRP_ALT: Final = 0x1F21

# Lists of ranges (section 7.25)
DW_RLE_END_OF_LIST: Final = 0x00
DW_RLE_BASE_ADDRESSX: Final = 0x01
DW_RLE_STARTX_ENDX: Final = 0x02
DW_RLE_STARTX_LENGTH: Final = 0x03
DW_RLE_OFFSET_PAIR: Final = 0x04
DW_RLE_BASE_ADDRESS: Final = 0x05
DW_RLE_START_END: Final = 0x06
DW_RLE_START_LENGTH: Final = 0x07

# Line number programs (section 7.22)
DW_LNS_COPY: Final = 0x01
DW_LNS_ADVANCE_PC: Final = 0x02
DW_LNS_ADVANCE_LINE: Final = 0x03
DW_LNS_SET_FILE: Final = 0x04
DW_LNS_CONST_ADD_PC: Final = 0x08
DW_LNS_FIXED_ADVANCE_PC: Final = 0x09
DW_LNE_END_SEQUENCE: Final = 0x01
DW_LNE_SET_ADDRESS: Final = 0x02
DW_LNE_DEFINE_FILE: Final = 0x03
DW_LNCT_PATH: Final = 0x1
DW_LNCT_DIRECTORY_INDEX: Final = 0x2

# Contributions to packages of split units (section 7.3.5.3); 5 and 8 were others before DWARF 5
DW_SECT_INFO: Final = 1
DW_SECT_ABBREV: Final = 3
DW_SECT_STR_OFFSETS: Final = 6
DW_SECT_RNGLISTS: Final = 8
