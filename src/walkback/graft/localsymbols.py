"""Local symbols for sections of an object, for relocations to name: where there is none, one is put in.

Never a global symbol: the linker may replace it by that of another object. New ones come behind the last local one, and
whatever names a symbol behind by its number follows.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import U32, U64
from walkback.base.errors import GraftError
from walkback.elf import ElfFile, layout
from walkback.graft.changed import ChangedObject
from walkback.graft.numbering import check_apart

_PLAIN_TYPES = (layout.STT_NOTYPE, layout.STT_OBJECT, layout.STT_FUNC, layout.STT_SECTION)


def symbols_of_sections(changed: ChangedObject, symtab: int, sections: U32) -> tuple[U32, U64, int]:
    """For every section of the object a symbol and its value; these sections surely have one.

    Returns also how many symbols are new.
    """
    symbols, values = _local_symbols(changed.elf, symtab)
    missing = sections[symbols[sections] == 0]
    if len(missing):
        symbols[missing] = _insert(changed, symtab, missing)
    return symbols, values, len(missing)


def _local_symbols(elf: ElfFile, symtab: int) -> tuple[U32, U64]:
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


def _insert(changed: ChangedObject, symtab: int, sections: U32) -> U32:
    """Give sections symbols of their own, behind the last local one. Returns their numbers."""
    elf, table = changed.elf, changed.headers.sections
    first, count = int(table["info"][symtab]), len(sections)
    stored = elf.entries(symtab, layout.SYMBOL)
    if first > len(stored):
        raise GraftError("the symbol table has fewer symbols than local ones")
    _renumber(changed, symtab, first, count)
    far = sections >= layout.SHN_LORESERVE
    new = np.zeros(count, stored.dtype)
    new["info"], new["shndx"] = layout.STT_SECTION, np.where(far, layout.SHN_XINDEX, sections)
    grown = np.concatenate([stored[:first], new, stored[first:]]).astype(layout.SYMBOL[elf.byteorder])
    changed.change(symtab, grown.tobytes())
    table["info"][symtab] += count
    _insert_numbers(changed, symtab, first, len(stored), np.where(far, sections, 0))
    return np.arange(first, first + count, dtype=np.uint32)


def _insert_numbers(changed: ChangedObject, symtab: int, first: int, count: int, numbers: U32) -> None:
    """The table of the section numbers that symbols have no room for grows too; one is made if it is needed."""
    elf = changed.elf
    words = numbers.astype("<u4" if elf.byteorder == "little" else ">u4").tobytes()
    tables = [one for one in elf.sections_of_type(layout.SHT_SYMTAB_SHNDX) if elf.sections["link"][one] == symtab]
    former = bytes(elf.section_data(tables[0]) if tables else b"").ljust(4 * count, b"\0")
    contents = former[: 4 * first] + words + former[4 * first :]
    if tables:
        changed.change(tables[0], contents)
    elif numbers.any():
        changed.append(".symtab_shndx", layout.SHT_SYMTAB_SHNDX, contents, link=symtab, entry_size=4)


def _renumber(changed: ChangedObject, symtab: int, first: int, count: int) -> None:
    """Whatever names a symbol by its number follows: relocations and groups."""
    table = changed.headers.sections
    linked = table["link"] == symtab
    check_apart(changed.elf, np.flatnonzero(linked).tolist())
    if (linked & (table["type"] == layout.SHT_CREL)).any():
        raise GraftError("this object has compact relocations (SHT_CREL), which are not rewritten")
    for kind, shapes in ((layout.SHT_REL, layout.REL), (layout.SHT_RELA, layout.RELA)):
        chosen = np.flatnonzero(linked & (table["type"] == kind)).tolist()
        every = [changed.elf.entries(index, shapes) for index in chosen]
        if not every:
            continue
        entries = np.concatenate(every)
        entries["info"][entries["info"] >> np.uint64(32) >= first] += np.uint64(count << 32)
        borders = np.cumsum([len(former) for former in every])[:-1]
        stored = np.split(entries.astype(shapes[changed.elf.byteorder]), borders)
        for index, its in zip(chosen, stored, strict=True):
            changed.change(index, its.tobytes())
    groups = linked & (table["type"] == layout.SHT_GROUP) & (table["info"] >= first)
    table["info"][groups] += count
    # By this LLVM knows that the numbers in it no longer hold.
    table["link"][linked & (table["type"] == layout.SHT_LLVM_ADDRSIG)] = 0
