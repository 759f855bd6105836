"""Putting an `.sframe` section into a relocatable object, with the relocations that it needs.

Two sections come behind all others, so that no section changes its number. A relocation goes against a local symbol
of the section that it means, as in the assembler's output: never against a global one, which the linker may replace
by that of another object. Where a section has no local symbol it gets its own, and every symbol behind is renumbered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.elf import layout
from walkback.elf.write import Draft, Headers, Tail
from walkback.errors import GraftError
from walkback.graft.add import SECTION_NAME, Grafted, without_section
from walkback.graft.record import SECTION_ALIGNMENT, finish
from walkback.graft.remove import check_apart

if TYPE_CHECKING:
    import numpy.typing as npt

    from walkback.elf import ElfFile
    from walkback.elf.file import Table

SECTION_RELOCATION = np.dtype([("offset", "u8"), ("addend", "i8"), ("type", "u4"), ("section", "u4")], align=True)
"""A place in the new section that gets the address of a section plus the addend, in the way of the type."""

_PREFIX = ".rela"
_PLAIN_TYPES = (layout.STT_NOTYPE, layout.STT_OBJECT, layout.STT_FUNC, layout.STT_SECTION)
_RELOCATIONS = (layout.SHT_REL, layout.SHT_RELA)


def add_to_object(elf: ElfFile, contents: bytes, relocations: Table) -> Grafted:
    """A copy of an object with this `.sframe` section; one that it has is replaced.

    `relocations` is a table of SECTION_RELOCATION.
    """
    elf, notes = without_section(elf)
    if not elf.is_relocatable:
        raise GraftError("this is not a relocatable object", file=elf.name)
    try:
        return _add(elf, contents, relocations, notes)
    except GraftError as error:
        raise error.within(file=elf.name) from None


def _add(elf: ElfFile, contents: bytes, relocations: Table, notes: list[str]) -> Grafted:
    headers, draft, tail = Headers(elf), Draft(elf.data), Tail(len(elf.data))
    symtabs = elf.sections_of_type(layout.SHT_SYMTAB)
    if len(symtabs) != 1 or not headers.names:
        raise GraftError("this object has no symbol table, or no names of sections")
    symtab = symtabs[0]
    targets = np.unique(relocations["section"])
    if len(targets) and not 0 < targets[0] <= targets[-1] < len(elf.sections):
        raise GraftError(f"there is no section {targets[-1]} for a relocation")
    symbols, values = _local_symbols(elf, symtab)
    missing = targets[symbols[targets] == 0]
    if len(missing):
        symbols[missing] = _insert_symbols(elf, headers, draft, tail, symtab, missing)
        notes = [*notes, f"{len(missing)} section symbols are new"]
    stored = np.zeros(len(relocations), layout.RELA[elf.byteorder])
    stored["offset"] = relocations["offset"]
    numbers = symbols[relocations["section"]].astype(np.uint64)
    stored["info"] = numbers << np.uint64(32) | relocations["type"].astype(np.uint64)
    stored["addend"] = relocations["addend"] - values[relocations["section"]].view(np.int64)

    offset = tail.append(contents, SECTION_ALIGNMENT)
    relocations_offset = tail.append(stored.tobytes(), SECTION_ALIGNMENT)
    former_names, index = bytes(elf.section_data(headers.names)), len(headers.sections)
    names = former_names + f"{_PREFIX}{SECTION_NAME}\0".encode()
    place = (0, offset, len(contents), 0, 0, SECTION_ALIGNMENT, 0)
    section = (len(former_names) + len(_PREFIX), layout.SHT_GNU_SFRAME, layout.SHF_ALLOC, *place)
    place = (0, relocations_offset, stored.nbytes, symtab, index, SECTION_ALIGNMENT, stored.dtype.itemsize)
    relocation_section = (len(former_names), layout.SHT_RELA, layout.SHF_INFO_LINK, *place)
    new = np.array([section, relocation_section], headers.sections.dtype)
    headers.sections = np.concatenate([headers.sections, new])
    finish(headers, draft, tail, names, headers.segments_offset)
    return Grafted([*draft.parts(), *tail.parts], 0, offset, notes)


def _local_symbols(elf: ElfFile, symtab: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """For each section a local symbol of it, if possible its own, and that symbol's value; 0 where it has none."""
    table = elf.symbols(symtab)
    usable = (table["info"] >> 4 == layout.STB_LOCAL) & np.isin(table["info"] & 0xF, _PLAIN_TYPES)
    usable &= (table["section"] > 0) & (table["section"] < len(elf.sections))
    usable &= np.arange(len(table)) < elf.sections["info"][symtab]
    symbols = np.zeros(len(elf.sections), np.uint32)
    for chosen in (usable, usable & (table["info"] & 0xF == layout.STT_SECTION)):
        symbols[table["section"][chosen]] = np.flatnonzero(chosen)
    values = table["value"][symbols] if len(table) else np.zeros(len(symbols), np.uint64)
    return symbols, np.where(symbols > 0, values, np.uint64(0))


def _insert_symbols(
    elf: ElfFile, headers: Headers, draft: Draft, tail: Tail, symtab: int, sections: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Give sections symbols of their own, behind the last local one. Returns their numbers."""
    table = headers.sections
    first, count = int(table["info"][symtab]), len(sections)
    stored = elf.entries(symtab, layout.SYMBOL)
    if first > len(stored) or sections[-1] >= layout.SHN_LORESERVE:
        raise GraftError("the symbol table cannot take more local symbols")
    _renumber(elf, headers, draft, symtab, first, count)
    new = np.zeros(count, stored.dtype)
    new["info"], new["shndx"] = layout.STT_SECTION, sections
    grown = np.concatenate([stored[:first], new, stored[first:]]).astype(layout.SYMBOL[elf.byteorder])
    table["offset"][symtab] = tail.append(grown.tobytes(), SECTION_ALIGNMENT)
    table["size"][symtab] = grown.nbytes
    table["info"][symtab] += count
    for index in elf.sections_of_type(layout.SHT_SYMTAB_SHNDX):
        if table["link"][index] == symtab:
            words = bytes(elf.section_data(index))
            words = words[: 4 * first] + bytes(4 * count) + words[4 * first :]
            table["offset"][index], table["size"][index] = tail.append(words, 4), len(words)
    return np.arange(first, first + count, dtype=np.uint32)


def _renumber(elf: ElfFile, headers: Headers, draft: Draft, symtab: int, first: int, count: int) -> None:
    """Whatever names a symbol by its number follows: relocations and groups."""
    table = headers.sections
    linked = np.flatnonzero(table["link"] == symtab).tolist()
    check_apart(elf, linked)
    for index in linked:
        kind = int(table["type"][index])
        if kind in _RELOCATIONS:
            shapes = layout.RELA if kind == layout.SHT_RELA else layout.REL
            entries = elf.entries(index, shapes).copy()
            later = entries["info"] >> np.uint64(32) >= first
            entries["info"][later] += np.uint64(count << 32)
            draft.write(int(table["offset"][index]), entries.astype(shapes[elf.byteorder]).tobytes())
        elif kind == layout.SHT_GROUP and table["info"][index] >= first:
            table["info"][index] += count
        elif kind == layout.SHT_LLVM_ADDRSIG:
            table["link"][index] = 0  # by which LLVM knows that the numbers in it no longer hold
        elif kind == layout.SHT_CREL:
            raise GraftError("this object has compact relocations (SHT_CREL), which are not rewritten")
