"""Taking `.sframe` out of a file.

What `add` put in is undone to the byte, by the record that it left. Otherwise - the section came from a linker, or
another program laid the file out anew - the section and its relocations lose their headers, their bytes become
zeros, PT_GNU_SFRAME goes, and so does a PT_LOAD that held nothing else.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import Records
from walkback.base.errors import ElfError, GraftError, MissingError
from walkback.elf import ElfFile, layout
from walkback.elf.sframe import sframe_sections
from walkback.elf.write import HEADER_SIZE, Draft, Headers, Part, write_over
from walkback.graft.numbering import RELOCATIONS, remove_sections
from walkback.graft.record import find_record


def is_grafted(elf: ElfFile) -> bool:
    """Whether there is anything for `drop` to take out."""
    return len(sframe_sections(elf)) > 0 or layout.PT_GNU_SFRAME in elf.segments["type"]


def is_recorded(elf: ElfFile) -> bool:
    """Whether `drop` gives back what was there before `add`."""
    return find_record(elf) is not None


def drop(elf: ElfFile) -> list[Part]:
    """A copy of a file without its `.sframe` section, as buffers that follow each other."""
    if not is_grafted(elf):
        raise MissingError("there is no .sframe section to take out", file=elf.name)
    record = find_record(elf)
    if record is not None:
        return record.restore(elf)
    draft, headers = cleared(elf), Headers(elf)
    headers.segments = _other_segments(elf, sframe_sections(elf))
    remove_sections(elf, headers, draft, removed_sections(elf))
    write_over(Headers(elf), headers, draft)
    return draft.parts()


def cleared(elf: ElfFile) -> Draft:
    """The file with zeros where its `.sframe` sections and their relocations are."""
    draft = Draft(elf.data)
    for start, size in _contents(elf, sframe_sections(elf)):
        if start + size > len(elf.data):
            raise ElfError("the .sframe section reaches beyond the end of the file", file=elf.name, offset=start)
        if start < HEADER_SIZE:
            raise GraftError("the .sframe section lies over the ELF header", file=elf.name)
        draft.write(start, bytes(size))
    return draft


def removed_sections(elf: ElfFile) -> list[int]:
    """The numbers of the sections that `drop` takes out: `.sframe` and its relocations."""
    sections = sframe_sections(elf)
    return [*sections, *_relocations(elf, sections)]


def _relocations(elf: ElfFile, sections: list[int]) -> list[int]:
    about = np.isin(elf.sections["type"], RELOCATIONS) & np.isin(elf.sections["info"], sections)
    return [int(index) for index in np.flatnonzero(about)]


def _contents(elf: ElfFile, sections: list[int]) -> list[tuple[int, int]]:
    """The places in the file of the sections; of the segment where there are no sections."""
    if not len(elf.sections):
        ours = elf.segments[elf.segments["type"] == layout.PT_GNU_SFRAME]
        return [(int(one["offset"]), int(one["filesz"])) for one in ours]
    places = elf.sections[[*sections, *_relocations(elf, sections)]]
    stored = places[places["type"] != layout.SHT_NOBITS]
    return [(int(one["offset"]), int(one["size"])) for one in stored]


def _other_segments(elf: ElfFile, sections: list[int]) -> Records:
    """The program headers that stay."""
    ours = elf.segments["type"] == layout.PT_GNU_SFRAME
    places = _contents(elf, sections)
    for index in np.flatnonzero(elf.segments["type"] == layout.PT_LOAD).tolist():
        _, _, start, _, _, size, in_memory, _ = elf.segments[index].item()
        here = [place for place in places if start <= place[0] and sum(place) <= start + size]
        ours[index] = bool(here) and size == in_memory and not _holds_more(elf, index, here)
    rest: Records = elf.segments[~ours].copy()
    return rest


def _holds_more(elf: ElfFile, load: int, ours: list[tuple[int, int]]) -> bool:
    """Whether a PT_LOAD brings anything else than our sections: other bytes than zeros."""
    start = int(elf.segments["offset"][load])
    contents = bytearray(elf.segment_data(load))
    for offset, size in ours:
        contents[offset - start : offset - start + size] = bytes(size)
    return any(contents)
