"""Putting `.sframe` sections into a relocatable object, with the relocations that they need.

They come behind all other sections, each followed by its relocations. A relocation goes against a local symbol of the
section that it means, as in the assembler's output.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from walkback.base.arrays import U32, Records, distinct
from walkback.base.dataclass import dataclass
from walkback.base.errors import GraftError
from walkback.elf import ElfFile, layout
from walkback.elf.sframe import SECTION_NAME
from walkback.elf.write import Part
from walkback.graft.add import Grafted, without_section
from walkback.graft.changed import ChangedObject
from walkback.graft.drop import removed_sections
from walkback.graft.localsymbols import symbols_of_sections
from walkback.graft.numbering import numbers_without

_RELOCATIONS_PREFIX = ".rela"


@dataclass(frozen=True, slots=True)
class ObjectSection:
    """A section to be put into an object; all numbers of sections are those of the file that is given."""

    contents: bytes
    relocations: Records
    """A table of SECTION_RELOCATION."""
    kind: int = layout.SHT_GNU_SFRAME
    """The type; SHT_PROGBITS for versions from before there was one."""
    group: int | None = None
    """The section group that it joins, together with its relocations."""
    link_order: int | None = None
    """The text section that it stays and goes with, by SHF_LINK_ORDER."""
    name: str = SECTION_NAME


def set_sections(elf: ElfFile, sections: Sequence[ObjectSection]) -> list[Part]:
    """A copy of a relocatable object that has these `.sframe` sections instead of those it has.

    It is laid out anew.
    """
    try:
        changed, _, _ = _with_sections(elf, sections)
        return changed.compact()
    except GraftError as error:
        raise error.within(file=elf.name) from None


def add_to_object(elf: ElfFile, contents: bytes, relocations: Records) -> Grafted:
    """A copy of an object with this `.sframe` section behind all that it has, which `drop` can take out again.

    One that it has is replaced. `relocations` is a table of SECTION_RELOCATION.
    """
    try:
        changed, notes, count = _with_sections(elf, [ObjectSection(contents, relocations)])
        parts, headers = changed.appended()
    except GraftError as error:
        raise error.within(file=elf.name) from None
    if count:
        notes.append(f"{count} section symbols are new")
    return Grafted(parts, 0, int(headers["offset"][-2]), notes)


def _with_sections(elf: ElfFile, sections: Sequence[ObjectSection]) -> tuple[ChangedObject, list[str], int]:
    """The object to be written, what there is to be noted, and how many symbols are new."""
    if not elf.is_relocatable:
        raise GraftError("this is not a relocatable object")
    removed = removed_sections(elf)
    numbers = numbers_without(len(elf.sections), removed)
    former, notes = without_section(elf)
    if len(former.sections) + len(removed) != len(elf.sections):
        raise GraftError("the record of `add` in this object belongs to another file")
    changed = ChangedObject(former)
    if not sections:
        return changed, notes, 0
    symtabs = former.sections_of_type(layout.SHT_SYMTAB)
    if len(symtabs) != 1 or not changed.headers.names:
        raise GraftError("this object has no symbol table, or no names of sections")
    relocations, count = _relocations(changed, symtabs[0], [one.relocations for one in sections], numbers)
    members: dict[int, list[int]] = {}
    for section, stored in zip(sections, relocations, strict=True):
        group = 0 if section.group is None else _renumbered(section.group, numbers)
        added = _append(changed, section, stored, symtabs[0], numbers)
        if group:
            members.setdefault(group, []).extend(added)
    for group, joining in members.items():
        _join(changed, group, joining)
    return changed, notes, count


def _append(
    changed: ChangedObject, section: ObjectSection, relocations: bytes, symtab: int, numbers: U32
) -> tuple[int, int]:
    """A section and its relocations; returns their numbers."""
    flags, link = layout.SHF_ALLOC, 0
    grouped = 0 if section.group is None else layout.SHF_GROUP
    if section.link_order is not None:
        flags, link = flags | layout.SHF_LINK_ORDER, _renumbered(section.link_order, numbers)
    relocations_name = _RELOCATIONS_PREFIX + section.name
    changed.name(relocations_name)  # before the shorter name, which is its end
    index = changed.append(section.name, section.kind, section.contents, flags | grouped, link)
    entry_size = layout.RELA["little"].itemsize
    flags = layout.SHF_INFO_LINK | grouped
    second = changed.append(relocations_name, layout.SHT_RELA, relocations, flags, symtab, index, entry_size)
    return index, second


def _join(changed: ChangedObject, group: int, members: list[int]) -> None:
    if changed.elf.sections["type"][group] != layout.SHT_GROUP:
        raise GraftError(f"section {group} is no section group")
    order = "<" if changed.elf.byteorder == "little" else ">"
    words = struct.pack(f"{order}{len(members)}I", *members)
    changed.change(group, bytes(changed.elf.section_data(group)) + words)


def _renumbered(section: int, numbers: U32) -> int:
    number = int(numbers[section]) if 0 < section < len(numbers) else 0
    if not number:
        raise GraftError(f"there is no section {section}")
    return number


def _relocations(
    changed: ChangedObject, symtab: int, tables: Sequence[Records], numbers: U32
) -> tuple[list[bytes], int]:
    """Each table as it is stored, against symbols; and how many of those are new."""
    every = np.concatenate(tables)
    given = every["section"]
    wrong = (given >= len(numbers)) | (numbers[np.where(given < len(numbers), given, 0)] == 0)
    if wrong.any():
        raise GraftError(f"there is no section {given[wrong][0]} for a relocation")
    sections = numbers[given]
    symbols, values, count = symbols_of_sections(changed, symtab, distinct(sections))
    stored = np.zeros(len(every), layout.RELA[changed.elf.byteorder])
    stored["offset"] = every["offset"]
    stored["info"] = symbols[sections].astype(np.uint64) << np.uint64(32) | every["type"].astype(np.uint64)
    stored["addend"] = every["addend"] - values[sections].view(np.int64)
    borders = np.cumsum([len(table) for table in tables])[:-1]
    return [part.tobytes() for part in np.split(stored, borders)], count
