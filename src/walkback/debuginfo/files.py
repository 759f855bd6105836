"""The files that hold the debugging information of a program: its own, a separate one, and what dwz made of several.

dwz moves what files share into another one, which `.gnu_debugaltlink` names, or `.debug_sup` in DWARF 5.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from walkback.base.arrays import U64
from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.debuginfo._entries import units
from walkback.debuginfo._unit import Unit
from walkback.debuginfo.sections import DebugSections, damaged_section, debug_sections, text_of
from walkback.elf import ElfFile, FileSearch


class _Link(NamedTuple):
    """The name of another file, and what has to be its identifier."""

    name: str
    identifier: bytes


class UnitColumns(NamedTuple):
    """The units of a file, as columns."""

    start: U64
    end: U64
    program: U64
    """Where the line number program is; all bits are set where there is none."""
    folder: U64
    """The text of the folder in which it was compiled."""
    split_name: U64
    """That of the file with the rest of the unit; 0 if nothing was split off."""
    low: U64
    addr_base: U64
    ranges_base: U64
    id: U64
    is_damaged: U64
    """Where no entry can be read."""


@dataclass(eq=False)
class DebugSource:
    """Entries and texts: of a file, or of one split unit."""

    sections: DebugSections
    unit: Unit
    starts: U64
    """Where its units begin."""
    alternate: DebugSource | None = None
    """What dwz moved elsewhere."""
    _texts: dict[int, str | None] = field(default_factory=dict)

    def text(self, number: int) -> str | None:
        """A text by its number; None for none."""
        if number not in self._texts:
            alternate = self.alternate.sections if self.alternate is not None else None
            self._texts[number] = text_of(number, self.sections, alternate)
        return self._texts[number]

    def starts_of(self, places: U64) -> U64:
        """Where the unit of each entry begins; an entry in front of all units is in none."""
        if not len(self.starts):
            return np.zeros(len(places), np.uint64)
        starts: U64 = self.starts[(np.searchsorted(self.starts, places, "right") - 1).clip(min=0)]
        return starts


class DebugFile:
    """A file with debugging information."""

    def __init__(self, elf: ElfFile, program: ElfFile, search: FileSearch) -> None:
        """`program` is what it describes: the same file, or the one that it was stripped from."""
        self.elf, self.program, self._search = elf, program, search
        self.big = elf.byteorder == "big"
        self._link_damage: str | None = None

    @cached_property
    def sections(self) -> DebugSections:
        """Its sections; raises `UnreadableError` if they are too large."""
        return debug_sections(self.elf)

    @cached_property
    def _unit(self) -> Unit:
        return Unit(self.sections, self.big)

    @cached_property
    def _found(self) -> tuple[UnitColumns, U64]:
        found, bases, code = units(self._unit)
        return UnitColumns(*found.T, *bases.T), code

    @property
    def units(self) -> UnitColumns:
        """Its units; all are read when one is asked for first."""
        return self._found[0]

    @property
    def code(self) -> U64:
        """The ranges of code, each with the number of its unit."""
        return self._found[1]

    @cached_property
    def damage(self) -> str | None:
        """What cannot be read of it; None if all of its units can, and the name of the file with what they share."""
        if self._link is None and self._link_damage is not None:
            return f"where dwz moved some of it is not known: {self._link_damage}"
        section = damaged_section(self.elf)
        if section is not None:
            return section if self.elf is self.program else f"{self.elf.name}: {section}"
        damaged, end = np.flatnonzero(self.units.is_damaged), int(self.units.end.max(initial=0))
        if len(damaged):
            end = int(self.units.start[damaged[0]])
        elif end >= len(self.sections.info):
            return None
        return f"the unit at {end:#x} of .debug_info cannot be read"

    @cached_property
    def source(self) -> DebugSource:
        """Its entries and texts."""
        return DebugSource(self.sections, self._unit, self.units.start, self._alternate())

    @cached_property
    def alternate(self) -> ElfFile | None:
        """The file into which dwz moved what several have; it has the identifier that this one names."""
        link = self._link
        for path in self._search.supplements(self.elf, *link) if link is not None else ():
            with contextlib.suppress(WalkbackError, ValueError):
                elf = ElfFile(path)
                if link and link.identifier in _identifiers(elf) and elf.byteorder == self.elf.byteorder:
                    return elf
        return None

    @cached_property
    def lacks(self) -> str | None:
        """The name of that file, if it is nowhere."""
        return self._link.name if self._link is not None and self.alternate is None else None

    @cached_property
    def _link(self) -> _Link | None:
        try:
            return _alternate_link(self.elf)
        except WalkbackError as error:
            self._link_damage = error.message
            return None

    def _alternate(self) -> DebugSource | None:
        if self.alternate is not None:
            with contextlib.suppress(WalkbackError, ValueError):
                sections = debug_sections(self.alternate)
                unit = Unit(sections, self.big)
                return DebugSource(sections, unit, units(unit)[0][:, 0])
        return None


def debug_source(elf: ElfFile, search: FileSearch) -> DebugFile | None:
    """The debugging information of a file: its own, else that of its separate debug file; None if there is none."""
    if has_debug_info(elf):
        return DebugFile(elf, elf, search)
    separate = search.debug_file(elf)
    if separate is not None and has_debug_info(separate):
        return DebugFile(separate, elf, search)
    return None


def has_debug_info(elf: ElfFile) -> bool:
    """Whether a file has lines or functions of its source."""
    names = {".debug_line", ".debug_info", ".zdebug_line", ".zdebug_info"}
    return not names.isdisjoint(elf.section_names())


def _alternate_link(elf: ElfFile) -> _Link | None:
    """The file that dwz made."""
    for index in elf.sections_named(".gnu_debugaltlink"):
        name, _, build_id = bytes(elf.section_data(index)).partition(b"\0")
        return _Link(os.fsdecode(name), build_id)
    for link, is_other in _supplements(elf):
        if not is_other:
            return link
    return None


def _identifiers(elf: ElfFile) -> set[bytes]:
    """What such a file is known by: its build ID, or what it says itself."""
    return {elf.build_id or b"", *(link.identifier for link, is_other in _supplements(elf) if is_other)} - {b""}


def _supplements(elf: ElfFile) -> Iterator[tuple[_Link, bool]]:
    """What `.debug_sup` says, and whether this is the file that others name.

    It has a version, which of the two it is, a name, and a checksum behind its length.
    """
    for index in elf.sections_named(".debug_sup"):
        contents = bytes(elf.section_data(index))
        name, _, checksum = contents[3:].partition(b"\0")
        yield _Link(os.fsdecode(name), checksum[1:]), contents[2:3] == b"\1"
