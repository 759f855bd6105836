"""`/proc/PID/maps`: what a process has mapped, as proc(5) lists it."""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import NamedTuple

_DELETED = " (deleted)"


class MapsLine(NamedTuple):
    """One line."""

    start: int
    end: int
    flags: str
    """As `r-xp`."""
    offset: int
    """In the file."""
    device: int
    inode: int
    path: str
    """As the kernel writes it, with ` (deleted)` where the file has been deleted; empty for anonymous memory."""

    @property
    def executable(self) -> bool:
        """Whether code in it can run."""
        return "x" in self.flags

    @property
    def is_file(self) -> bool:
        """Whether it shows a file, and not anonymous memory or a name in brackets."""
        return self.inode != 0 and self.path.startswith("/")

    @property
    def is_anonymous(self) -> bool:
        """Whether it is memory that the process has asked for, with or without a name of its own."""
        return not self.path or self.path.startswith("[anon:")

    @property
    def name(self) -> str:
        """The path without the kernel's remark."""
        return self.path.removesuffix(_DELETED)

    @property
    def identity(self) -> tuple[int, int, str]:
        """Equal for mappings of one file."""
        return self.device, self.inode, self.path


class Maps:
    """All mappings of a process; made anew from the same lines, it is made quickly."""

    def __init__(self, text: bytes, before: Maps | None = None) -> None:
        """`before` are the mappings at an earlier time."""
        known = before.lines if before is not None else {}
        self.text = text
        self.lines: dict[bytes, MapsLine] = {
            line: known.get(line) or _mapping(line) for line in text.split(b"\n") if line
        }
        self.all = list(self.lines.values())
        self._starts = [one.start for one in self.all]

    def at(self, address: int) -> MapsLine | None:
        """The mapping that holds an address."""
        number = bisect_right(self._starts, address) - 1
        return self.all[number] if number >= 0 and address < self.all[number].end else None

    def stack_at(self, sp: int) -> tuple[int, int] | None:
        """Where the memory begins and ends that holds a stack pointer.

        The kernel makes the first thread's stack longer when it is needed, perhaps since the mappings were read.
        """
        found = self.at(sp)
        if found is not None:
            return (found.start, found.end) if "r" in found.flags else None
        number = bisect_right(self._starts, sp)
        if number < len(self.all) and self.all[number].path == "[stack]":
            return sp & -4096, self.all[number].end
        return None

    def readable_at(self, address: int) -> tuple[int, int] | None:
        """Where the readable mapping that holds an address begins and ends."""
        found = self.at(address)
        return (found.start, found.end) if found is not None and "r" in found.flags else None

    def code(self) -> list[MapsLine]:
        """The executable ones."""
        return [one for one in self.all if one.executable]


def _mapping(line: bytes) -> MapsLine:
    addresses, flags, offset, device, inode, *path = line.split(None, 5)
    start, _, end = addresses.partition(b"-")
    major, _, minor = device.partition(b":")
    text = os.fsdecode(path[0].replace(rb"\012", b"\n")) if path else ""
    number = os.makedev(int(major, 16), int(minor, 16))
    return MapsLine(int(start, 16), int(end, 16), flags.decode(), int(offset, 16), number, int(inode), text)
