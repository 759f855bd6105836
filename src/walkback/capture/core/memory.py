"""The memory that a core file holds: the contents of its PT_LOAD segments, where they stand in the file.

A segment may be longer in memory than in the file: what is missing was not written, because it is in a file that was
mapped, or because the core file is cut short. Only what walks want of it is read.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import U64, Records
from walkback.base.errors import ElfError, UnreadableError
from walkback.capture.snapshot import MemoryRange
from walkback.elf import ElfFile
from walkback.elf import layout as elf_layout

_TOP = np.uint64(2**64 - 1)
_PAGE = 4096
_SMALL = 1 << 14
_MOST_CODE = 16


class CoreMemory:
    """All segments of a core file, in the order of their addresses."""

    def __init__(self, elf: ElfFile, segments: Records) -> None:
        loads = segments[segments["type"] == elf_layout.PT_LOAD]
        loads = loads[np.argsort(loads["vaddr"], kind="stable")]
        self.start: U64 = loads["vaddr"].astype(np.uint64)
        size = np.minimum(np.maximum(loads["memsz"], loads["filesz"]), _TOP - self.start)
        self.end: U64 = self.start + size
        self.flags = loads["flags"]
        offset, wanted = loads["offset"].astype(np.uint64), loads["filesz"].astype(np.uint64)
        length = np.uint64(len(elf.data))
        there = np.minimum(np.minimum(wanted, _TOP - self.start), length - np.minimum(offset, length))
        self.missing = int(np.sum((wanted - there).astype(np.float64)))
        """Bytes that should be in the file and are not: it is cut short."""
        self._there: U64 = self.start + there
        self._data = elf.data
        self.stored_start, self.stored_size, self._offset = _disjoint(self.start, there, offset)

    def number(self, address: int) -> int:
        """The segment that holds an address, whether or not its contents are there; -1 for none."""
        number = int(np.searchsorted(self.start, np.uint64(address), side="right")) - 1
        return number if number >= 0 and address < int(self.end[number]) else -1

    def cut_at(self, address: int) -> int:
        """Where the contents of the segment that holds an address end, if its memory goes on; else 0."""
        number = self.number(address)
        return int(self._there[number]) if number >= 0 and self._there[number] < self.end[number] else 0

    def is_executable(self, address: int) -> bool | None:
        """Whether code could run there; None if no segment says."""
        number = self.number(address)
        return None if number < 0 else bool(self.flags[number] & elf_layout.PF_X)

    def is_writable(self, address: int) -> bool | None:
        """Whether it could be written there; None if no segment says."""
        number = self.number(address)
        return None if number < 0 else bool(self.flags[number] & elf_layout.PF_W)

    def read(self, address: int, size: int) -> bytes:
        """As many bytes as there are from an address on."""
        parts = []
        number = int(np.searchsorted(self.stored_start, np.uint64(address & 2**64 - 1), side="right")) - 1
        while size > 0 and 0 <= number < len(self.stored_start):
            away = address - int(self.stored_start[number])
            if not 0 <= away < int(self.stored_size[number]):
                break
            place = int(self._offset[number]) + away
            part = bytes(self._data[place : place + min(size, int(self.stored_size[number]) - away)])
            parts.append(part)
            address, size, number = address + len(part), size - len(part), number + 1
        return b"".join(parts)

    def around(self, address: int, size: int) -> MemoryRange:
        """The memory from the page of an address on, as far as its segment has it; none if nothing is there."""
        number = int(np.searchsorted(self.stored_start, np.uint64(address), side="right")) - 1
        start = max(address & -_PAGE, int(self.stored_start[number])) if number >= 0 else address
        end = int(self.stored_start[number] + self.stored_size[number]) if number >= 0 else address
        return MemoryRange(start, self.read(start, min(size, end - start)) if start < end else b"")

    def code(self) -> list[MemoryRange]:
        """The code that is in no file, as that of the vDSO: a walk has to know trampolines by it."""
        pieces: list[MemoryRange] = []
        for start, size in zip(self.stored_start.tolist(), self.stored_size.tolist(), strict=True):
            if size <= _SMALL and self.is_executable(start):
                pieces.append(MemoryRange(start, self.read(start, size)))
            if len(pieces) == _MOST_CODE:
                break
        return pieces


def _disjoint(start: U64, size: U64, offset: U64) -> tuple[U64, U64, U64]:
    """Of segments that overlap, which no honest file has, the first holds."""
    end = start + size
    before = np.zeros_like(start)
    before[1:] = np.maximum.accumulate(end)[:-1]
    first = np.maximum(start, before)
    kept = first < end
    first, shift = first[kept], (first - start)[kept]
    return first, end[kept] - first, offset[kept] + shift


def segments_of(elf: ElfFile) -> Records:
    """The program headers; also of a file cut short that had more of them than its header can count.

    Such a file has their number in a section header at its end. But notes come right behind the program headers.
    """
    try:
        return elf.segments
    except ElfError:
        header = np.frombuffer(elf.header, elf_layout.ELF_HEADER[elf.byteorder], 1)[0]
        shape = elf_layout.PROGRAM_HEADER[elf.byteorder]
        place = int(header["phoff"])
        room = (len(elf.data) - place) // shape.itemsize
        if int(header["phnum"]) != elf_layout.PN_XNUM or int(header["phentsize"]) != shape.itemsize or room < 1:
            raise
        first = np.frombuffer(elf.data[place : place + shape.itemsize], shape)[0]
        count = (int(first["offset"]) - place) // shape.itemsize
        if first["type"] != elf_layout.PT_NOTE or not 0 < count <= room:
            raise UnreadableError("the file is cut short within its program headers", file=elf.name) from None
        return np.frombuffer(elf.data[place : place + count * shape.itemsize], shape).astype(shape.newbyteorder("="))
