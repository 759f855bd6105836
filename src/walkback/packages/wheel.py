"""Wheels: zip archives whose names say what they are.

The archive as in PKWARE's APPNOTE with the extensions for 64 bits, read by its central directory as installers do; the
name as in the packaging specification "Binary distribution format".
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import TYPE_CHECKING, Final

from walkback.base.decoders import STEP, Method
from walkback.base.errors import ElfError, UnreadableError
from walkback.packages.streams import Flow, MemoryStream, inflated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.packages.streams import MemoryBudget, Stream

_NAME: Final = re.compile(r"(?:.*/)?([^-/]+)-([^-/]+)(?:-[0-9][^-/]*)?-[^-/]+-[^-/]+-([^-/]+)\.whl", re.DOTALL)

_END: Final = struct.Struct("<4s8xIIH")
_END_MAGIC: Final = b"PK\5\6"
_LONGEST_COMMENT: Final = 0xFFFF
_LOCATOR: Final = struct.Struct("<4s4xQ4x")
_LOCATOR_MAGIC: Final = b"PK\6\7"
_END_64: Final = struct.Struct("<4s36xQQ")
_END_64_MAGIC: Final = b"PK\6\6"
_ENTRY: Final = struct.Struct("<4s4xHH4xIIIHHH8xI")
_ENTRY_MAGIC: Final = b"PK\1\2"
_LOCAL: Final = struct.Struct("<4s22xHH")
_LOCAL_MAGIC: Final = b"PK\3\4"
_EXTRA: Final = struct.Struct("<HH")
_EXTRA_64: Final = 1
_IN_EXTRA: Final = 0xFFFFFFFF
_ENCRYPTED: Final = 1
_STORED, _DEFLATED = 0, 8


def package_of(name: str) -> tuple[str, str, str] | None:
    """The name, version and platform of the package; None for a name that is not made as it should be."""
    found = _NAME.fullmatch(name)
    return (found[1], found[2], found[3]) if found else None


def members(data: memoryview, room: MemoryBudget) -> Iterator[tuple[bytes, Stream]]:
    """The name and the contents of each file; what is wrong with one is found by who reads that one."""
    at, end = _directory(data)
    while at < end:
        room.take_member()
        if at + _ENTRY.size > end:
            raise ElfError("ends within its directory")
        magic, flags, method, crc, *sizes, name, extra, comment, offset = _ENTRY.unpack_from(data, at)
        if magic != _ENTRY_MAGIC:
            raise ElfError("has something else where an entry of its directory is expected")
        at += _ENTRY.size
        numbers = _large((sizes[1], sizes[0], offset), data[at + name : at + name + extra])
        try:
            stored = _stored(data, *numbers[1:])
            contents = _contents(stored, method, flags, room)
            if method == _DEFLATED:
                contents = Flow(_verified(contents, crc, numbers[0]), numbers[0])
        except UnreadableError as error:
            contents = MemoryStream(data[:0], failure=error)
        yield bytes(data[at : at + name]), contents
        at += name + extra + comment


def _directory(data: memoryview) -> tuple[int, int]:
    """Where the entries begin and end."""
    tail = bytes(data[-(_END.size + _LONGEST_COMMENT) :])
    place = _last_end(tail)
    _, size, start, _ = _END.unpack_from(tail, place)
    before = place - _LOCATOR.size
    if before >= 0 and tail.startswith(_LOCATOR_MAGIC, before):
        _, offset = _LOCATOR.unpack_from(tail, before)
        if offset + _END_64.size > len(data):
            raise ElfError("has a directory that begins behind its end")
        magic, size, start = _END_64.unpack_from(data, offset)
        if magic != _END_64_MAGIC:
            raise ElfError("has something else where its directory is said to be")
    if start + size > len(data):
        raise ElfError("has a directory that reaches beyond its end")
    return start, start + size


def _last_end(tail: bytes) -> int:
    """Where the last record of the archive begins, behind which there is room for its comment."""
    place = len(tail)
    while (place := tail.rfind(_END_MAGIC, 0, place + len(_END_MAGIC) - 1)) >= 0:
        if place + _END.size <= len(tail):
            *_, comment = _END.unpack_from(tail, place)
            if place + _END.size + comment <= len(tail):
                return place
    raise ElfError("is a zip archive without a directory; it may be cut off")


def _large(numbers: tuple[int, int, int], extra: memoryview) -> list[int]:
    """The size of the contents, the size as stored, and the offset; what has no room in 32 bits stands in `extra`."""
    found = list(numbers)
    while len(extra) >= _EXTRA.size:
        kind, length = _EXTRA.unpack_from(extra)
        field, extra = extra[_EXTRA.size : _EXTRA.size + length], extra[_EXTRA.size + length :]
        if kind == _EXTRA_64:
            for index, number in enumerate(numbers):
                if number == _IN_EXTRA and len(field) >= 8:
                    found[index], field = int.from_bytes(field[:8], "little"), field[8:]
    return found


def _stored(data: memoryview, size: int, offset: int) -> MemoryStream:
    if offset + _LOCAL.size > len(data):
        raise ElfError("begins behind the end of the archive")
    magic, name, extra = _LOCAL.unpack_from(data, offset)
    if magic != _LOCAL_MAGIC:
        raise ElfError("has something else where its header is expected")
    start = offset + _LOCAL.size + name + extra
    if start + size > len(data):
        raise ElfError("reaches beyond the end of the archive")
    return MemoryStream(data[start : start + size])


def _contents(stored: MemoryStream, method: int, flags: int, room: MemoryBudget) -> Stream:
    if flags & _ENCRYPTED:
        raise UnreadableError("is encrypted")
    if method == _DEFLATED:
        return inflated(Method.DEFLATE, stored, room)
    if method != _STORED:
        raise UnreadableError(f"is compressed by a method that wheels do not have ({method})")
    # Members may lie over each other, and so be more than the archive.
    room.take(stored.left)
    return stored


def _verified(contents: Stream, crc: int, size: int) -> Iterator[memoryview]:
    found, left = 0, size
    while piece := contents.some(min(STEP, left + 1)):
        found = zlib.crc32(piece, found)
        left -= len(piece)
        if left < 0:
            break
        yield memoryview(piece)
    if left or found != crc:
        raise ElfError("is not what the archive's directory says of it: its size or checksum is wrong")
