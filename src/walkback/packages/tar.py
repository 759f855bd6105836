"""The regular files in a tar archive: POSIX (ustar and pax), GNU and the older ones, with the sparse files of GNU tar.

As in POSIX.1-2017, "pax Interchange Format" and "ustar Interchange Format", and in GNU tar's manual, "Basic Tar
Format". Hard links have no bytes of their own; the file that they name comes before them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from walkback.base.errors import ElfError
from walkback.packages import tarsparse
from walkback.packages.kinds import is_tar_header
from walkback.packages.streams import Link
from walkback.packages.tarsparse import BLOCK, decimal, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from walkback.packages.streams import MemoryBudget, Stream
    from walkback.packages.tarsparse import Records

_MOST_EXTENSION: Final = 1 << 20
"""Names, attributes and maps of sparse files are far smaller."""
_REGULAR: Final = frozenset({b"0", b"\0", b"7"})
_LINK: Final = b"1"
_WITHOUT_DATA: Final = frozenset({b"1", b"2", b"3", b"4", b"5", b"6"})
"""Links, devices, folders and FIFOs: what they have in the field for the size says nothing."""
_ABOUT_OTHERS: Final = frozenset({b"L", b"K", b"x", b"X", b"g"})
_LENGTH: Final = re.compile(rb"([0-9]{1,8}) ")
_KEYS: Final = frozenset({b"path", b"linkpath", b"size", b"GNU.sparse.name"})
"""The keys of a pax header about any member."""


def members(stream: Stream, room: MemoryBudget) -> Iterator[tuple[bytes, Stream | Link]]:
    """The name and the contents of each regular file; holes of sparse files take of the room, too."""
    name: bytes | None = None
    target: bytes | None = None
    records: Records = []
    common: dict[bytes, bytes] = {}
    about_next: dict[bytes, bytes] = {}
    while any(header := _header(stream)):
        room.take_member()
        kind = header[156:157]
        known = common | about_next
        size = decimal(known[b"size"]) if b"size" in known else number(header[124:136])
        places = tarsparse.in_header(header, stream) if kind == b"S" else None
        stored = stream.part(0 if kind in _WITHOUT_DATA else size)
        if kind in _ABOUT_OTHERS:
            about = _about(stored, size)
            if kind == b"L":
                name = about.partition(b"\0")[0]
            elif kind == b"K":
                target = about.partition(b"\0")[0]
            elif kind in {b"x", b"X"}:
                records = list(_records(about))
                about_next = _about_any(records)
            elif kind == b"g":
                common |= _about_any(_records(about))
        else:
            own = known.get(b"GNU.sparse.name") or known.get(b"path") or name or _name(header)
            if kind in _REGULAR or places:
                places = places or tarsparse.in_records(records, stored)
                yield own, tarsparse.expanded(stored, places, room) if places else stored
            elif kind == _LINK:
                yield own, Link(known.get(b"linkpath") or target or header[157:257].partition(b"\0")[0])
            name, target, records, about_next = None, None, [], {}
        stored.drain()
        stream.read(-size % BLOCK if kind not in _WITHOUT_DATA else 0)
    stream.drain()


def _header(stream: Stream) -> bytes:
    """The next header; nothing but zeros where the archive ends."""
    if not stream.peek(1):
        raise ElfError("ends without the mark of its end, so that something may be missing")
    header = stream.read(BLOCK)
    if any(header) and not is_tar_header(header):
        raise ElfError("has something else where the header of a member is expected")
    return header


def _name(header: bytes) -> bytes:
    name = header[:100].partition(b"\0")[0]
    # GNU's archives have other things where POSIX has the folder.
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _about(stored: Stream, size: int) -> bytes:
    """What a member says about the next one, or about all."""
    if size > _MOST_EXTENSION:
        raise ElfError(f"has {size} bytes about one member")
    return stored.read(size)


def _records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The records of a pax header that matter here."""
    at = 0
    while at < len(data) and data[at]:
        length = _LENGTH.match(data, at)
        end = at + int(length[1]) if length else 0
        if length is None or not length.end() < end <= len(data) or data[end - 1 : end] != b"\n":
            raise ElfError("has a broken record in a pax header")
        key, _, value = data[length.end() : end - 1].partition(b"=")
        if key in _KEYS or key in tarsparse.KEYS:
            yield key, value
        at = end


def _about_any(records: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The last value of each key about any member."""
    return {key: value for key, value in records if key in _KEYS}
