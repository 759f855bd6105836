"""A regular file that is read while others may change it.

Nothing of it is mapped. Of a mapped file that another program shortens the kernel takes the lost pages away, and ends
the process that touches them; what was read once is this process's own. So a file that shrinks is an error in one
line. The descriptor stays open as long as the object is there, so that it is one file from the first byte that is
read to the name that a rewritten copy takes.

The size of a file costs nobody anything to claim, since holes take no room. So a large part of a file is read only if a
good part of it is on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import TYPE_CHECKING

from walkback.base.errors import UnreadableError
from walkback.base.replace import CHANGED

if TYPE_CHECKING:
    from collections.abc import Iterator

    Buffer = bytes | bytearray | memoryview

IN_MEMORY = "<bytes>"
"""What errors call a file that has no name."""

_MEMBER = re.compile(r"([^()\[\]]+)[(\[].+[)\]]")
"""As `archive(member)`, or for a thin archive `archive[member]`."""
_AT_ONCE = 1 << 30
"""Bytes; the kernel reads no more than twice as many in one call."""
_PIECE = 4 << 20
_WITH_HOLES = 64 << 20
"""Bytes of a file that may be read even if they are a hole."""
_HOLES = 16
"""Of more bytes, one in 16 has to be on the disk."""
_LARGEST = 4 << 30
"""The most bytes that are read at once."""


def view_of(source: Buffer) -> memoryview:
    """The bytes of a file that is in memory."""
    try:
        return memoryview(source).cast("B")
    except TypeError:
        message = f"a path, the bytes of a file or an ElfFile is needed, not {type(source).__name__}"
        raise TypeError(message) from None


def _archive_hint(name: str) -> str:
    """What to do about the name that walkback itself gives to a member of an archive or package."""
    found = _MEMBER.fullmatch(name)
    if found is None or not os.path.isfile(found[1]):
        return ""
    return f"; to read a member, give the archive {found[1]}, whose members are all read, or extract it first"


class OpenFile:
    """A regular file that is open; a slice of it is read when asked for, each time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._descriptor: int | None = None
        self.name = os.fsdecode(path)
        if not self.name:
            raise UnreadableError("the path is empty")
        try:
            # Before opening, because opening a pipe waits and opening a device may act.
            _refuse_other(os.stat(path), self.name)
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            self.status = os.fstat(self._descriptor)
        except OSError as error:
            raise UnreadableError((error.strerror or str(error)) + _archive_hint(self.name), file=self.name) from error
        except ValueError as error:  # a NUL in the path
            raise UnreadableError(str(error), file=self.name) from error
        _refuse_other(self.status, self.name)
        self._size = self.status.st_size
        if not self._size:
            raise UnreadableError("the file is empty", file=self.name)

    def __del__(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)

    @property
    def descriptor(self) -> int:
        """What it is read through."""
        assert self._descriptor is not None
        return self._descriptor

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return self._read(0, self._size)

    def __getitem__(self, which: slice) -> memoryview:
        start, stop, step = which.indices(self._size)
        if step != 1:
            raise ValueError("a file is read from front to back")
        return memoryview(self._read(start, max(stop - start, 0)))

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[memoryview]:
        """The contents piece by piece; only one piece at a time has to be in memory."""
        end = self._size if end is None else end
        for place in range(start, end, _PIECE):
            yield self[place : min(place + _PIECE, end)]

    def read_into(self, start: int, room: memoryview) -> None:
        """Fill this memory with the bytes from an offset on; a file that ends too early is an error."""
        if len(room) > _WITH_HOLES:
            self._refuse_large(start, len(room))
        done = 0
        try:
            while done < len(room):
                size = os.preadv(self.descriptor, [room[done : done + _AT_ONCE]], start + done)
                if not size:
                    raise UnreadableError(CHANGED, file=self.name)
                done += size
        except OSError as error:
            raise UnreadableError((error.strerror or str(error)) + _archive_hint(self.name), file=self.name) from error

    def _read(self, start: int, size: int) -> bytes:
        if size > _WITH_HOLES:
            self._refuse_large(start, size)
        parts = []
        try:
            while size:
                part = os.pread(self.descriptor, min(size, _AT_ONCE), start)
                if not part:
                    raise UnreadableError(CHANGED, file=self.name)
                parts.append(part)
                start, size = start + len(part), size - len(part)
        except OSError as error:
            raise UnreadableError((error.strerror or str(error)) + _archive_hint(self.name), file=self.name) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _refuse_large(self, start: int, size: int) -> None:
        place = f"{size} bytes at {start:#x}"
        if size > _LARGEST:
            raise UnreadableError(f"{place} are more than are read at once, which is {_LARGEST}", file=self.name)
        if not self.is_stored(start, size):
            raise UnreadableError(f"{place} are mostly a hole in the file", file=self.name)

    def is_stored(self, start: int, size: int) -> bool:
        """Whether enough of these bytes are on the disk for all of them to be read."""
        wanted, found, place, end = size // _HOLES, 0, start, start + size
        while size > _WITH_HOLES and found < wanted and place < end:
            try:
                data = os.lseek(self.descriptor, place, os.SEEK_DATA)
                place = os.lseek(self.descriptor, data, os.SEEK_HOLE)
            except OSError as error:
                return error.errno != errno.ENXIO  # which says that there is nothing but a hole; others know no holes
            found += max(min(place, end) - min(data, end), 0)
        return size <= _WITH_HOLES or found >= wanted


def _refuse_other(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableError("this is a directory", file=name)
    if stat.S_ISFIFO(status.st_mode):
        message = "this is a named pipe, not a regular file; redirect it to standard input, and name that: -"
        raise UnreadableError(message, file=name)
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError("this is not a regular file", file=name)


Contents = memoryview | OpenFile
"""The bytes of a file: in memory, or read when asked for."""


def read_file(path: str | os.PathLike[str]) -> memoryview:
    """The contents of a regular file, in memory."""
    return OpenFile(path)[:]


def copy_into(contents: Contents, start: int, room: memoryview) -> None:
    """Fill this memory with the bytes of a file from an offset on."""
    if isinstance(contents, memoryview):
        room[:] = contents[start : start + len(room)]
    else:
        contents.read_into(start, room)


def is_stored(contents: Contents, start: int, size: int) -> bool:
    """Whether a part is more than a hole, so that going through it is worth its time."""
    return isinstance(contents, memoryview) or contents.is_stored(start, size)


def opened_file(contents: Contents) -> OpenFile | None:
    """The file that these are read from; None if they are in memory."""
    return None if isinstance(contents, memoryview) else contents


def whole(contents: Contents) -> memoryview:
    """All of it, in memory."""
    return contents if isinstance(contents, memoryview) else contents[:]


def in_pieces(contents: Contents) -> Iterator[memoryview]:
    """All of it, one piece after the other."""
    return iter((contents,)) if isinstance(contents, memoryview) else contents.pieces()
