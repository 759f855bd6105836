"""The records of SFrame, from the layout that walkback reads it by."""

from __future__ import annotations

from records import Field, Record, of_bits, of_dtype
from walkback.sframe import layout

_HEADER = {
    "magic": f"`{layout.MAGIC:#x}`, in the byte order of the section.",
    "version": "1, 2 or 3.",
    "flags": "See below.",
    "abi_arch": "The machine and its byte order.",
    "cfa_fixed_fp_offset": "Where the frame pointer is saved, from the CFA, in all functions; 0 if the rows say it.",
    "cfa_fixed_ra_offset": "The same of the return address: -8 on AMD64, otherwise 0.",
    "auxhdr_len": "Bytes of an auxiliary header after this one; 0 so far.",
    "num_fdes": "Entries of the index.",
    "num_fres": "Rows of all functions.",
    "fre_len": "Bytes of all rows; in version 3 with the attribute records.",
    "fdeoff": "Where the index begins, from the end of the headers.",
    "freoff": "Where the rows begin, from the same place.",
}
_FDE = {
    "start": "Where the function begins: see [what a start counts from](../formats.md).",
    "size": "Bytes of its code.",
    "fre_offset": "Where its rows begin, from the first row of the section.",
    "num_fres": "How many rows it has.",
    "info": "See below.",
    "rep_size": "Bytes of a repeating block, if the function is one.",
    "padding": "0.",
}
_FDE_3 = {name: _FDE[name] for name in ("start", "size")} | {
    "fre_offset": "Where its attribute record is, from the first one of the section."
}
_ATTRIBUTE = {name: _FDE[name] for name in ("num_fres", "info", "rep_size")} | {"info2": "See below."}
_FDE_INFO = {
    "fre_type": (0x0F, "Bytes of a row's start: 0 one, 1 two, 2 four."),
    "pc_type": (
        1 << layout.FDE_PC_TYPE_SHIFT,
        "0: rows count from the start of the function; 1: of a block.",
    ),
    "pauth_key": (1 << layout.FDE_PAUTH_KEY_SHIFT, "AArch64: return addresses are signed with key A (0) or B (1)."),
    "unused": (0x40, "0."),
    "signal": (layout.FDE_SIGNAL, "Version 3: the kernel made this frame when it delivered a signal."),
}
_FDE_INFO_2 = {
    "fde_type": (layout.FDE_TYPE_MASK, "0: default rows, 1: flex rows."),
    "unused": (0xFF & ~layout.FDE_TYPE_MASK, "0."),
}
_FRE_INFO = {
    "base": (0x01, "The CFA counts from the frame pointer (0) or from the stack pointer (1); 0 in flex rows."),
    "word_count": (layout.FRE_MAX_WORDS << layout.FRE_WORD_COUNT_SHIFT, "How many data words follow."),
    "word_size": (
        layout.FRE_WORD_SIZE_MASK << layout.FRE_WORD_SIZE_SHIFT,
        "Bytes of each: 0 one, 1 two, 2 four.",
    ),
    "ra_mangled": (layout.FRE_RA_MANGLED, "AArch64: the return address is signed."),
}
_CONTROL = {
    "reg_p": (layout.FLEX_REG, "The value counts from a register (1) or from the CFA (0)."),
    "deref_p": (layout.FLEX_DEREF, "It is in memory at that place (1), or that place itself (0)."),
    "unused": (layout.FLEX_UNUSED, "0."),
    "register": (0xFF & -1 << layout.FLEX_REGISTER_SHIFT, "Its DWARF number; longer words have more bits."),
}
_FLAGS = {
    "sorted": (layout.F_FDE_SORTED, "The index ascends by start."),
    "frame_pointer": (layout.F_FRAME_POINTER, "Versions 1 and 2: all functions keep a frame pointer."),
    "pcrel": (layout.F_FDE_FUNC_START_PCREL, "Since version 2 errata 1: a start counts from its own field."),
    "unused": (0xF8, "0."),
}
ROW = Record(
    "sframe-fre",
    "A row",
    [
        Field("start", 1, "Where the row begins to hold, from the start of the function.", "1, 2 or 4"),
        Field("info", 1, "See below."),
        Field("data_words", 2, "Signed numbers of 1, 2 or 4 bytes.", "0 to 60"),
    ],
)
RECORDS = (
    of_dtype("sframe-header", "The header of SFrame", layout.header_dtype("little"), _HEADER),
    of_bits("sframe-flags", "The flags of the header", _FLAGS),
    of_dtype(
        "sframe-fde-1",
        "An index entry of version 1",
        layout.fde_dtype(1, "little"),
        {name: _FDE[name] for name in ("start", "size", "fre_offset", "num_fres", "info")},
    ),
    of_dtype("sframe-fde-2", "An index entry of version 2", layout.fde_dtype(2, "little"), _FDE),
    of_dtype("sframe-fde-3", "An index entry of version 3", layout.fde_dtype(3, "little"), _FDE_3),
    of_dtype("sframe-attribute", "An attribute record of version 3", layout.attribute_dtype("little"), _ATTRIBUTE),
    of_bits("sframe-fde-info", "The info byte of a function", _FDE_INFO),
    of_bits("sframe-fde-info2", "The second info byte of version 3", _FDE_INFO_2),
    ROW,
    of_bits("sframe-fre-info", "The info byte of a row", _FRE_INFO),
    of_bits("sframe-control", "The control word of a flex row, of one byte", _CONTROL),
)
