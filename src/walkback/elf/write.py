"""Writing ELF files: a changed copy of one as a list of buffers, in which what did not change is not copied.

`Draft` is the contents with places written over, `Headers` the three kinds of header as tables to change, and
`Tail` what is put behind. Follows the System V gABI, with extended section numbering.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.errors import GraftError
from walkback.elf import layout

if TYPE_CHECKING:
    from walkback.elf.file import ElfFile, Table
    from walkback.elf.opened import Contents

Part = bytes | memoryview

HEADER_SIZE = 64
SEGMENT_SIZE = 56
SECTION_SIZE = 64


def align(value: int, alignment: int) -> int:
    """The next multiple of the alignment; 0 and 1 ask for nothing."""
    return -(-value // alignment) * alignment if alignment > 1 else value


class Draft:
    """The bytes of a file with places written over."""

    def __init__(self, data: Contents) -> None:
        self.data = data
        self._starts: list[int] = []
        self._patches: list[bytearray] = []

    def write(self, offset: int, contents: bytes) -> None:
        """Overwrite the contents at an offset; places that overlap or touch become one."""
        end = offset + len(contents)
        first, last = self._touching(offset, end)
        if first == last:
            self._starts.insert(first, offset)
            self._patches.insert(first, bytearray(contents))
            return
        # The first of them grows where it is, or places in a row would each copy all those before.
        patch, rest = self._patches[first], bytearray()
        if last - first > 1:
            rest = self._patches[last - 1][end - self._starts[last - 1] :]
        if offset < self._starts[first]:
            patch[:0] = bytes(self._starts[first] - offset)
            self._starts[first] = offset
        start = self._starts[first]
        patch[offset - start : end - start] = contents
        patch += rest
        del self._starts[first + 1 : last], self._patches[first + 1 : last]

    def _touching(self, start: int, end: int) -> tuple[int, int]:
        """The patches that touch a range: the first, and the one behind the last."""
        first = bisect_left(self._starts, start)
        if first and self._starts[first - 1] + len(self._patches[first - 1]) >= start:
            first -= 1
        return first, bisect_right(self._starts, end, lo=first)

    def read(self, offset: int, size: int) -> bytes:
        """The bytes as they are now."""
        now = bytearray(self.data[offset : offset + size])
        for index in range(*self._touching(offset, offset + size)):
            start, patch = self._starts[index], self._patches[index]
            low, high = max(start, offset), min(start + len(patch), offset + size)
            if low < high:
                now[low - offset : high - offset] = patch[low - start : high - start]
        return bytes(now)

    @property
    def patches(self) -> list[tuple[int, bytes]]:
        """The overwritten places in order, with their new contents."""
        return list(zip(self._starts, map(bytes, self._patches), strict=True))

    def parts(self, first: int = 0, last: int | None = None) -> list[Part]:
        """The contents from one offset to another, or to the end."""
        last = len(self.data) if last is None else last
        found: list[Part] = []
        position = first
        for start, patch in self.patches:
            low, high = max(start, first), min(start + len(patch), last)
            if low < high:
                found += [self.data[position:low], patch[low - start : high - start]]
                position = high
        found.append(self.data[position:last])
        return [part for part in found if len(part)]


class Headers:
    """The headers of a file, to be changed and written."""

    def __init__(self, elf: ElfFile) -> None:
        self.byteorder = elf.byteorder
        self.header: Table = np.frombuffer(elf.header, layout.ELF_HEADER[elf.byteorder], 1).copy()
        self.segments: Table = elf.segments.copy()
        self.sections: Table = elf.sections.copy()
        self.names = int(self.header["shstrndx"][0])
        if self.names == layout.SHN_XINDEX and len(self.sections):
            self.names = int(self.sections["link"][0])
        if not 0 <= self.names < len(self.sections):
            self.names = layout.SHN_UNDEF

    @property
    def segments_offset(self) -> int:
        """Where the program headers are in the file."""
        return int(self.header["phoff"][0])

    @property
    def sections_offset(self) -> int:
        """Where the section headers are in the file."""
        return int(self.header["shoff"][0])

    def place(self, segments_offset: int, sections_offset: int) -> None:
        """Say in the ELF header where the tables are, how long they are, and where the names of sections are."""
        count = len(self.sections)
        if len(self.segments) >= layout.PN_XNUM:
            raise GraftError("there are too many program headers for another one")
        self.header["phoff"], self.header["phnum"] = segments_offset, len(self.segments)
        if not count:
            return
        self.header["shoff"] = sections_offset
        wide, far = count >= layout.SHN_LORESERVE, self.names >= layout.SHN_LORESERVE
        self.header["shnum"] = 0 if wide else count
        self.header["shstrndx"] = layout.SHN_XINDEX if far else self.names
        self.sections["size"][0] = count if wide else 0
        self.sections["link"][0] = self.names if far else 0

    def header_bytes(self) -> bytes:
        """The ELF header."""
        return self.header.tobytes()

    def segment_bytes(self) -> bytes:
        """The program headers."""
        return self.segments.astype(layout.PROGRAM_HEADER[self.byteorder]).tobytes()

    def section_bytes(self) -> bytes:
        """The section headers."""
        return self.sections.astype(layout.SECTION_HEADER[self.byteorder]).tobytes()


def write_over(former: Headers, headers: Headers, draft: Draft) -> None:
    """Put tables that are no longer than the former ones where those are; what they leave becomes zeros."""
    headers.place(headers.segments_offset, headers.sections_offset)
    itself = headers.segments["type"] == layout.PT_PHDR
    for size in ("filesz", "memsz"):
        headers.segments[size][itself] = SEGMENT_SIZE * len(headers.segments)
    segments, sections = headers.segment_bytes(), headers.section_bytes()
    draft.write(headers.segments_offset, segments.ljust(SEGMENT_SIZE * len(former.segments), b"\0"))
    draft.write(headers.sections_offset, sections.ljust(SECTION_SIZE * len(former.sections), b"\0"))
    draft.write(0, headers.header_bytes())


class Tail:
    """What is put behind a file of some length, with the offset of each part."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.parts: list[Part] = []

    def append(self, contents: Part, alignment: int = 1) -> int:
        """Put these bytes at the next multiple of the alignment; returns where that is."""
        self.skip_to(align(self.position, alignment))
        offset = self.position
        self.parts.append(contents)
        self.position += len(contents)
        return offset

    def skip_to(self, position: int) -> None:
        """Fill up with zeros."""
        if position > self.position:
            self.parts.append(bytes(position - self.position))
            self.position = position
