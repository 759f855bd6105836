"""The memory of a file: its bytes at their addresses, as its program finds them when it is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from walkback.base.arch import MACHINES, ByteOrder
from walkback.base.arrays import I32, I64, U8, U64
from walkback.base.errors import WalkbackError
from walkback.dwarf.files import machine_of
from walkback.elf import ElfFile, layout
from walkback.proof.relocate import relocate

_RELATIVE = {layout.EM_X86_64: 8, layout.EM_AARCH64: 1027, layout.EM_S390: 12}
"""The relocation that adds the address at which a file is loaded."""
_TABLES = re.compile(r".*rodata|\.data\.rel\.ro")
"""The names of sections that have tables of jumps begin so; BOLT has `.bolt.org.rodata`, a kernel `.init.rodata`."""
_WORDS = 1 << 64
"""Addresses there are."""
_FIRST = 1 << 29
"""The address of the first section of a relocatable file: a number that programs do not use otherwise."""
_ALIGNMENT = 1 << 12
"""Of the sections of a relocatable file, which are laid out one behind the other."""


@dataclass(slots=True)
class Image:
    """Parts of a file, one behind the other."""

    data: U8
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

    def places(self, start: U64, size: I64) -> I64:
        """Where ranges are in the data; -1 for those that are not in code, or not in one part."""
        if not len(self.start):
            return np.full(len(start), -1, np.int64)
        part = (np.searchsorted(self.start, start, "right").astype(np.int64) - 1).clip(min=0)
        inside = (start >= self.start[part]) & (start <= self.end[part]) & (self.executable[part] != 0)
        room = np.where(inside, self.end[part] - start, np.uint64(0))
        inside &= size.astype(np.uint64) <= room
        return np.where(inside, self.pos[part] + (start - self.start[part]).astype(np.int64), -1)

    def addresses(self, start: U64, section: I32) -> U64:
        """The addresses of places in sections."""
        if not len(self.base):
            return start
        found: U64 = self.base[section.clip(min=0, max=len(self.base) - 1)] + start
        return found


def image_of(elf: ElfFile) -> Image:
    """The code of a file, and the sections that have tables of jumps."""
    data = bytearray()
    start: list[int] = []
    end: list[int] = []
    pos: list[int] = []
    executable: list[bool] = []
    base = np.zeros(len(elf.sections) + 1 if elf.is_relocatable else 0, np.uint64)
    for address, contents, is_code in _relocatable_parts(elf, base) if elf.is_relocatable else _linked_parts(elf):
        if (end and address < end[-1]) or address + len(contents) >= _WORDS:
            continue
        start.append(address)
        end.append(address + len(contents))
        pos.append(len(data))
        executable.append(is_code)
        data += contents
    image = Image(
        np.frombuffer(data, np.uint8),
        np.array(start, np.uint64),
        np.array(end, np.uint64),
        np.array(pos, np.int64),
        np.array(executable, np.uint8),
        base,
        elf.byteorder,
        MACHINES.index(machine_of(elf)),
    )
    if not elf.is_relocatable:
        _load(elf, image)
    return image


def _linked_parts(elf: ElfFile) -> Iterator[tuple[int, memoryview, bool]]:
    """Addresses, contents, and whether these are code: of sections, or where there are none of executable segments.

    They come by address, each read when it is wanted, because together they can be most of a large file.
    """
    if not len(elf.sections):
        chosen = (elf.segments["type"] == layout.PT_LOAD) & (elf.segments["flags"] & layout.PF_X != 0)
        for number in sorted(np.flatnonzero(chosen).tolist(), key=elf.segments["vaddr"].__getitem__):
            yield int(elf.segments["vaddr"][number]), elf.segment_data(number, keep=False), True
    for number, is_code in sorted(_wanted(elf), key=lambda one: int(elf.sections["addr"][one[0]])):
        yield int(elf.sections["addr"][number]), elf.section_data(number, keep=False), is_code


def _relocatable_parts(elf: ElfFile, base: U64) -> Iterator[tuple[int, memoryview, bool]]:
    """The same of a relocatable file, laid out and relocated; `base` gets the addresses of its sections."""
    wanted = dict(_wanted(elf))
    address = _FIRST
    for number in range(1, len(elf.sections)):
        base[number] = address
        if number in wanted:
            address += (len(elf.section_data(number)) // _ALIGNMENT + 2) * _ALIGNMENT
    base[-1] = address  # where symbols are that the file does not define
    for number, is_code in wanted.items():
        yield int(base[number]), relocate(elf, number, base), is_code


def _wanted(elf: ElfFile) -> Iterator[tuple[int, bool]]:
    """The sections that are part of the image, and whether each is code."""
    for number in np.flatnonzero(elf.sections["flags"] & layout.SHF_ALLOC != 0).tolist():
        header = elf.sections[number]
        if header["type"] == layout.SHT_NOBITS or not header["size"]:
            continue
        is_code = bool(header["flags"] & layout.SHF_EXECINSTR)
        if is_code or _TABLES.match(elf.section_name(number)):
            yield number, is_code


def _load(elf: ElfFile, image: Image) -> None:
    """Write the addresses that the loader writes, for a file that is loaded at 0: tables of jumps are made of them."""
    kind = _RELATIVE.get(elf.machine)
    for number in elf.sections_of_type(layout.SHT_RELA):
        if not elf.sections["flags"][number] & layout.SHF_ALLOC:
            continue
        try:
            table = elf.entries(number, layout.RELA)
        except WalkbackError:
            continue
        chosen = table["info"] & np.uint64(0xFFFFFFFF) == kind
        offset, addend = table["offset"][chosen].astype(np.uint64), table["addend"][chosen].astype(np.int64)
        part = (np.searchsorted(image.start, offset, "right").astype(np.int64) - 1).clip(min=0)
        inside = (offset >= image.start[part]) & (offset + np.uint64(8) <= image.end[part]) if len(image.start) else []
        place = (image.pos[part] + (offset - image.start[part]).astype(np.int64))[inside]
        order = "<" if elf.byteorder == "little" else ">"
        image.data[place[:, None] + np.arange(8)] = addend[inside].astype(f"{order}i8").view(np.uint8).reshape(-1, 8)
