"""RPM packages: a lead, a header of signatures, the header about the package and its files, the payload.

As in "RPM Package Format" of the Linux Standard Base and in RPM's manual, "Package format" and "Tags". The lead is
passed over, as RPM itself does.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from walkback.base.errors import ElfError
from walkback.packages.cpio import CpioEntry

if TYPE_CHECKING:
    import numpy.typing as npt

    from walkback.packages.streams import Stream

_LEAD: Final = 96
_INTRODUCTION: Final = struct.Struct(">4s4xII")
_MAGIC: Final = b"\x8e\xad\xe8\x01"
_INDEX: Final = np.dtype([("tag", ">u4"), ("type", ">u4"), ("offset", ">u4"), ("count", ">u4")])
_MOST_TAGS: Final = 1 << 16
"""RPM's own limit."""
_LARGEST: Final = 1 << 26
"""Far below RPM's own limit, and far above what packages have."""

NAME, VERSION, RELEASE, EPOCH, ARCH = 1000, 1001, 1002, 1003, 1022
_FILE_SIZES, _FILE_MODES = 1028, 1030
_DIR_INDEXES, _BASE_NAMES, _DIR_NAMES, _LONG_FILE_SIZES = 1116, 1117, 1118, 5008
_FILE_DEVICES, _FILE_INODES, _FILE_FLAGS = 1095, 1096, 1037
_KIND, _REGULAR, _LINK = 0o170000, 0o100000, 0o120000
_GHOST: Final = 1 << 6
"""The package owns the file and does not bring it."""
_MOST_FILES: Final = 1 << 20
_NUMBERS: Final = {2: ">u1", 3: ">u2", 4: ">u4", 5: ">u8"}
_TEXTS: Final = (6, 8, 9)
_NO_NUMBERS: Final = np.zeros(0, np.uint64)


class RpmHeader:
    """A header: tags with numbers or texts."""

    def __init__(self, stream: Stream) -> None:
        magic, count, size = _INTRODUCTION.unpack(stream.read(_INTRODUCTION.size))
        if magic != _MAGIC:
            raise ElfError("has something else where a header of the package is expected")
        if count > _MOST_TAGS or size > _LARGEST:
            raise ElfError(f"has a header with {count} tags and {size} bytes, which is too much")
        self.size = count * _INDEX.itemsize + size
        index = np.frombuffer(stream.read(count * _INDEX.itemsize), _INDEX)
        self._tags = {tag: (kind, offset, number) for tag, kind, offset, number in index.tolist()}
        self._store = stream.read(size)

    def texts(self, tag: int) -> list[bytes]:
        """The texts of a tag; none if there is no such tag, or if it has something else."""
        kind, offset, count = self._tags.get(tag, (0, 0, 0))
        if kind not in _TEXTS or count > _MOST_FILES or not count:
            return []
        # Each ends with NUL, and what is behind the last of them belongs to other tags.
        return self._store[offset:].split(b"\0", count)[:count]

    def numbers(self, tag: int) -> npt.NDArray[np.uint64]:
        """The numbers of a tag, under the same conditions."""
        kind, offset, count = self._tags.get(tag, (0, 0, 0))
        if kind not in _NUMBERS or count > _MOST_FILES:
            return _NO_NUMBERS
        end = offset + count * np.dtype(_NUMBERS[kind]).itemsize
        if end > len(self._store):
            return _NO_NUMBERS
        return np.frombuffer(self._store[offset:end], _NUMBERS[kind]).astype(np.uint64)

    def text(self, tag: int) -> str | None:
        """The only text of a tag."""
        texts = self.texts(tag)
        return texts[0].decode(errors="backslashreplace") if texts else None

    @property
    def version(self) -> str | None:
        """Epoch, version and release as RPM writes them."""
        version, release, epoch = self.text(VERSION), self.text(RELEASE), self.numbers(EPOCH)
        if version is None:
            return None
        front = f"{epoch[0]}:" if len(epoch) else ""
        return front + (version if release is None else f"{version}-{release}")


def read_headers(stream: Stream) -> RpmHeader:
    """The header of the package; leaves the stream where the payload begins."""
    stream.read(_LEAD)
    signatures = RpmHeader(stream)
    stream.read(-signatures.size % 8)
    return RpmHeader(stream)


class RpmFiles:
    """The files that a package's header lists, by their numbers."""

    def __init__(self, header: RpmHeader) -> None:
        self._header = header

    def entry(self, index: int) -> CpioEntry:
        """The file of this number, with the size that it has in the payload."""
        if index >= len(self._sizes):
            raise ElfError(f"has a file {index} that its header does not list")
        mode, *file = (int(column[index]) for column in self._columns)
        return CpioEntry(self._name(index), mode, int(self._sizes[index]), tuple(file))

    def _name(self, index: int) -> bytes:
        names, folders, folder = self._names
        if index >= len(names) or index >= len(folder) or folder[index] >= len(folders):
            raise ElfError(f"has a file {index} without a name")
        return folders[int(folder[index])].removeprefix(b"/") + names[index]

    @cached_property
    def _names(self) -> tuple[list[bytes], list[bytes], npt.NDArray[np.uint64]]:
        read = self._header
        return read.texts(_BASE_NAMES), read.texts(_DIR_NAMES), read.numbers(_DIR_INDEXES)

    @cached_property
    def _columns(self) -> list[npt.NDArray[np.uint64]]:
        """Mode, device and inode; hard links of each other have the last two in common."""
        return [self._header.numbers(tag) for tag in (_FILE_MODES, _FILE_DEVICES, _FILE_INODES)]

    @cached_property
    def _sizes(self) -> npt.NDArray[np.uint64]:
        """What regular files and links have in the payload: nothing, where a later name of the same file has it."""
        read = self._header
        size = read.numbers(_LONG_FILE_SIZES)
        columns = [*self._columns, size if len(size) else read.numbers(_FILE_SIZES), read.numbers(_FILE_FLAGS)]
        count = min(map(len, columns))
        mode, device, inode, size, flags = (column[:count] for column in columns)
        kind = mode & np.uint64(_KIND)
        regular = kind == _REGULAR
        last: dict[tuple[int, int], int] = {}
        for index in np.flatnonzero(regular & (flags & np.uint64(_GHOST) == 0)).tolist():
            last[int(device[index]), int(inode[index])] = index
        stored = kind == _LINK
        stored[list(last.values())] = True
        return np.where(stored, size, np.uint64(0))
