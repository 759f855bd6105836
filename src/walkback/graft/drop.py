"""Taking `.sframe` out of a file.

What `add` put in is undone to the byte, by the record that it left. Otherwise - the section came from a linker, or
another program laid the file out anew - the section and its relocations lose their headers, their bytes become
zeros, PT_GNU_SFRAME goes, and so does a PT_LOAD that held nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.elf import layout
from walkback.elf.write import SECTION_SIZE, SEGMENT_SIZE, Draft, Headers
from walkback.errors import ElfError, GraftError, MissingError
from walkback.graft.record import find_record
from walkback.graft.remove import remove_sections

if TYPE_CHECKING:
    from walkback.elf import ElfFile
    from walkback.elf.file import Table
    from walkback.elf.write import Part

_RELOCATIONS = (layout.SHT_REL, layout.SHT_RELA, layout.SHT_CREL)


def is_grafted(elf: ElfFile) -> bool:
    """Whether there is anything for `drop` to take out."""
    return len(_sections(elf)) > 0 or layout.PT_GNU_SFRAME in elf.segments["type"]


def drop(elf: ElfFile) -> list[Part]:
    """A copy of a file without its `.sframe` section, as buffers that follow each other."""
    if not is_grafted(elf):
        raise MissingError("there is no .sframe section to take out", file=elf.name)
    record = find_record(elf)
    if record is not None:
        return record.restore(elf.data)
    draft, headers = Draft(elf.data), Headers(elf)
    sections = _sections(elf)
    for start, size in _contents(elf, sections):
        if start + size > len(elf.data):
            raise ElfError("the .sframe section reaches beyond the end of the file", file=elf.name, offset=start)
        if start < 64:
            raise GraftError("the .sframe section lies over the ELF header", file=elf.name)
        draft.write(start, bytes(size))
    headers.segments = _other_segments(elf, sections)
    remove_sections(elf, headers, draft, [*sections, *_relocations(elf, sections)])
    _write_tables(elf, headers, draft)
    return draft.parts()


def _sections(elf: ElfFile) -> list[int]:
    """By type, or by name where binutils before 2.45 called it PROGBITS."""
    found = elf.sections_of_type(layout.SHT_GNU_SFRAME)
    named = [index for index in elf.sections_named(".sframe") if elf.sections["type"][index] == layout.SHT_PROGBITS]
    return sorted({*found, *named})


def _relocations(elf: ElfFile, sections: list[int]) -> list[int]:
    about = np.isin(elf.sections["type"], _RELOCATIONS) & np.isin(elf.sections["info"], sections)
    return [int(index) for index in np.flatnonzero(about)]


def _contents(elf: ElfFile, sections: list[int]) -> list[tuple[int, int]]:
    """The places in the file of the sections; of the segment where there are no sections."""
    if not len(elf.sections):
        ours = elf.segments[elf.segments["type"] == layout.PT_GNU_SFRAME]
        return [(int(one["offset"]), int(one["filesz"])) for one in ours]
    places = elf.sections[[*sections, *_relocations(elf, sections)]]
    stored = places[places["type"] != layout.SHT_NOBITS]
    return [(int(one["offset"]), int(one["size"])) for one in stored]


def _other_segments(elf: ElfFile, sections: list[int]) -> Table:
    """The program headers that stay."""
    ours = elf.segments["type"] == layout.PT_GNU_SFRAME
    places = _contents(elf, sections)
    for index in np.flatnonzero(elf.segments["type"] == layout.PT_LOAD).tolist():
        _, _, start, _, _, size, in_memory, _ = elf.segments[index].item()
        here = [place for place in places if start <= place[0] and sum(place) <= start + size]
        ours[index] = bool(here) and size == in_memory and not _holds_more(elf, index, here)
    rest: Table = elf.segments[~ours].copy()
    return rest


def _holds_more(elf: ElfFile, load: int, ours: list[tuple[int, int]]) -> bool:
    """Whether a PT_LOAD brings anything else than our sections: other bytes than zeros."""
    start = int(elf.segments["offset"][load])
    contents = bytearray(elf.segment_data(load))
    for offset, size in ours:
        contents[offset - start : offset - start + size] = bytes(size)
    return any(contents)


def _write_tables(elf: ElfFile, headers: Headers, draft: Draft) -> None:
    """The shorter tables where the former ones are; what they leave becomes zeros."""
    headers.place(headers.segments_offset, headers.sections_offset)
    former = Headers(elf)
    segments, sections = headers.segment_bytes(), headers.section_bytes()
    draft.write(headers.segments_offset, segments.ljust(SEGMENT_SIZE * len(former.segments), b"\0"))
    draft.write(headers.sections_offset, sections.ljust(SECTION_SIZE * len(former.sections), b"\0"))
    draft.write(0, headers.header_bytes())
