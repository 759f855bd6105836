"""Where SFrame sections are found: in ELF files, in members of archives, and as raw bytes.

In an ELF file a section is found by its type, by its name, or, when the section headers are gone, by its segment. In a
relocatable file the start fields are relocated and each function is placed in its text section; nothing else is
relocated. In linked files the section's address is enough.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from walkback.arrays import Bools, Records
from walkback.elf import ElfFile, Relocations, elf_files, is_archive, is_elf, map_file, relocations_for
from walkback.elf import layout as elf_layout
from walkback.elf.inputs import raise_first
from walkback.errors import MissingError, SFrameError, UnreadableError, WalkbackError
from walkback.sframe.decode import Buffer, pieces
from walkback.sframe.rules import to_table
from walkback.sframe.section import Section
from walkback.symbols import SymbolIndex
from walkback.table import UnwindTable

SECTION_NAME = ".sframe"

_NO_SECTION = 0
"""The code section of a function that no relocation places: the index that ELF reserves for "none"."""


@dataclass(frozen=True, slots=True)
class Stray:
    """A relocation of the section that is not applied."""

    offset: int
    reason: str


@dataclass
class Piece:
    """One complete SFrame section at its place; a linker without knowledge of SFrame puts several into one."""

    position: int
    """From the start of the ELF section."""
    section: Section

    @cached_property
    def table(self) -> UnwindTable:
        """The neutral table of the section."""
        return to_table(self.section)


@dataclass
class Source:
    """One place where SFrame data stands."""

    file: str
    """The path; for a member of an archive `archive(member)`."""
    name: str
    """Of the ELF section; `PT_GNU_SFRAME` when there are no section headers; empty for raw bytes."""
    data: memoryview
    address: int
    elf: ElfFile | None = None
    index: int | None = None
    """Of the ELF section."""
    strays: list[Stray] = field(default_factory=list)
    """Relocations that could not be applied; known once the pieces are read."""

    def pieces(self, *, faults: bool = False) -> Iterator[Piece]:
        """Read what stands here; nothing for an empty section. `faults` as for `decode`."""
        self.strays.clear()
        if not len(self.data):
            return
        try:
            for position, section in pieces(self.data, address=self.address, faults=faults):
                piece = Piece(position, section)
                if self.relocatable:
                    self._place(piece)
                yield piece
        except SFrameError as error:
            raise error.within(file=self.file, section=self.name) from None

    @property
    def relocatable(self) -> bool:
        """Whether relocations give the functions their places."""
        return self.elf is not None and self.index is not None and self.elf.is_relocatable

    @property
    def file_offset(self) -> int | None:
        """Where the section begins in its ELF file."""
        if self.elf is None or self.index is None:
            return None
        return int(self.elf.sections["offset"][self.index])

    @cached_property
    def symbols(self) -> SymbolIndex | None:
        """Names for the functions, if the file has any."""
        return None if self.elf is None else SymbolIndex(self.elf)

    def function_names(self, section: Section) -> list[str | None]:
        """The symbol at each function's start; symbols that cannot be read name nothing."""
        if self.symbols is None:
            return [None] * len(section.functions)
        try:
            return self.symbols.names_at(section.code_address, section.code_section)
        except UnreadableError:
            return [None] * len(section.functions)

    def code_section_name(self, index: int) -> str | None:
        """The name of a text section; None for no section, and where there are only addresses."""
        return None if self.elf is None or index <= 0 else self.elf.section_name(index)

    def place(self, code_section: int, address: int) -> str:
        """A place in the code, for a person: an address, or text section and offset."""
        if not self.relocatable:
            return f"{address:#x}"
        return f"{self.code_section_name(code_section) or '(not relocated)'}+{address:#x}"

    @cached_property
    def _relocations(self) -> Relocations:
        assert self.elf is not None
        assert self.index is not None
        return relocations_for(self.elf, self.index)

    @property
    def relocations(self) -> np.ndarray:
        """The relocations of the ELF section, by offset; applied only in relocatable files."""
        return self._relocations.table

    def _place(self, piece: Piece) -> None:
        """Give each function of a relocatable file its text section and offset there."""
        section, end = piece.section, piece.position + piece.section.length
        count = len(section.functions)
        section.code_section = np.full(count, _NO_SECTION, np.int32)
        # Section by section this must not cost more than the relocations of the section: a linker that knows nothing
        # of SFrame concatenates thousands.
        all_entries, all_targets = self.relocations, self.relocation_targets
        first, stop = np.searchsorted(all_entries["offset"], np.array([piece.position, end], np.uint64)).tolist()
        stop = len(all_entries) if end == len(self.data) else stop
        entries, targets = all_entries[first:stop], all_targets[first:stop]
        width = 8 if section.version == 3 else 4
        right, idle = self._kinds(entries["type"], width)
        entries, targets, right = entries[~idle], targets[~idle], right[~idle]
        away = entries["offset"].astype(np.int64) - piece.position - section.fde_start
        function = away // section.fde_size
        on_field = (away >= 0) & (away % section.fde_size == 0) & (function < count)
        self._note(entries, ~on_field, "it is not on the start field of a function")
        self._note(entries, on_field & ~right, f"its type does not write a PC-relative offset of {width} bytes")
        again = np.zeros(len(entries), np.bool_)
        again[1:] = entries["offset"][1:] == entries["offset"][:-1]
        self._note(entries, on_field & again, "it is not the only one on its field")
        entries, targets, function = (column[on_field & right] for column in (entries, targets, function))
        defined = targets["section"] > 0
        self._note(entries, ~defined, "its symbol is in no section of this file")
        stored = np.where(entries["has_addend"], entries["addend"], section.functions.start[function])
        section.code_section[function[defined]] = targets["section"][defined]
        section.code_address[function[defined]] = (targets["value"] + stored)[defined].view(np.uint64)

    def _note(self, entries: np.ndarray, chosen: Bools, reason: str) -> None:
        """Keep the chosen relocations as strays."""
        self.strays += [Stray(offset, reason) for offset in entries["offset"][chosen].tolist()]

    def _kinds(self, types: np.ndarray, width: int) -> tuple[Bools, Bools]:
        """Which relocation types write `S + A - P` of this width, and which do nothing."""
        assert self.elf is not None
        machine = self.elf.machine
        right = [kind for (em, kind), size in elf_layout.PC_RELATIVE.items() if em == machine and size == width]
        idle = [kind for em, kind in elf_layout.NO_RELOCATION if em == machine]
        return np.isin(types, right), np.isin(types, idle)

    @cached_property
    def relocation_targets(self) -> Records:
        """Section and value of each relocation's symbol: a table of `RELOCATION_TARGET`."""
        assert self.elf is not None
        return self._relocations.targets(self.elf)


