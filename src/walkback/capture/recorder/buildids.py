"""Build IDs of mapped files, written into the records of mappings, which then name files whatever their paths are.

The kernel could do so itself (`build_id` of `perf_event_attr`), but then it also marks the records of all who record at
the same time and have not asked for it, and perf 6.1 crashes.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

import numpy as np

from walkback.base.errors import WalkbackError
from walkback.capture.perfdata import layout
from walkback.capture.recorder.scanning import scanned
from walkback.elf import ElfFile

_LONGEST = 20
_MOST_FILES = 1 << 16
_ABOUT, _NAME = 40, 72
"""Where records of mappings have device and inode, or the build ID, and the name."""


class MappedFile(NamedTuple):
    """A mapped file, by what the kernel says of it."""

    major: int
    minor: int
    inode: int
    name: str


class BuildIds:
    """Looks at each file once."""

    def __init__(self) -> None:
        self._known: dict[MappedFile, bytes] = {}

    def of(self, pid: int, start: int, end: int, file: MappedFile) -> bytes:
        """The build ID of a file that a process has mapped there; nothing if it has none, or cannot be found."""
        found = self._known.get(file)
        if found is None:
            if len(self._known) >= _MOST_FILES:
                self._known.clear()
            found = self._known[file] = self._read(pid, start, end, file)
        return found

    def _read(self, pid: int, start: int, end: int, file: MappedFile) -> bytes:
        # The process may see other files under these paths than we do, or have ended.
        for place in (f"/proc/{pid}/map_files/{start:x}-{end:x}", f"/proc/{pid}/root{file.name}", file.name):
            try:
                if os.stat(place).st_ino == file.inode:
                    return (ElfFile(place).build_id or b"")[:_LONGEST]
            except (OSError, ValueError, WalkbackError):
                continue
        return b""

    def write(self, data: bytearray) -> None:
        """Put build IDs into the mappings among these records."""
        for rows in scanned(data):
            bare = (rows.kind == layout.MMAP2) & (rows.misc & layout.MISC_MMAP_BUILD_ID == 0)
            for i in np.flatnonzero(bare).tolist():
                self._write_one(data, int(rows.offset[i]), int(rows.size[i]))

    def _write_one(self, data: bytearray, at: int, size: int) -> None:
        pid, _, start, length = struct.unpack_from("=iiQQ", data, at + 8)
        major, minor, inode = struct.unpack_from("=IIQ", data, at + _ABOUT)
        name = bytes(data[at + _NAME : at + size]).partition(b"\0")[0]
        if not inode or not name.startswith(b"/"):
            return
        found = self.of(pid, start, start + length, MappedFile(major, minor, inode, os.fsdecode(name)))
        if found:
            struct.pack_into("=BBH20s", data, at + _ABOUT, len(found), 0, 0, found)
            (misc,) = struct.unpack_from("=H", data, at + layout.RECORD_MISC_AT)
            struct.pack_into("=H", data, at + layout.RECORD_MISC_AT, misc | layout.MISC_MMAP_BUILD_ID)
