"""The relocations of one section, merged from every relocation section that names it.

gABI, chapter "Relocation". Object files have them, and files linked with `--emit-relocs` keep them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import distinct, record_type
from walkback.base.dataclass import dataclass
from walkback.base.errors import ElfError, UnreadableError
from walkback.elf import layout

if TYPE_CHECKING:
    from walkback.elf.file import ElfFile, Table

RELOCATION_TABLE = record_type("offset u8, addend i8, type u4, symbol u4, symtab u4, has_addend ?", align=True)

SECTION_RELOCATION = record_type("offset u8, addend i8, type u4, section u4", align=True)
"""A place in a section to be made that gets the address of a section plus the addend, in the way of the type."""

RELOCATION_TARGET = record_type("section i8, value i8")
"""Where the symbol of a relocation is. `section` is 0 if it is in no section of this file: undefined, absolute or
common; and -1 if there is no such symbol."""


@dataclass(frozen=True, slots=True)
class Relocations:
    """What is to be relocated in one section."""

    table: Table
    """`RELOCATION_TABLE`, by `offset`, which counts from the start of the section in every kind of file.
    `symbol` is an index into the symbol table in section `symtab`. Without `has_addend` the addend is what
    stands in the place itself."""
    sources: tuple[int, ...]
    """The relocation sections it comes from."""

    def __len__(self) -> int:
        return len(self.table)

    def targets(self, elf: ElfFile) -> Table:
        """A `RELOCATION_TARGET` for each relocation, by the symbol tables of the file they were read from."""
        targets = np.zeros(len(self.table), RELOCATION_TARGET)
        targets["section"] = -1
        for symtab in distinct(self.table["symtab"]).tolist():
            symbols = elf.symbols(symtab)
            chosen = np.flatnonzero((self.table["symtab"] == symtab) & (self.table["symbol"] < len(symbols)))
            named = symbols[self.table["symbol"][chosen]]
            targets["section"][chosen] = np.where(named["section"] < len(elf.sections), named["section"], 0)
            targets["value"][chosen] = named["value"].view(np.int64)
        return targets


def relocations_for(elf: ElfFile, section_index: int) -> Relocations:
    """All relocations of one section, ordered by offset; those of one place keep their order."""
    sources = _sources(elf, section_index)
    if not sources:
        return Relocations(np.zeros(0, RELOCATION_TABLE), ())
    if elf.machine == layout.EM_MIPS:
        raise UnreadableError("relocations of MIPS files, which are laid out differently, are not read", file=elf.name)
    # Sections that share bytes could otherwise make a small file fill the memory.
    if sum(len(elf.section_data(source)) for source in sources) > len(elf.data):
        raise ElfError(f"the relocation sections of section {section_index} overlap", file=elf.name)
    table = np.concatenate([_read(elf, source) for source in sources])
    if not elf.is_relocatable:
        table["offset"] -= elf.sections["addr"][section_index]
    if len(table) > 1 and (table["offset"][1:] < table["offset"][:-1]).any():
        table = table[np.argsort(table["offset"], kind="stable")]
    return Relocations(table, tuple(sources))


def _sources(elf: ElfFile, section_index: int) -> list[int]:
    """The relocation sections for this section; 0 in `sh_info` stands for no section."""
    if not 0 < section_index < len(elf.sections):
        return []
    ours = elf.relocation_sections.get(section_index, [])
    if any(elf.sections["type"][index] == layout.SHT_CREL for index in ours):
        text = f"section {section_index} has compact relocations (SHT_CREL), which are not read"
        raise UnreadableError(text, file=elf.name)
    return ours


def _read(elf: ElfFile, source: int) -> Table:
    with_addend = int(elf.sections["type"][source]) == layout.SHT_RELA
    stored = elf.entries(source, layout.RELA if with_addend else layout.REL)
    table = np.zeros(len(stored), RELOCATION_TABLE)
    table["offset"] = stored["offset"]
    table["type"] = stored["info"] & np.uint64(0xFFFFFFFF)
    table["symbol"] = stored["info"] >> np.uint64(32)
    table["symtab"] = elf.sections["link"][source]
    if with_addend:
        table["addend"] = stored["addend"]
        table["has_addend"] = True
    return table
