"""The record that `add` leaves in a file, by which `drop` gives the former file back to the byte.

It says where the former file lies in the new one and what stood in the places that were written over. It lies right
before the section headers, or at the end of a file that has none; no header names it, so that every program that
lays the file out anew loses it. A checksum over the headers, these places and the record itself tells whether somebody
else has changed them since: then the record is void.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from walkback.elf.write import SECTION_SIZE, SEGMENT_SIZE, Draft, Headers, align

if TYPE_CHECKING:
    from collections.abc import Iterable

    from walkback.elf import ElfFile
    from walkback.elf.write import Part, Tail

SECTION_ALIGNMENT = 8
"""Of the section headers, and of the section."""
_MAGIC = b"walkback graft 2"
_PLACE = struct.Struct("<QQ")
_END = struct.Struct("<QQII16s")
"""Where the former file begins in this one, its size, the number of places, the checksum, and the magic. Before it
stand the places, each with offset and size, and before them what was there."""


@dataclass(frozen=True, slots=True)
class Record:
    """The former file: where it is, and what it had in the places that were written over."""

    start: int
    size: int
    former: tuple[tuple[int, bytes], ...]

    @classmethod
    def of(cls, draft: Draft, start: int) -> Record:
        """The record of a former file that the new one holds from `start` on."""
        former = tuple((offset, bytes(draft.data[offset : offset + len(now)])) for offset, now in draft.patches)
        return cls(start, len(draft.data), former)

    @property
    def encoded_size(self) -> int:
        """How many bytes `encode` makes."""
        return sum(len(old) + _PLACE.size for _, old in self.former) + _END.size

    def encode(self, headers: Headers, draft: Draft) -> bytes:
        """The bytes to be put before the section headers."""
        tables = (headers.header_bytes(), headers.segment_bytes(), headers.section_bytes())
        places = b"".join(_PLACE.pack(offset, len(old)) for offset, old in self.former)
        body = b"".join(old for _, old in self.former) + places
        span = _PLACE.pack(self.start, self.size)
        checksum = _checksum((*tables, *(now for _, now in draft.patches), body, span))
        return body + _END.pack(self.start, self.size, len(self.former), checksum, _MAGIC)

    def restore(self, data: memoryview) -> list[Part]:
        """The former file, out of the one that the record was found in."""
        draft = Draft(data[self.start : self.start + self.size])
        for offset, old in self.former:
            draft.write(offset, old)
        return draft.parts()


def finish(headers: Headers, draft: Draft, tail: Tail, names: bytes, segments_offset: int, start: int = 0) -> None:
    """Put the names of sections, the record and the section headers behind, and say so in the ELF header.

    The former file begins at `start`; the ELF header is in the draft of it unless something comes before.
    """
    if headers.names:
        headers.sections["offset"][headers.names] = tail.append(names)
        headers.sections["size"][headers.names] = len(names)
    if not start:
        draft.write(0, headers.header_bytes())  # for the record to know the place
    record = Record.of(draft, start)
    end = align(tail.position + record.encoded_size, SECTION_ALIGNMENT)
    headers.place(segments_offset, end)
    if not start:
        draft.write(0, headers.header_bytes())
    tail.skip_to(end - record.encoded_size)
    tail.append(record.encode(headers, draft))
    tail.append(headers.section_bytes())


def find_record(elf: ElfFile) -> Record | None:
    """The record of this file, if it has one that holds."""
    data, headers = elf.data, Headers(elf)
    end = headers.sections_offset if len(headers.sections) else len(data)
    if not _END.size <= end <= len(data):
        return None
    start, size, count, checksum, magic = _END.unpack_from(data, end - _END.size)
    if magic != _MAGIC or start + size > end:
        return None
    places_at = end - _END.size - count * _PLACE.size
    if places_at < start + size:
        return None
    places = [_PLACE.unpack_from(data, places_at + index * _PLACE.size) for index in range(count)]
    position = places_at - sum(length for _, length in places)
    if position < start + size or not _in_order(places, size):
        return None
    body, span = data[position : end - _END.size], _PLACE.pack(start, size)
    former = []
    for offset, length in places:
        former.append((offset, bytes(data[position : position + length])))
        position += length
    now = (data[start + offset : start + offset + length] for offset, length in places)
    if _checksum((*_stored_headers(elf, headers), *now, body, span)) != checksum:
        return None
    return Record(start, size, tuple(former))


def _in_order(places: list[tuple[int, int]], size: int) -> bool:
    end = 0
    for offset, length in places:
        if offset < end or offset + length > size:
            return False
        end = offset + length
    return True


def _stored_headers(elf: ElfFile, headers: Headers) -> Iterable[Part]:
    segments, sections = headers.segments_offset, headers.sections_offset
    return (
        headers.header_bytes(),
        elf.data[segments : segments + SEGMENT_SIZE * len(headers.segments)],
        elf.data[sections : sections + SECTION_SIZE * len(headers.sections)],
    )


def _checksum(parts: Iterable[Part]) -> int:
    value = 0
    for part in parts:
        value = zlib.crc32(part, value)
    return value
