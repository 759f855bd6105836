"""The unwind tables that a file has, whatever their format, and pairs of them to compare."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from walkback.comparison import Comparison, Stretch, compare
from walkback.dwarf.files import frame_sources
from walkback.elf import ElfFile, elf_files, is_archive, is_elf, map_file
from walkback.errors import MissingError, UnreadableError
from walkback.sframe.files import sources, sources_of
from walkback.symbols import SymbolIndex
from walkback.table import UnwindTable, joined


@dataclass(frozen=True, slots=True)
class Named:
    """A table and the section that it was read from."""

    name: str
    table: UnwindTable


@dataclass
class Pair:
    """Two tables of the same code."""

    elf: ElfFile
    one: str
    """Where the first stands: the section, with the file if that is another."""
    other: str
    comparison: Comparison

    @property
    def file(self) -> str:
        """The path; for a member of an archive `archive(member)`."""
        return self.elf.name

    @cached_property
    def _symbols(self) -> SymbolIndex:
        return SymbolIndex(self.elf)

    def name_of(self, stretch: Stretch) -> str | None:
        """The symbol that holds a stretch, and how far behind it that begins; none if symbols cannot be read."""
        try:
            return self._symbols.describe(stretch.start, stretch.section)
        except UnreadableError:
            return None

    def section_name(self, section: int) -> str | None:
        """The name of a text section of a relocatable file."""
        return self.elf.section_name(section) if section > 0 else None

    def place(self, section: int, address: int) -> str:
        """A place in the code, for a person."""
        name = self.section_name(section)
        return f"{name}+{address:#x}" if name else f"{address:#x}"


def call_frame_table(elf: ElfFile, *, section: str | None = None) -> Named | None:
    """What the call frame information of a file says: `.eh_frame`, or `.debug_frame` where there is none."""
    found = list(frame_sources(elf, section=section))
    if not found:
        return None
    name = found[0].name
    return Named(name, joined([one.table for one in found if one.name == name]))


def sframe_table(elf: ElfFile, *, section: str | None = None) -> Named | None:
    """What the SFrame of a file says; of several sections, and of several concatenated in one, all."""
    found = list(sources_of(elf, section=section))
    tables = [piece.table for source in found for piece in source.pieces(faults=True)]
    return Named(found[0].name, joined(tables)) if tables else None


def pairs(
    path: str | os.PathLike[str],
    other: str | os.PathLike[str] | None = None,
    *,
    section: str | None = None,
    other_section: str | None = None,
) -> Iterator[Pair]:
    """The tables to compare: of the file, or of each member of an archive, with those of another or of itself.

    The file gives its call frame information, or where it has none its SFrame; the other its SFrame, or where it has
    none its call frame information. `other` can be raw bytes with their address, as in `raw.sframe@0x4000`.
    """
    name = os.fsdecode(path)
    data = map_file(path)
    if not is_elf(data) and not is_archive(data):
        message = "this is no ELF file or archive"
        raise UnreadableError(message, file=name)
    some = False
    for elf in elf_files(data, name):
        one = _first(elf, section, frames_first=True)
        if other is not None and one is not None:
            two: Named | None = _other(os.fsdecode(other), other_section)
        elif other_section is None and section is None:
            two = sframe_table(elf)
        else:
            two = _first(elf, other_section, frames_first=False)
        if one is None or two is None:
            continue
        some = True
        yield Pair(elf, one.name, two.name, compare(one.table, two.table))
    if not some:
        message = "there are not two tables to compare"
        raise MissingError(message, file=name)


def _first(elf: ElfFile, section: str | None, *, frames_first: bool) -> Named | None:
    """One of the tables of a file. A section that is named is of the kind that its name tells."""
    if section is not None:
        frames = "frame" in section and "sframe" not in section
        return call_frame_table(elf, section=section) if frames else sframe_table(elf, section=section)
    if frames_first:
        return call_frame_table(elf) or sframe_table(elf)
    return sframe_table(elf) or call_frame_table(elf)


def _other(other: str, section: str | None) -> Named:
    """The second table, from another file."""
    raw = re.fullmatch(r"(.+)@(0[xX][0-9a-fA-F]+|\d+)", other)
    if raw is not None and not os.path.lexists(other):
        tables = [piece.table for source in sources(raw[1], address=int(raw[2], 0)) for piece in source.pieces()]
        return Named(other, joined(tables))
    found = _first(ElfFile.open(other), section, frames_first=False)
    if found is None:
        message = f"there is no {section or 'unwind table'}"
        raise MissingError(message, file=other)
    return Named(f"{other} {found.name}", found.table)
