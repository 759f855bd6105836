"""Constants of call frame information.

In the words of DWARF 5 (sections 6.4 and 7.24) and of the Linux Standard Base (Core, "Exception Frames"), whose
`.eh_frame` differs from `.debug_frame` in a few places.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

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

# Operations of expressions that are understood (section 7.7.1).
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
DW_OP_SWAP: Final = 0x16
DW_OP_AND: Final = 0x1A
DW_OP_MINUS: Final = 0x1C
DW_OP_NEG: Final = 0x1F
DW_OP_PLUS: Final = 0x22
DW_OP_PLUS_UCONST: Final = 0x23
DW_OP_SHL: Final = 0x24
DW_OP_GE: Final = 0x2A
DW_OP_LIT0: Final = 0x30
DW_OP_LIT31: Final = 0x4F
DW_OP_BREG0: Final = 0x70
DW_OP_BREG31: Final = 0x8F
DW_OP_BREGX: Final = 0x92
DW_OP_NOP: Final = 0x96


class Fault(IntEnum):
    """What is wrong with a CIE or FDE."""

    NONE = 0
    CUT_OFF = 1
    """It ends within its fields."""
    CIE_VERSION = 2
    AUGMENTATION = 3
    """Its augmentation is unknown, and does not say how long its data are."""
    ADDRESS_SIZE = 4
    CIE_POINTER = 5
    """It names no CIE."""
    CIE_FAULT = 6
    """Its CIE cannot be read."""
    ENCODING = 7
    """A pointer encoding that means nothing."""
    INSTRUCTION = 8
    """An instruction that does not exist, or that ends within its operands."""
    RESTORE = 9
    """A restored state that was not remembered."""
    LOCATION = 10
    """A location that goes back, or beyond 32 bits."""
    SEGMENT = 11
    """Segmented addresses."""
    INDIRECT = 12
    """An indirect pointer to where nothing is."""
    RELOCATION = 13
    """Relocatable files: no relocation that is known gives the start its place."""


FAULT_WORDS: Final = {
    Fault.CUT_OFF: "it ends within its fields",
    Fault.CIE_VERSION: "the version of the CIE is not known",
    Fault.AUGMENTATION: "the augmentation is not known",
    Fault.ADDRESS_SIZE: "addresses are not of 2, 4 or 8 bytes",
    Fault.CIE_POINTER: "its CIE pointer points to no CIE",
    Fault.CIE_FAULT: "its CIE cannot be read",
    Fault.ENCODING: "a pointer encoding that means nothing",
    Fault.INSTRUCTION: "an instruction that does not exist or is cut off",
    Fault.RESTORE: "a state is restored that was not remembered",
    Fault.LOCATION: "a location that goes back or beyond 32 bits",
    Fault.SEGMENT: "segmented addresses",
    Fault.INDIRECT: "an indirect pointer to where the file has nothing",
    Fault.RELOCATION: "no known relocation gives its start a place",
}
