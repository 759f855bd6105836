"""Section headers that go or change their order: every number of a section, wherever it stands, has to follow.

Those places are `sh_link`, `sh_info` of relocations and of sections with SHF_INFO_LINK, the members of groups, the
symbols with their extended numbers, and `e_shstrndx`. A symbol of a section that goes becomes an absolute 0 without a
type, so that the numbers of symbols stay.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from walkback.base.arrays import U32
from walkback.base.errors import GraftError
from walkback.elf import ElfFile, layout
from walkback.elf.write import Draft, Headers

_SYMBOLS = (layout.SHT_SYMTAB, layout.SHT_DYNSYM)
RELOCATIONS = (layout.SHT_REL, layout.SHT_RELA, layout.SHT_CREL)


def numbers_without(count: int, removed: Sequence[int]) -> U32:
    """The new number of each of `count` sections once some are removed; the removed ones get 0."""
    stays = np.ones(count, bool)
    stays[list(removed)] = False
    return np.where(stays, np.cumsum(stays) - 1, 0).astype(np.uint32)


def remove_sections(elf: ElfFile, headers: Headers, draft: Draft, removed: Sequence[int]) -> None:
    """Take headers out of the table in `headers`, and change the contents that number sections in `draft`."""
    if not len(removed):
        return
    if headers.names in removed:
        raise GraftError("the names of sections are in the section to be taken out", file=elf.name)
    renumber(elf, headers, draft, numbers_without(len(headers.sections), removed))
    headers.sections = np.delete(headers.sections, list(removed))


def order_sections(elf: ElfFile, headers: Headers, draft: Draft, order: U32) -> list[int]:
    """Put the table in `headers` in an order, which has the former number of each section.

    Returns the symbol tables of the file that `renumber` with `order` brings back to what they were.
    """
    numbers = np.empty(len(order), np.uint32)
    numbers[order] = np.arange(len(order), dtype=np.uint32)
    renumber(elf, headers, draft, numbers)
    headers.sections = headers.sections[order]
    extended = set(elf.sections["link"][elf.sections_of_type(layout.SHT_SYMTAB_SHNDX)].tolist())
    symtabs = np.flatnonzero(np.isin(elf.sections["type"], _SYMBOLS)).tolist()
    return [index for index in symtabs if index not in extended]


def renumber(elf: ElfFile, headers: Headers, draft: Draft, numbers: U32) -> None:
    """Give sections other numbers, in the headers and in `draft`; 0 is for one that goes."""
    table = headers.sections
    symtabs = np.flatnonzero(np.isin(table["type"], _SYMBOLS)).tolist()
    groups = np.flatnonzero(table["type"] == layout.SHT_GROUP).tolist()
    check_apart(elf, [*symtabs, *groups])
    for index in symtabs:
        _renumber_symbols(elf, draft, index, numbers)
    known = numbers.tolist()
    for index in groups:
        _renumber_group(elf, headers, draft, index, known)
    numbered = np.isin(table["type"], RELOCATIONS) | ((table["flags"] & np.uint64(layout.SHF_INFO_LINK)) != 0)
    table["link"] = _renumber(table["link"], numbers)
    table["info"] = np.where(numbered, _renumber(table["info"], numbers), table["info"])
    headers.names = int(numbers[headers.names])


def check_apart(elf: ElfFile, sections: Sequence[int]) -> None:
    """Sections that are to be rewritten must not share bytes, or a small file could take for ever."""
    if sum(elf.sections["size"][list(sections)].tolist()) > len(elf.data):
        raise GraftError("sections of this file overlap", file=elf.name)


def _renumber(values: U32, numbers: U32) -> U32:
    """The new numbers; what is no number of a section stays."""
    real = values < len(numbers)
    renumbered: U32 = np.where(real, numbers[np.where(real, values, 0)], values)
    return renumbered


def _renumber_symbols(elf: ElfFile, draft: Draft, symtab: int, numbers: U32) -> None:
    stored = elf.entries(symtab, layout.SYMBOL).copy()
    extended = stored["shndx"] == layout.SHN_XINDEX
    former = elf.symbols(symtab)["section"]
    real = (former > 0) & (former < len(numbers))
    lost = real & (numbers[np.where(real, former, 0)] == 0)
    new = _renumber(former, numbers)
    near = real & ~lost & (new < layout.SHN_LORESERVE)
    stored["shndx"][near] = new[near]
    for field, value in (("shndx", layout.SHN_ABS), ("value", 0), ("size", 0)):
        stored[field][lost] = value
    stored["info"][lost] &= 0xF0
    place = int(elf.sections["offset"][symtab])
    draft.write(place, stored.astype(layout.SYMBOL[elf.byteorder]).tobytes())
    if extended.any():
        _write_extended(elf, draft, symtab, np.where(extended & ~lost & ~near, new, 0))


def _write_extended(elf: ElfFile, draft: Draft, symtab: int, numbers: U32) -> None:
    for index in elf.sections_of_type(layout.SHT_SYMTAB_SHNDX):
        if int(elf.sections["link"][index]) == symtab:
            shape = "<u4" if elf.byteorder == "little" else ">u4"
            draft.write(int(elf.sections["offset"][index]), numbers.astype(shape).tobytes())
            return


def _renumber_group(elf: ElfFile, headers: Headers, draft: Draft, group: int, numbers: list[int]) -> None:
    """The flags of a group stay; a member that goes makes it shorter."""
    contents = elf.section_data(group)
    order = "<" if elf.byteorder == "little" else ">"
    flags, *members = struct.unpack_from(f"{order}{len(contents) // 4}I", contents) or (0,)
    now = [numbers[member] if member < len(numbers) else member for member in members]
    stay = [member for member in now if member]
    if now == members or len(contents) < 4:
        return
    kept = struct.pack(f"{order}{len(stay) + 1}I", flags, *stay)
    draft.write(int(elf.sections["offset"][group]), kept.ljust(len(contents), b"\0"))
    headers.sections["size"][group] = len(kept)
