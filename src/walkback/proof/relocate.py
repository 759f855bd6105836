"""Code of a relocatable file as a linker would put it at an address: calls, jumps, and the addresses of data."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U8, U64, Bools
from walkback.elf import ElfFile, layout
from walkback.elf.relocations import relocations_for

UNDEFINED_STEP = 16
"""Symbols that the file does not define are put so far from each other, by their numbers."""

_WHOLE = "whole"
"""The value is a number of its own."""
_HALVED = "halved"
"""s390x: half of it is."""
_BRANCH_26, _BRANCH_19, _BRANCH_14, _PAGE, _LOW_12, _PLACE_21 = "b26", "b19", "b14", "page", "low12", "place21"
"""AArch64: parts of instructions."""

_INDIRECT = "indirect"
"""AMD64: the address is in the global offset table; the instruction becomes one without the table."""
_DIRECT = {(0xFF, 0x15): (0x67, 0xE8), (0xFF, 0x25): (0x67, 0xE9)}
"""The first two bytes of a call and of a jump through the table, and of those without it."""
_MOV, _LEA = 0x8B, 0x8D

_KINDS: dict[int, dict[int, tuple[str, int, bool]]] = {
    layout.EM_X86_64: {
        layout.R_X86_64_64: (_WHOLE, 8, False),
        layout.R_X86_64_PC32: (_WHOLE, 4, True),
        layout.R_X86_64_PLT32: (_WHOLE, 4, True),
        layout.R_X86_64_32: (_WHOLE, 4, False),
        layout.R_X86_64_32S: (_WHOLE, 4, False),
        layout.R_X86_64_PC64: (_WHOLE, 8, True),
        layout.R_X86_64_GOTPCREL: (_INDIRECT, 4, True),
        layout.R_X86_64_GOTPCRELX: (_INDIRECT, 4, True),
        layout.R_X86_64_REX_GOTPCRELX: (_INDIRECT, 4, True),
    },
    layout.EM_AARCH64: {
        layout.R_AARCH64_ABS64: (_WHOLE, 8, False),
        layout.R_AARCH64_ABS32: (_WHOLE, 4, False),
        layout.R_AARCH64_PREL64: (_WHOLE, 8, True),
        layout.R_AARCH64_PREL32: (_WHOLE, 4, True),
        layout.R_AARCH64_ADR_PREL_LO21: (_PLACE_21, 4, True),
        layout.R_AARCH64_ADR_PREL_PG_HI21: (_PAGE, 4, False),
        layout.R_AARCH64_ADR_PREL_PG_HI21_NC: (_PAGE, 4, False),
        layout.R_AARCH64_ADD_ABS_LO12_NC: (_LOW_12, 4, False),
        layout.R_AARCH64_TSTBR14: (_BRANCH_14, 4, True),
        layout.R_AARCH64_CONDBR19: (_BRANCH_19, 4, True),
        layout.R_AARCH64_JUMP26: (_BRANCH_26, 4, True),
        layout.R_AARCH64_CALL26: (_BRANCH_26, 4, True),
    },
    layout.EM_S390: {
        layout.R_390_32: (_WHOLE, 4, False),
        layout.R_390_PC32: (_WHOLE, 4, True),
        layout.R_390_64: (_WHOLE, 8, False),
        layout.R_390_PC64: (_WHOLE, 8, True),
        layout.R_390_PC16DBL: (_HALVED, 2, True),
        layout.R_390_PLT16DBL: (_HALVED, 2, True),
        layout.R_390_PC32DBL: (_HALVED, 4, True),
        layout.R_390_PLT32DBL: (_HALVED, 4, True),
    },
}
"""For each type of relocation how its value is put, into how many bytes, and whether it counts from its place."""


def relocate(elf: ElfFile, number: int, base: U64) -> memoryview:
    """The contents of a section, with the relocations applied that lead to code and data; `base` has the addresses."""
    contents = np.frombuffer(bytes(elf.section_data(number)), np.uint8).copy()
    relocations = relocations_for(elf, number)
    table = relocations.table
    if not len(table):
        return contents.data
    targets = relocations.targets(elf)
    defined = (targets["section"] > 0) & (targets["section"] < len(base) - 1)
    symbol = base[np.where(defined, targets["section"], 0)].astype(np.int64) + targets["value"]
    symbol = np.where(defined, symbol, int(base[-1]) + UNDEFINED_STEP * table["symbol"].astype(np.int64))
    for kind, (form, width, relative) in _KINDS.get(elf.machine, {}).items():
        chosen = (table["type"] == kind) & (table["offset"] < np.uint64(max(0, len(contents) - width + 1)))
        if not chosen.any():
            continue
        offset = table["offset"][chosen].astype(np.int64)
        value = symbol[chosen] + table["addend"][chosen]
        place = offset + int(base[number])
        if form == _INDIRECT:
            direct = _made_direct(contents, offset)
            offset, value, place = offset[direct], value[direct], place[direct]
        _put(contents, elf.byteorder, offset, width, form, value - place if relative else value, place)
    return contents.data


def _made_direct(contents: U8, offset: I64) -> Bools:
    """Let instructions do without the global offset table; returns which of those at the offsets can."""
    one, two = contents[offset - 2], contents[offset - 1]
    direct: Bools = (one == _MOV) & (offset >= 2)
    contents[offset[direct] - 2] = _LEA
    for (first, second), becomes in _DIRECT.items():
        chosen = (one == first) & (two == second) & (offset >= 2)
        contents[offset[chosen] - 2], contents[offset[chosen] - 1] = becomes
        direct |= chosen
    return direct


def _put(contents: U8, byteorder: str, offset: I64, width: int, form: str, value: I64, place: I64) -> None:
    """Write values into the bytes at their offsets."""
    order = "<" if byteorder == "little" else ">"
    octets = offset[:, None] + np.arange(width)
    if form in {_WHOLE, _HALVED, _INDIRECT}:
        value = value >> 1 if form == _HALVED else value
    else:
        word = np.ascontiguousarray(contents[octets]).view("<u4")[:, 0].astype(np.int64)
        value = _in_word(word, form, value, place)
    contents[octets] = value.astype(f"{order}i{width}").view(np.uint8).reshape(-1, width)


def _in_word(word: I64, form: str, value: I64, place: I64) -> I64:
    """An instruction of AArch64 with a value in its fields."""
    if form == _LOW_12:
        return word & ~(0xFFF << 10) | (value & 0xFFF) << 10
    if form in {_PAGE, _PLACE_21}:
        part = (value >> 12) - (place >> 12) if form == _PAGE else value
        return word & ~(3 << 29 | 0x7FFFF << 5) | (part & 3) << 29 | (part >> 2 & 0x7FFFF) << 5
    bits, shift = {_BRANCH_26: (26, 0), _BRANCH_19: (19, 5), _BRANCH_14: (14, 5)}[form]
    mask = (1 << bits) - 1
    return word & ~(mask << shift) | (value >> 2 & mask) << shift
