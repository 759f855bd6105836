"""The memory of a file: its bytes at their addresses, as its program finds them when it is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, partial

import numpy as np

from walkback.base.arch import MACHINES, ByteOrder
from walkback.base.arrays import I32, I64, U8, U64
from walkback.base.dataclass import dataclass
from walkback.elf import ElfFile, layout, machine_of
from walkback.elf.opened import copy_into
from walkback.proof.imagedata import ImageData, Part
from walkback.proof.relocate import relocate

_TABLES = re.compile(r".*rodata|\.data\.rel\.ro")
"""The names of sections that have jump tables begin so; BOLT has `.bolt.org.rodata`, a kernel `.init.rodata`."""
_WORDS = 1 << 64
"""Addresses there are."""
_LARGEST = 1 << 28
"""Bytes that get addresses of their own, of a section of a relocatable file that is not part of the image."""
_FIRST = 1 << 29
"""The address of the first section of a relocatable file: a number that programs do not use otherwise."""
_ALIGNMENT = 1 << 12
"""Of the sections of a relocatable file, which are laid out one behind the other."""


@dataclass
class Image:
    """Parts of a file, one behind the other, and the bytes behind them that decoders may read."""

    start: U64
    """The address of each part, rising."""
    end: U64
    pos: I64
    """Where it is in the data."""
    executable: U8
    base: U64
    """In a relocatable file the address of each section, which it has in the image alone; else nothing."""
    byteorder: ByteOrder
    machine_number: int
    """In the order of `MACHINES`."""
    is_linux: bool
    """Whether it is the kernel of Linux, or a module."""
    moves: bool
    """Whether the program can be loaded at any address, so that no number in its code is one."""
    _made: Callable[[], ImageData]

    @cached_property
    def contents(self) -> ImageData:
        """The bytes of the parts; they are read when they are wanted, because they can be most of a large file."""
        return self._made()

    @property
    def data(self) -> U8:
        """The same as an array; constants may be zero until their blocks are loaded."""
        return self.contents.data

    def places(self, start: U64, size: I64) -> I64:
        """Where ranges are in the data; -1 for those that are not in code, or not in one part."""
        if not len(self.start):
            return np.full(len(start), -1, np.int64)
        part = np.maximum(self.start.searchsorted(start, "right") - 1, 0)
        inside = (start >= self.start[part]) & (start <= self.end[part]) & (self.executable[part] != 0)
        room = np.where(inside, self.end[part] - start, np.uint64(0))
        inside &= size.astype(np.uint64) <= room
        return np.where(inside, self.pos[part] + (start - self.start[part]).astype(np.int64), -1)

    def at(self, places: I64) -> U64:
        """The addresses of places in the data."""
        part = np.searchsorted(self.pos, places, "right") - 1
        return (self.start[part] + (places - self.pos[part]).astype(np.uint64)).astype(np.uint64)

    def addresses(self, start: U64, section: I32) -> U64:
        """The addresses of places in sections."""
        if not len(self.base):
            return start
        found: U64 = self.base[section.clip(min=0, max=len(self.base) - 1)] + start
        return found


def image_of(elf: ElfFile) -> Image:
    """The code of a file, and the sections that have jump tables."""
    base = np.zeros(len(elf.sections) + 1 if elf.is_relocatable else 0, np.uint64)
    parts: list[Part] = []
    for part in _relocatable_parts(elf, base) if elf.is_relocatable else _linked_parts(elf):
        if (not parts or part.address >= parts[-1].end) and part.end < _WORDS:
            parts.append(part)
    return Image(
        np.array([part.address for part in parts], np.uint64),
        np.array([part.end for part in parts], np.uint64),
        np.cumsum([0, *(part.size for part in parts)])[:-1].astype(np.int64),
        np.array([part.is_code for part in parts], np.uint8),
        base,
        elf.byteorder,
        MACHINES.index(machine_of(elf)),
        bool(elf.sections_named("__bug_table")),
        elf.type == layout.ET_DYN,
        partial(ImageData, elf, parts),
    )


def _linked_parts(elf: ElfFile) -> Iterator[Part]:
    """Sections, or where there are none segments with code or constants, by address."""
    if not len(elf.sections):
        flags = elf.segments["flags"]
        is_constant = flags & (layout.PF_X | layout.PF_W) != layout.PF_W
        chosen = (elf.segments["type"] == layout.PT_LOAD) & is_constant
        for number in sorted(np.flatnonzero(chosen).tolist(), key=elf.segments["vaddr"].__getitem__):
            offset, size = elf.segment_range(number)
            is_code = bool(flags[number] & layout.PF_X)
            yield Part(int(elf.segments["vaddr"][number]), size, is_code, _reader(elf, offset))
    for number, is_code in sorted(_wanted(elf), key=lambda one: int(elf.sections["addr"][one[0]])):
        offset, size = elf.section_range(number)
        yield Part(int(elf.sections["addr"][number]), size, is_code, _reader(elf, offset))


def _reader(elf: ElfFile, offset: int) -> Callable[[int, memoryview], None]:
    """What reads a part that begins at an offset in the file."""
    return lambda start, room: copy_into(elf.data, offset + start, room)


def _relocatable_parts(elf: ElfFile, base: U64) -> Iterator[Part]:
    """Sections laid out one behind the other, and relocated; `base` gets their addresses."""
    wanted = dict(_wanted(elf))
    address = _FIRST
    for number in range(1, len(elf.sections)):
        base[number] = address
        if int(elf.sections["flags"][number]) & layout.SHF_ALLOC:
            # A section that is compressed has another size than its header says.
            size = len(elf.section_data(number)) if number in wanted else int(elf.sections["size"][number])
            address += ((size if number in wanted else min(size, _LARGEST)) // _ALIGNMENT + 2) * _ALIGNMENT
    base[-1] = address  # where symbols are that the file does not define

    def read(number: int, _: int, room: memoryview) -> None:
        room[:] = relocate(elf, number, base)  # it is read at once

    for number, is_code in wanted.items():
        yield Part(int(base[number]), len(elf.section_data(number)), is_code, partial(read, number))


def _wanted(elf: ElfFile) -> Iterator[tuple[int, bool]]:
    """The sections that are part of the image, and whether each is code."""
    flags = elf.sections["flags"]
    there = (flags & layout.SHF_ALLOC != 0) & (elf.sections["type"] != layout.SHT_NOBITS) & (elf.sections["size"] != 0)
    for number in np.flatnonzero(there).tolist():
        is_code = bool(flags[number] & layout.SHF_EXECINSTR)
        if is_code or _TABLES.match(elf.section_name(number)):
            yield number, is_code
