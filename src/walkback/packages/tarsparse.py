"""Sparse files in tar archives: the four ways of GNU tar to say where the bytes belong that it stored.

As in GNU tar's manual, "Storing Sparse Files": the old format has the places in the header and in blocks behind it,
the pax formats 0.0 and 0.1 in records, and 1.0 in front of the bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from walkback.base.dataclass import dataclass
from walkback.base.decoders import STEP
from walkback.base.errors import ElfError
from walkback.packages.streams import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from walkback.packages.streams import Buffer, MemoryBudget, Stream

    Records = list[tuple[bytes, bytes]]

BLOCK: Final = 512
KEYS: Final = frozenset(
    b"GNU.sparse." + name for name in (b"major", b"realsize", b"size", b"map", b"offset", b"numbytes")
)
"""The keys of a pax header about a sparse file."""
_MOST_PLACES: Final = 1 << 16
_ENTRY: Final = 24
_OCTAL: Final = re.compile(rb"[ \0]*([0-7]*)[ \0]*")
_ZEROS: Final = bytes(STEP)


@dataclass(frozen=True, slots=True)
class SparseMap:
    """Where the stored bytes belong in the file, as offsets and lengths, and how long the file is."""

    parts: list[tuple[int, int]]
    size: int


def number(field: bytes) -> int:
    """A number in a header: octal digits, or after a byte with the highest bit set the number itself."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = _OCTAL.fullmatch(field)
    if digits is None:
        raise ElfError("has an unreadable number in a header")
    return int(digits[1] or b"0", 8)


def in_header(header: bytes, stream: Stream) -> SparseMap:
    """The old format; reads the blocks behind the header."""
    size = number(header[483:495])
    parts = list(_entries(header[386 : 386 + 4 * _ENTRY]))
    more = header[482]
    while more:
        if len(parts) > _MOST_PLACES:
            raise _too_many()
        block = stream.read(BLOCK)
        parts += _entries(block[: 21 * _ENTRY])
        more = block[504]
    return SparseMap(parts, size)


def _entries(table: bytes) -> Iterator[tuple[int, int]]:
    for at in range(0, len(table), _ENTRY):
        if not table[at]:
            return
        yield number(table[at : at + 12]), number(table[at + 12 : at + _ENTRY])


def in_records(records: Records, stored: Stream) -> SparseMap | None:
    """The pax formats, or None if this is no sparse file; reads what stands in front of the bytes."""
    known = dict(records)
    if b"GNU.sparse.major" in known:
        return SparseMap(_pairs(_map_in_front(stored)), decimal(known.get(b"GNU.sparse.realsize", b"")))
    if b"GNU.sparse.size" not in known:
        return None
    if b"GNU.sparse.map" in known:
        numbers = known[b"GNU.sparse.map"].split(b",")
    else:
        numbers = [value for key, value in records if key in {b"GNU.sparse.offset", b"GNU.sparse.numbytes"}]
    return SparseMap(_pairs([decimal(text) for text in numbers]), decimal(known[b"GNU.sparse.size"]))


def _map_in_front(stored: Stream) -> list[int]:
    """A number a line, and first how many pairs there are; up to the end of a block."""
    text, wanted, lines = bytearray(), 1, 0
    while lines < wanted:
        block = stored.read(BLOCK)
        text += block
        lines += block.count(b"\n")
        if wanted == 1 and lines:
            count = decimal(bytes(text).partition(b"\n")[0])
            if count > _MOST_PLACES:
                raise _too_many()
            wanted = 1 + 2 * count
        elif len(text) > 64 * _MOST_PLACES:
            raise _too_many()
    return [decimal(line) for line in bytes(text).split(b"\n")[1:wanted]]


def decimal(text: bytes) -> int:
    """A number in a pax header."""
    if not text.isdigit() or len(text) > 19:
        raise ElfError("has an unreadable number in a pax header")
    return int(text)


def _pairs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    if len(numbers) % 2 or len(numbers) > 2 * _MOST_PLACES:
        raise _too_many()
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _too_many() -> ElfError:
    return ElfError("has a sparse file in too many pieces, or half of one")


def expanded(stored: Stream, places: SparseMap, room: MemoryBudget) -> Flow:
    """The file with its holes, which are bytes that come out of nothing."""
    return Flow(_expanded(stored, places, room.of(stored)), places.size)


def _expanded(stored: Stream, places: SparseMap, room: MemoryBudget) -> Iterator[Buffer]:
    position = 0
    for offset, length in [*places.parts, (places.size, 0)]:
        if offset < position or offset + length > places.size:
            raise ElfError("has a sparse file with pieces out of their order or behind its end")
        for start in range(position, offset, STEP):
            zeros = _ZEROS[: offset - start]
            room.take(len(zeros))
            yield zeros
        part = stored.part(length)
        while piece := part.some(STEP):
            yield piece
        position = offset + length
