"""Notes (gABI, chapter "Note Section"): in sections of type SHT_NOTE and segments of type PT_NOTE.

The gABI wants the words of 64-bit files to have 8 bytes and be aligned so; all producers write words of 4
bytes. They align name and contents to 4 bytes, or to 8 where the section or segment is aligned to 8.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.dataclass import dataclass
from walkback.base.errors import ElfError
from walkback.elf import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from walkback.elf.file import ElfFile

_HEADERS: dict[ByteOrder, struct.Struct] = {"little": struct.Struct("<III"), "big": struct.Struct(">III")}
"""Sizes of name and contents, and the type."""


@dataclass(frozen=True, slots=True)
class Note:
    """One note."""

    name: str
    """Its owner, who decides what the type means; without its NUL."""
    type: int
    desc: memoryview
    offset: int
    """Where the note begins in the file."""


def read_notes(contents: memoryview, byteorder: ByteOrder, alignment: int, place: tuple[str, int]) -> Iterator[Note]:
    """The notes one after the other; `place` is the file and the offset in it, `alignment` that of the section."""
    header = _HEADERS[byteorder]
    file, offset = place
    mask = 7 if alignment == 8 else 3
    position = 0
    while position + header.size <= len(contents):
        name_size, desc_size, kind = header.unpack_from(contents, position)
        name = position + header.size
        desc = (name + name_size + mask) & ~mask
        end = desc + desc_size
        if end > len(contents):
            raise ElfError("a note reaches beyond the end of its section", file=file, offset=offset + position)
        text = bytes(contents[name : name + name_size]).removesuffix(b"\0").decode(errors="backslashreplace")
        yield Note(text, kind, contents[desc:end], offset + position)
        position = (end + mask) & ~mask
    if any(contents[position:]):
        raise ElfError("a note ends within its header", file=file, offset=offset + position)


def notes_of(elf: ElfFile) -> Iterator[Note]:
    """The notes of all sections of a file; of all segments where no section has notes."""
    headers, contents, alignment = elf.sections, elf.section_data, "addralign"
    numbers = elf.sections_of_type(layout.SHT_NOTE)
    if not numbers:
        headers, contents, alignment = elf.segments, elf.segment_data, "align"
        numbers = np.flatnonzero(headers["type"] == layout.PT_NOTE).tolist()
    for number in numbers:
        place = elf.name, int(headers["offset"][number])
        yield from read_notes(contents(number), elf.byteorder, int(headers[alignment][number]), place)


def find_build_id(notes: Iterable[Note]) -> bytes | None:
    """The contents of the first note of type NT_GNU_BUILD_ID."""
    for note in notes:
        if note.type == layout.NT_GNU_BUILD_ID and note.name == "GNU":
            return bytes(note.desc)
    return None
