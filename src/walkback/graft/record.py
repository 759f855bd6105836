"""The record that `add` leaves in a file, by which `drop` gives the former file back to the byte.

It says where the former file lies in the new one, what stood in the places that were written over, and which number
each section had. It lies right before the section headers, or at the end of a file that has none; no header names it,
so that every program that lays the file out anew loses it. A checksum over the headers, these places and the record
itself shows whether somebody else has changed them since: then the record is void.

Symbol tables can be most of a file, and in them only the numbers of sections change. So they are not kept: the former
numbers are put back.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from walkback.base.arrays import U32
from walkback.base.dataclass import dataclass
from walkback.elf import ElfFile
from walkback.elf.write import SECTION_SIZE, SEGMENT_SIZE, Draft, Headers, Part, Tail, align
from walkback.graft.numbering import renumber

SECTION_ALIGNMENT = 8
"""Of the section headers, and of the section."""
_MAGIC = b"walkback graft 3"
_PLACE = struct.Struct("<QQ")
_NUMBER = np.dtype("<u4")
_END = struct.Struct("<QQIII16s")
"""Where the former file begins in this one, its size, the number of places, the number of sections if their order has
changed, the checksum, and the magic. Before it stand the former numbers of these sections, before them the places, each
with offset and size, and before them what was there."""


@dataclass(frozen=True, slots=True)
class Order:
    """Sections in another order than in the former file."""

    numbers: U32
    """The number that each section had; one more for each that is new."""
    renumbered: tuple[tuple[int, int], ...] = ()
    """Where the former file has symbol tables that differ by these numbers alone, but for `changed`: start and end."""
    changed: tuple[tuple[int, int], ...] = ()
    """What else has changed in those."""


_SAME_ORDER = Order(np.zeros(0, np.uint32))


@dataclass(frozen=True, slots=True)
class Record:
    """The former file: where it is, and what it had in the places that were written over."""

    start: int
    size: int
    former: tuple[tuple[int, bytes], ...]
    numbers: U32
    """The former number of each section; empty if the order is the same."""

    @classmethod
    def of(cls, draft: Draft, start: int, order: Order) -> Record:
        """The record of a former file that the new one holds from `start` on."""
        patches = [(offset, offset + len(now)) for offset, now in draft.patches]
        places = sorted([*_without(patches, order.renumbered), *order.changed])
        former = tuple((low, bytes(draft.data[low:high])) for low, high in places)
        return cls(start, len(draft.data), former, order.numbers)

    @property
    def encoded_size(self) -> int:
        """How many bytes `encode` makes."""
        return sum(len(old) + _PLACE.size for _, old in self.former) + self.numbers.nbytes + _END.size

    def encode(self, headers: Headers, draft: Draft) -> bytes:
        """The bytes to be put before the section headers."""
        tables = (headers.header_bytes(), headers.segment_bytes(), headers.section_bytes())
        places = b"".join(_PLACE.pack(offset, len(old)) for offset, old in self.former)
        body = b"".join(old for _, old in self.former) + places + self.numbers.astype(_NUMBER).tobytes()
        span = _PLACE.pack(self.start, self.size)
        now = (draft.read(offset, len(old)) for offset, old in self.former)
        checksum = _checksum((*tables, *now, body, span))
        return body + _END.pack(self.start, self.size, len(self.former), len(self.numbers), checksum, _MAGIC)

    def restore(self, elf: ElfFile) -> list[Part]:
        """The former file, out of the one that the record was found in."""
        draft = Draft(elf.data)
        if len(self.numbers):
            renumber(elf, Headers(elf), draft, self.numbers)
        for offset, old in self.former:
            draft.write(self.start + offset, old)
        return draft.parts(self.start, self.start + self.size)


def _without(places: Iterable[tuple[int, int]], left_out: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What remains of places; these do not overlap each other, and neither do those that are left out."""
    ahead = deque(sorted(left_out))
    for low, high in places:
        while ahead and ahead[0][1] <= low:
            ahead.popleft()
        start = low
        for first, last in ahead:
            if first >= high:
                break
            if start < first:
                yield start, first
            start = last
        if start < high:
            yield start, high


def finish(
    headers: Headers,
    draft: Draft,
    tail: Tail,
    names: bytes,
    segments_offset: int,
    start: int = 0,
    order: Order = _SAME_ORDER,
) -> None:
    """Put the names of sections, the record and the section headers behind, and say so in the ELF header.

    The former file begins at `start`; the ELF header is in the draft of it unless something comes before.
    """
    if headers.names:
        headers.sections["offset"][headers.names] = tail.append(names)
        headers.sections["size"][headers.names] = len(names)
    if not start:
        draft.write(0, headers.header_bytes())  # for the record to know the place
    record = Record.of(draft, start, order)
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
    start, size, count, sections, checksum, magic = _END.unpack(data[end - _END.size : end])
    if magic != _MAGIC or start + size > end or sections not in {0, len(headers.sections)}:
        return None
    numbers_at = end - _END.size - sections * _NUMBER.itemsize
    places_at = numbers_at - count * _PLACE.size
    if places_at < start + size:
        return None
    places = list(_PLACE.iter_unpack(data[places_at:numbers_at]))
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
    numbers = np.frombuffer(data[numbers_at : end - _END.size], _NUMBER).astype(np.uint32)
    return Record(start, size, tuple(former), numbers)


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
