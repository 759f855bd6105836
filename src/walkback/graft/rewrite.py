"""A linked file whose `.sframe` section is written anew, where it stands if it has the room.

Room is what the former sections took, and zeros up to what comes next in the same segment. The program headers are
not moved: the one for `.sframe` is there, or an unused one becomes it. Otherwise the section is taken out and put in
again, as `add` does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from walkback.base.arrays import Records
from walkback.base.dataclass import dataclass
from walkback.elf import ElfFile, layout
from walkback.elf.sframe import sframe_sections
from walkback.elf.write import SEGMENT_SIZE, Draft, Headers, write_over
from walkback.graft.add import Grafted, add, check_linked, made_for, planned_address, without_section
from walkback.graft.drop import cleared, removed_sections
from walkback.graft.numbering import remove_sections
from walkback.graft.record import SECTION_ALIGNMENT, find_record
from walkback.graft.room import FileBlock, pieces

_MOST_CANDIDATES = 16


@dataclass(frozen=True, slots=True)
class _SectionPlace:
    """Where a section can be written anew."""

    section: int | None
    """Its number; None in a file without section headers."""
    offset: int
    address: int
    size: int
    """What it took so far."""


class Rewriting:
    """A linked file whose section is to be written anew."""

    def __init__(self, elf: ElfFile) -> None:
        self.elf = elf

    @cached_property
    def _former(self) -> ElfFile:
        """The file without what it has, for where that has no room."""
        return without_section(self.elf)[0]

    def address(self, size: int) -> int:
        """Where a section of this size will stand."""
        place = _find_place(self.elf, size)
        return planned_address(self._former, size) if place is None else place.address

    def write(self, contents: Callable[[int], bytes], size: int, kind: int = layout.SHT_GNU_SFRAME) -> Grafted:
        """A copy of the file in which one `.sframe` section of this type replaces all it had.

        `contents` makes the `size` bytes of the section for the address where it will stand.
        """
        place = _find_place(self.elf, size)
        if place is None:
            grafted = add(self._former, contents, size, kind)
            return Grafted(grafted.parts, grafted.address, grafted.offset, [*_notes(self.elf), *grafted.notes])
        return _in_place(self.elf, place, made_for(contents, place.address, size), kind)


def _in_place(elf: ElfFile, place: _SectionPlace, section: bytes, kind: int) -> Grafted:
    draft, headers, size = cleared(elf), Headers(elf), len(section)
    draft.write(place.offset, section)
    headers.segments = _segments(headers.segments, place, size)
    if place.section is not None:
        name = int(headers.sections["name_offset"][place.section])
        where = (place.address, place.offset, size)
        headers.sections[place.section] = (name, kind, layout.SHF_ALLOC, *where, 0, 0, SECTION_ALIGNMENT, 0)
    removed = [index for index in removed_sections(elf) if index != place.section]
    remove_sections(elf, headers, draft, removed)
    write_over(Headers(elf), headers, draft)
    return Grafted(draft.parts(), place.address, place.offset, _notes(elf))


def _notes(elf: ElfFile) -> list[str]:
    """What is lost besides the former section."""
    notes, count = [], len(sframe_sections(elf))
    if count > 1:
        notes.append(f"one .sframe section takes the place of {count}")
    if len(removed_sections(elf)) > count:
        notes.append("the relocations that the linker kept for .sframe no longer fit, and are gone")
    return notes


def _segments(table: Records, place: _SectionPlace, size: int) -> Records:
    """One PT_GNU_SFRAME, which may have been unused; others go."""
    ours = np.flatnonzero(table["type"] == layout.PT_GNU_SFRAME)
    chosen = [*ours, *np.flatnonzero(table["type"] == layout.PT_NULL)][0]
    where = (place.offset, place.address, place.address, size, size)
    table[chosen] = (layout.PT_GNU_SFRAME, layout.PF_R, *where, SECTION_ALIGNMENT)
    return np.delete(table, ours[1:])


def _find_place(elf: ElfFile, size: int) -> _SectionPlace | None:
    """The roomiest place among those of the former sections, if it is roomy enough."""
    check_linked(elf)
    if not np.isin(elf.segments["type"], (layout.PT_GNU_SFRAME, layout.PT_NULL)).any() or find_record(elf):
        return None
    candidates = _candidates(elf)
    if not candidates:
        return None
    draft, others = cleared(elf), _others(elf)
    rooms = [_room(elf, draft, others, place) for place in candidates]
    best = int(np.argmax(rooms))
    return candidates[best] if size <= rooms[best] else None


def _candidates(elf: ElfFile) -> list[_SectionPlace]:
    """The largest of the former sections; without section headers of the segments."""
    if len(elf.sections):
        found = [_SectionPlace(index, *_where(elf.sections[index], "addr", "size")) for index in sframe_sections(elf)]
    else:
        ours = elf.segments[elf.segments["type"] == layout.PT_GNU_SFRAME]
        found = [_SectionPlace(None, *_where(one, "vaddr", "filesz")) for one in ours]
    found = [one for one in found if one.address % SECTION_ALIGNMENT == 0]
    return sorted(found, key=lambda one: one.size, reverse=True)[:_MOST_CANDIDATES]


def _where(header: np.void, address: str, size: str) -> tuple[int, int, int]:
    return int(header["offset"]), int(header[address]), int(header[size])


def _others(elf: ElfFile) -> list[FileBlock]:
    """What else stands in the file."""
    headers, former = Headers(elf), set(removed_sections(elf))
    table = headers.segments_offset
    found = [FileBlock(table, table + SEGMENT_SIZE * len(headers.segments))]
    for piece in pieces(elf, headers):
        ours = any(elf.segments["type"][index] == layout.PT_GNU_SFRAME for index in piece.segments)
        if piece.start < piece.end and not ours and not former.intersection(piece.sections):
            found.append(piece)
    return found


def _room(elf: ElfFile, draft: Draft, others: list[FileBlock], place: _SectionPlace) -> int:
    """How many bytes the section can have there; -1 if it is not loaded from there."""
    start, end = place.offset, place.offset + place.size
    limit = -1
    for load in elf.segments[elf.segments["type"] == layout.PT_LOAD]:
        low, size = int(load["offset"]), int(load["filesz"])
        if low <= start and end <= low + size <= len(elf.data) and place.address - start == int(load["vaddr"]) - low:
            limit = low + size
    if place.section is None:
        limit = min(limit, end)  # what follows is not known
    for other in others:
        around = other.segments and other.start <= start and end <= other.end
        if start < other.end and not around:
            limit = min(limit, max(other.start, start))
    former = draft.read(start, max(limit - start, 0))
    return len(former) - len(former.lstrip(b"\0")) if limit >= start else -1
