"""Where call frame information is found: `.eh_frame` and `.debug_frame` of ELF files.

`.eh_frame` is found by its name, by the type that the AMD64 ABI gives it, or, when the section headers are gone, by way
of `.eh_frame_hdr` and its segment. In a relocatable file the relocations are applied, and each function is placed in
its text section.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from walkback.base.arrays import Bools
from walkback.base.dataclass import dataclass
from walkback.base.errors import MissingError, UnreadableError, WalkbackError
from walkback.dwarf import layout
from walkback.dwarf.decoding import check_length, decode
from walkback.dwarf.frames import Fdes, Frames
from walkback.dwarf.header import frame_place, last_entry
from walkback.dwarf.rules import to_table
from walkback.elf import ElfFile, Input, contents_of, elf_files, relocated
from walkback.elf import layout as elf_layout
from walkback.elf.inputs import raise_first
from walkback.table.source import Kind, TableSource
from walkback.table.spans import Spans
from walkback.table.table import UnwindTable


@dataclass(repr=False)
class FrameSource(TableSource):
    """One section of call frame information.

    >>> [source] = walkback.dwarf.read("hello")
    >>> source.name, len(source.frames.fdes), source.machine.name
    ('.eh_frame', 4, 'AMD64')
    """

    kind: ClassVar[Kind] = "cfi"

    index: int | None = None
    """Of the section; without section headers there is none, and the name is `PT_GNU_EH_FRAME`."""

    @cached_property
    def frames(self) -> Frames:
        """What the section says; of FDEs that cannot be read their faults.

        An entry that reaches beyond the end of the section raises `DwarfError`: nobody knows what stands behind it.
        """
        try:
            return self._decoded()
        except WalkbackError as error:
            raise error.within(file=self.file, section=self.name) from None

    @cached_property
    def fdes(self) -> Fdes:
        """The entries of functions alone, without rows.

        Their programs, which take most of the time, are not run, so faults in these are not found.
        """
        try:
            return self._decoded(programs=False).fdes
        except WalkbackError as error:
            raise error.within(file=self.file, section=self.name) from None

    def _decoded(self, *, programs: bool = True) -> Frames:
        elf, data, moved = self.elf, self.data, None
        if elf.is_relocatable and self.index is not None:
            moved = relocated(elf, self.index)
            data = moved.data
        frames = decode(
            data,
            self.machine,
            address=self.address,
            eh=self.name != layout.DEBUG_FRAME,
            byteorder=elf.byteorder,
            text=_address_of(elf, ".text"),
            got=_address_of(elf, ".got.plt") or _address_of(elf, ".got"),
            pointer_at=self._pointer_at,
            faults=True,
            programs=programs,
        )
        check_length(frames)
        if moved is not None:
            frames.code_section = moved.section_at(frames.fdes.start_field)
            lost = (frames.code_section == 0) & (frames.fdes.fault == 0)
            frames.fdes.fault[lost] = layout.EntryFault.RELOCATION
            # Where the start is no start, as in what Free Pascal writes, the size need not be one either.
            frames.fdes.size[lost & (frames.fdes.size > _largest_code(elf))] = 0
        return frames

    def _pointer_at(self, address: int) -> int | None:
        """The pointer that the file has at an address; one that is written when the file is loaded is not known."""
        try:
            stored = bytes(self.elf.mapped_data(address, 8))
        except UnreadableError:
            return None
        return int.from_bytes(stored, self.elf.byteorder) or None

    @cached_property
    def table(self) -> UnwindTable:
        """The neutral table of the section."""
        return to_table(self.frames)


def _largest_code(elf: ElfFile) -> np.uint64:
    """The size of the largest section with code."""
    has_code = elf.sections["flags"] & elf_layout.SHF_EXECINSTR != 0
    return np.uint64(elf.sections["size"][has_code].max(initial=0))


def in_code(elf: ElfFile, table: Spans) -> Bools:
    """Which ranges describe code of the file; a linker that drops code can leave their FDEs."""
    if elf.is_relocatable:
        return np.ones(len(table), np.bool_)
    return elf.is_code(table.range_start)


def frame_sources(elf: ElfFile, *, section: str | None = None) -> Iterator[FrameSource]:
    """The sections of call frame information in one ELF file, `.eh_frame` first; `section` chooses by name."""
    if section is None and not len(elf.sections):
        yield from _by_segment(elf)
        return
    if section is None:
        by_type = elf.sections_of_type(elf_layout.SHT_X86_64_UNWIND) if elf.machine == elf_layout.EM_X86_64 else []
        index_of = set(elf.sections_named(layout.EH_FRAME_HDR))  # which some linkers give the same type
        indices = sorted({*elf.sections_named(layout.EH_FRAME), *by_type} - index_of)
        indices += [*elf.sections_named(layout.DEBUG_FRAME), *elf.sections_named(".zdebug_frame")]
    else:
        indices = elf.sections_named(section)
    for index in indices:
        header = elf.sections[index]
        # A separate debug file has the header of `.eh_frame` without its contents.
        if header["type"] == elf_layout.SHT_NOBITS or not header["size"]:
            continue
        name = elf.section_name(index).replace(".zdebug", ".debug")
        yield FrameSource(elf, name, elf.section_data(index), int(header["addr"]), index)


def _by_segment(elf: ElfFile) -> Iterator[FrameSource]:
    for number in np.flatnonzero(elf.segments["type"] == elf_layout.PT_GNU_EH_FRAME).tolist():
        header, address = elf.segment_data(number), int(elf.segments["vaddr"][number])
        place = frame_place(header, address, elf.byteorder)
        if place is not None:
            data = elf.mapped_data(place)
            last = last_entry(header, address, elf.byteorder)
            yield FrameSource(elf, "PT_GNU_EH_FRAME", _up_to(data, last - place, elf.byteorder), place)


def _up_to(data: memoryview, last: int, byteorder: Literal["little", "big"]) -> memoryview:
    """The bytes up to the end of the entry at `last`; all of them if that is none."""
    if not 0 <= last <= len(data) - 4:
        return data
    return data[: last + 4 + int.from_bytes(data[last : last + 4], byteorder)]


def _address_of(elf: ElfFile, name: str) -> int:
    """The address of a section, or 0."""
    found = elf.sections_named(name)
    return int(elf.sections["addr"][found[0]]) if found else 0


def read(source: Input, *, section: str | None = None) -> Iterator[FrameSource]:
    """The sections of call frame information of a file or of the members of an archive.

    Raises `MissingError` if there is none.

    >>> [source] = walkback.dwarf.read("hello")
    >>> source.table
    UnwindTable(machine='AMD64', functions=4, rows=10, rules=7)
    """
    data, name = contents_of(source)
    empty = True
    errors: list[WalkbackError] = []
    for elf in elf_files(data, name):
        try:
            for frames in frame_sources(elf, section=section):
                empty = False
                yield frames
        except WalkbackError as error:
            errors.append(error.within(file=elf.name))
    raise_first(errors, "files")
    if empty:
        raise MissingError(f"there is no {section or f'{layout.EH_FRAME} or {layout.DEBUG_FRAME}'} section", file=name)
