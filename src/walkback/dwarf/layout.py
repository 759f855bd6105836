"""Constants of call frame information.

In the words of DWARF 5 (sections 6.4 and 7.24) and of the Linux Standard Base (Core, "Exception Frames"), whose
`.eh_frame` differs from `.debug_frame` in a few places.
"""

from __future__ import annotations

from typing import Final

from walkback.base.findings import Fault

EH_FRAME: Final = ".eh_frame"
EH_FRAME_HDR: Final = ".eh_frame_hdr"
DEBUG_FRAME: Final = ".debug_frame"

# Pointer encodings: the low 4 bits are the format, the next 3 what is added.
DW_EH_PE_ABSPTR: Final = 0x00
DW_EH_PE_ULEB128: Final = 0x01
DW_EH_PE_UDATA2: Final = 0x02
DW_EH_PE_UDATA4: Final = 0x03
DW_EH_PE_UDATA8: Final = 0x04
DW_EH_PE_SLEB128: Final = 0x09
DW_EH_PE_SDATA2: Final = 0x0A
DW_EH_PE_SDATA4: Final = 0x0B
DW_EH_PE_SDATA8: Final = 0x0C
DW_EH_PE_PCREL: Final = 0x10
DW_EH_PE_TEXTREL: Final = 0x20
DW_EH_PE_DATAREL: Final = 0x30
DW_EH_PE_FUNCREL: Final = 0x40
DW_EH_PE_ALIGNED: Final = 0x50
DW_EH_PE_INDIRECT: Final = 0x80
DW_EH_PE_OMIT: Final = 0xFF
DW_EH_PE_FORMAT_MASK: Final = 0x0F
DW_EH_PE_ADDED_MASK: Final = 0x70

# Instructions (section 7.24). The first three have an operand in their low 6 bits.
DW_CFA_ADVANCE_LOC: Final = 0x40
DW_CFA_OFFSET: Final = 0x80
DW_CFA_RESTORE: Final = 0xC0
DW_CFA_LOW_MASK: Final = 0x3F
DW_CFA_NOP: Final = 0x00
DW_CFA_SET_LOC: Final = 0x01
DW_CFA_ADVANCE_LOC1: Final = 0x02
DW_CFA_ADVANCE_LOC2: Final = 0x03
DW_CFA_ADVANCE_LOC4: Final = 0x04
DW_CFA_OFFSET_EXTENDED: Final = 0x05
DW_CFA_RESTORE_EXTENDED: Final = 0x06
DW_CFA_UNDEFINED: Final = 0x07
DW_CFA_SAME_VALUE: Final = 0x08
DW_CFA_REGISTER: Final = 0x09
DW_CFA_REMEMBER_STATE: Final = 0x0A
DW_CFA_RESTORE_STATE: Final = 0x0B
DW_CFA_DEF_CFA: Final = 0x0C
DW_CFA_DEF_CFA_REGISTER: Final = 0x0D
DW_CFA_DEF_CFA_OFFSET: Final = 0x0E
DW_CFA_DEF_CFA_EXPRESSION: Final = 0x0F
DW_CFA_EXPRESSION: Final = 0x10
DW_CFA_OFFSET_EXTENDED_SF: Final = 0x11
DW_CFA_DEF_CFA_SF: Final = 0x12
DW_CFA_DEF_CFA_OFFSET_SF: Final = 0x13
DW_CFA_VAL_OFFSET: Final = 0x14
DW_CFA_VAL_OFFSET_SF: Final = 0x15
DW_CFA_VAL_EXPRESSION: Final = 0x16
DW_CFA_LO_USER: Final = 0x1C
"""From here on instructions are those of machines and vendors."""
DW_CFA_MIPS_ADVANCE_LOC8: Final = 0x1D
DW_CFA_AARCH64_NEGATE_RA_STATE_WITH_PC: Final = 0x2C
DW_CFA_AARCH64_NEGATE_RA_STATE: Final = 0x2D
"""On other machines GNU_window_save."""
DW_CFA_GNU_ARGS_SIZE: Final = 0x2E
DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED: Final = 0x2F

# Operations of expressions (section 7.7.1).
DW_OP_ADDR: Final = 0x03
DW_OP_DEREF: Final = 0x06
DW_OP_CONST1U: Final = 0x08
DW_OP_CONST1S: Final = 0x09
DW_OP_CONST2U: Final = 0x0A
DW_OP_CONST2S: Final = 0x0B
DW_OP_CONST4U: Final = 0x0C
DW_OP_CONST4S: Final = 0x0D
DW_OP_CONST8U: Final = 0x0E
DW_OP_CONST8S: Final = 0x0F
DW_OP_CONSTU: Final = 0x10
DW_OP_CONSTS: Final = 0x11
DW_OP_DUP: Final = 0x12
DW_OP_DROP: Final = 0x13
DW_OP_OVER: Final = 0x14
DW_OP_PICK: Final = 0x15
DW_OP_SWAP: Final = 0x16
DW_OP_ROT: Final = 0x17
DW_OP_ABS: Final = 0x19
DW_OP_AND: Final = 0x1A
DW_OP_DIV: Final = 0x1B
DW_OP_MINUS: Final = 0x1C
DW_OP_MOD: Final = 0x1D
DW_OP_MUL: Final = 0x1E
DW_OP_NEG: Final = 0x1F
DW_OP_NOT: Final = 0x20
DW_OP_OR: Final = 0x21
DW_OP_PLUS: Final = 0x22
DW_OP_PLUS_UCONST: Final = 0x23
DW_OP_SHL: Final = 0x24
DW_OP_SHR: Final = 0x25
DW_OP_SHRA: Final = 0x26
DW_OP_XOR: Final = 0x27
DW_OP_BRA: Final = 0x28
DW_OP_EQ: Final = 0x29
DW_OP_GE: Final = 0x2A
DW_OP_GT: Final = 0x2B
DW_OP_LE: Final = 0x2C
DW_OP_LT: Final = 0x2D
DW_OP_NE: Final = 0x2E
DW_OP_SKIP: Final = 0x2F
DW_OP_LIT0: Final = 0x30
DW_OP_LIT31: Final = 0x4F
DW_OP_BREG0: Final = 0x70
DW_OP_BREG31: Final = 0x8F
DW_OP_BREGX: Final = 0x92
DW_OP_DEREF_SIZE: Final = 0x94
DW_OP_NOP: Final = 0x96


class EntryFault(Fault):
    """What is wrong with a CIE or FDE."""

    NONE = 0
    CUT_OFF = 1, "it ends within its fields"
    CIE_VERSION = 2, "the version of the CIE is not known"
    AUGMENTATION = 3, "the augmentation is not known"
    ADDRESS_SIZE = 4, "addresses are not of 2, 4 or 8 bytes"
    CIE_POINTER = 5, "its CIE pointer points to no CIE"
    CIE_FAULT = 6, "its CIE cannot be read"
    ENCODING = 7, "a pointer encoding that means nothing"
    INSTRUCTION = 8, "an instruction that does not exist or is cut off"
    RESTORE = 9, "a state is restored that was not remembered"
    LOCATION = 10, "a location that goes back or beyond 32 bits"
    SEGMENT = 11, "segmented addresses"
    INDIRECT = 12, "an indirect pointer to where the file has nothing"
    RELOCATION = 13, "no known relocation gives its start a place"
