"""The regular files in the payload of an RPM: cpio's "new ASCII" format, and the one that RPM stripped down of it.

The headers of the first have all about a file, in hexadecimal digits (cpio's manual, "New ASCII Format"). Those of the
second, which RPM writes where a size needs more than 8 digits, and its version 6 always, have only the number that
the file has in the package's header. Of files that are hard links of each other the last one has the bytes.
"""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING, Final

from walkback.base.dataclass import dataclass
from walkback.base.errors import ElfError
from walkback.packages.streams import Link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from walkback.packages.streams import MemoryBudget, Stream

_NEW: Final = frozenset({b"070701", b"070702"})
_STRIPPED: Final = b"07070X"
_MAGIC: Final = 6
_FIELDS: Final = re.compile(rb"[0-9a-fA-F]*")
_LONGEST_NAME: Final = 1 << 16
_TRAILER: Final = b"TRAILER!!!"


@dataclass(frozen=True, slots=True)
class CpioEntry:
    """What is known of a file."""

    name: bytes
    mode: int
    size: int
    """How many bytes follow."""
    file: tuple[int, ...] | None
    """Device and inode, which hard links of each other have in common; None of what is known to have one name."""


def members(
    stream: Stream, room: MemoryBudget, entry: Callable[[int], CpioEntry]
) -> Iterator[tuple[bytes, Stream | Link]]:
    """The name and the contents of each regular file; `entry` knows the files by their numbers."""
    others: dict[tuple[int, ...], list[bytes]] = {}
    while True:
        room.take_member()
        magic = stream.read(_MAGIC)
        if magic in _NEW:
            found = _entry(stream)
        elif magic == _STRIPPED:
            found = entry(_hexadecimal(stream.read(8)))
            stream.read(-(_MAGIC + 8) % 4)
        else:
            raise ElfError("has something else where the header of a member is expected")
        if found.name == _TRAILER:
            break
        part = stream.part(found.size)
        if stat.S_ISREG(found.mode):
            if found.file and not found.size:
                others.setdefault(found.file, []).append(found.name)
            else:
                yield found.name, part
        part.drain()
        stream.read(-found.size % 4)
        if found.file and found.size:
            for name in others.pop(found.file, ()):
                yield name, Link(found.name)
    stream.drain()


def _entry(stream: Stream) -> CpioEntry:
    header = stream.read(13 * 8)
    fields = [_hexadecimal(header[at : at + 8]) for at in range(0, 104, 8)]
    inode, mode, _, _, links, _, size, major, minor, _, _, length, _ = fields
    if length > _LONGEST_NAME:
        raise ElfError(f"has a name of {length} bytes")
    name = stream.read(length).partition(b"\0")[0]
    stream.read(-(_MAGIC + len(header) + length) % 4)
    return CpioEntry(name, mode, size, (major, minor, inode) if links > 1 else None)


def _hexadecimal(digits: bytes) -> int:
    if not _FIELDS.fullmatch(digits):
        raise ElfError("has an unreadable number in a header")
    return int(digits, 16)