def sources(path: str | os.PathLike[str], *, section: str | None = None, address: int = 0) -> Iterator[Source]:
    """The places in a file where SFrame data stands.

    `section` chooses by name; `address` is where raw bytes are loaded. Raises `MissingError` if an ELF file or archive
    has none, `UnreadableError` if the file is none of the three kinds, and at the end if members of an archive cannot
    be read.
    """
    name = os.fsdecode(path)
    data = map_file(path)
    found: list[Source] | Iterator[Source]
    if is_archive(data) or is_elf(data):
        found = _in_files(data, name, section)
    elif bytes(data[:2]) in {b"\xe2\xde", b"\xde\xe2"}:
        found = [Source(name, "", data, address)]
    else:
        message = "this is no ELF file, archive or SFrame section"
        raise UnreadableError(message, file=name)
    empty = True
    for source in found:
        empty = False
        yield source
    if empty:
        raise MissingError(f"there is no {section or SECTION_NAME} section", file=name)


def _in_files(data: memoryview, name: str, section: str | None) -> Iterator[Source]:
    """In the ELF file, or in every member of an archive; what is wrong with one does not hide those after it."""
    errors: list[WalkbackError] = []
    try:
        for elf in elf_files(data, name):
            try:
                yield from sources_of(elf, section=section)
            except WalkbackError as error:
                errors.append(error.within(file=elf.name))
    except WalkbackError as error:
        errors.append(error)
    raise_first(errors, "files")


def from_bytes(data: Buffer, *, address: int = 0, name: str = "<bytes>") -> Source:
    """SFrame data in memory."""
    return Source(name, "", memoryview(data).cast("B"), address)


def sources_of(elf: ElfFile, *, section: str | None = None) -> Iterator[Source]:
    """The places in one ELF file where SFrame data stands; none is no error.

    By type and name; by segment where there are no section headers.
    """
    if section is not None:
        indices = elf.sections_named(section)
    elif len(elf.sections):
        indices = sorted({*elf.sections_of_type(elf_layout.SHT_GNU_SFRAME), *elf.sections_named(SECTION_NAME)})
    else:
        indices = []
        for number in np.flatnonzero(elf.segments["type"] == elf_layout.PT_GNU_SFRAME).tolist():
            data = _header_extent(elf.segment_data(number))
            yield Source(elf.name, "PT_GNU_SFRAME", data, int(elf.segments["vaddr"][number]), elf)
    errors: list[WalkbackError] = []
    for index in indices:
        header, name = elf.sections[index], elf.section_name(index)
        try:
            if header["type"] == elf_layout.SHT_NOBITS:
                message = "the section has no contents in this file (SHT_NOBITS); a debug file has them elsewhere"
                raise MissingError(message, file=elf.name, section=name)
            data = elf.section_data(index)
        except WalkbackError as error:
            errors.append(error)
            continue
        yield Source(elf.name, name, data, int(header["addr"]), elf, index)
    raise_first(errors, "sections")


def _header_extent(data: memoryview) -> memoryview:
    """GNU ld makes the segment larger than the section in it; the header tells where it ends."""
    try:
        first = next(pieces(data, faults=True))[1]
    except SFrameError:
        return data
    return data[: max(first.end, first.fde_end)]
