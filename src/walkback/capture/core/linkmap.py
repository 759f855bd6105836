"""The list of loaded libraries that the dynamic linker keeps for debuggers, read from a process's memory.

DT_DEBUG of the program's dynamic section points to `struct r_debug`, and that to a list of `struct link_map`, as
<link.h> has them. The list is followed for a bounded number of steps and never twice through one entry.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from walkback.base.arch import ByteOrder

DT_NULL, DT_DEBUG = 0, 21
_MOST_TAGS = 1 << 10
_MOST_LIBRARIES = 1 << 14
_LONGEST_NAME = 4096
_NAME_PIECE = 256

Reader = Callable[[int, int], bytes]
"""From an address and a size to as many bytes as there are."""


class Loaded(NamedTuple):
    """One entry of the list."""

    bias: int
    """What is added to the file's addresses."""
    name: str
    dynamic: int
    """Where its dynamic section is."""


class LinkMap:
    """Reads dynamic sections and the list in one byte order."""

    def __init__(self, read: Reader, byteorder: ByteOrder) -> None:
        self._read = read
        order = "<" if byteorder == "little" else ">"
        self._pair = struct.Struct(f"{order}QQ")
        self._debug = struct.Struct(f"{order}i4xQ")
        self._entry = struct.Struct(f"{order}QQQQ")
        self.trouble: str | None = None
        """Why the list ended before its end."""

    def dynamic(self, address: int) -> list[tuple[int, int]]:
        """The tags and values of a dynamic section in memory, up to DT_NULL; none if it is not there."""
        contents = self._read(address, _MOST_TAGS * self._pair.size)
        found: list[tuple[int, int]] = []
        for tag, value in self._pair.iter_unpack(contents[: len(contents) // 16 * 16]):
            if tag == DT_NULL:
                return found
            found.append((tag, value))
        return []

    def libraries(self, dynamic: int) -> Iterator[Loaded]:
        """All that is loaded, from the dynamic section of the program on."""
        debug = dict(self.dynamic(dynamic)).get(DT_DEBUG, 0)
        contents = self._read(debug, self._debug.size) if debug else b""
        if len(contents) < self._debug.size:
            self.trouble = "the dynamic linker's list of libraries is not in memory"
            return
        seen: set[int] = set()
        _, address = self._debug.unpack(contents)
        while address:
            contents = self._read(address, self._entry.size)
            if address in seen or len(seen) == _MOST_LIBRARIES or len(contents) < self._entry.size:
                self.trouble = f"the dynamic linker's list of libraries is damaged at {address:#x}"
                return
            seen.add(address)
            bias, name, place, address = self._entry.unpack(contents)
            yield Loaded(bias, self._string(name), place)

    def _string(self, address: int) -> str:
        text = b""
        while address and len(text) < _LONGEST_NAME:
            piece = self._read(address + len(text), _NAME_PIECE)
            text += piece
            if b"\0" in piece or not piece:
                break
        return os.fsdecode(text.partition(b"\0")[0])
