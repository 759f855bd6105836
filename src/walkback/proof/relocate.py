"""Code of a relocatable file as a linker would put it at an address: calls, jumps, and the addresses of data."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U8, U64
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

_KINDS: dict[int, dict[int, tuple[str, int, bool]]] = {
    layout.EM_X86_64: {
        1: (_WHOLE, 8, False), 2: (_WHOLE, 4, True), 4: (_WHOLE, 4, True), 10: (_WHOLE, 4, False),
        11: (_WHOLE, 4, False), 24: (_WHOLE, 8, True),
    },
    layout.EM_AARCH64: {
        257: (_WHOLE, 8, False), 258: (_WHOLE, 4, False), 260: (_WHOLE, 8, True), 261: (_WHOLE, 4, True),
        274: (_PLACE_21, 4, True), 275: (_PAGE, 4, False), 276: (_PAGE, 4, False), 277: (_LOW_12, 4, False),
        279: (_BRANCH_14, 4, True), 280: (_BRANCH_19, 4, True), 282: (_BRANCH_26, 4, True), 283: (_BRANCH_26, 4, True),
    },
    layout.EM_S390: {
        4: (_WHOLE, 4, False), 5: (_WHOLE, 4, True), 22: (_WHOLE, 8, False), 23: (_WHOLE, 8, True),
        17: (_HALVED, 2, True), 18: (_HALVED, 2, True), 19: (_HALVED, 4, True), 20: (_HALVED, 4, True),
    },
}  # fmt: skip
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
        _put(contents, elf.byteorder, offset, width, form, value - place if relative else value, place)
    return contents.data


def _put(contents: U8, byteorder: str, offset: I64, width: int, form: str, value: I64, place: I64) -> None:
    """Write values into the bytes at their offsets."""
    order = "<" if byteorder == "little" else ">"
    octets = offset[:, None] + np.arange(width)
    if form in {_WHOLE, _HALVED}:
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
