"""ELF files put together from the memory of a process, where the files themselves are not to be had."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile, is_elf
from walkback.elf import layout as elf_layout
from walkback.elf.notes import find_build_id, read_notes

_LARGEST = 1 << 28
"""Images are not made longer than this."""
_WIDEST_GAP = 1 << 22
"""What lies between two segments in a file is no more than the largest alignment of one."""


def image_of(parts: Iterable[tuple[int, int, int]], read: Callable[[int, int], bytes]) -> bytearray | None:
    """The contents of a file as far as a process has it mapped; None if its beginning is not there.

    `parts` are mappings: the place in the file, the address, the size. `read` gives what there is at an address.
    """
    image = bytearray()
    for offset, address, size in sorted(parts):
        # A page of the file that two segments share is mapped twice, and may be changed in the second.
        there = max(len(image) - offset, 0)
        wanted = min(size, _LARGEST - offset) - there
        if wanted <= 0 or offset - len(image) > _WIDEST_GAP:
            continue
        contents = read(address + there, wanted)
        if not image and not is_elf(contents):
            return None
        image += bytes(max(offset - len(image), 0)) + contents
    return without_lost_sections(image) if image else None


def without_lost_sections(image: bytearray) -> bytearray:
    """Make a file of an image whose section headers, at the file's end, are not in memory: one that has none."""
    order = elf_layout.BYTE_ORDERS.get(image[elf_layout.EI_DATA]) if len(image) >= 64 else None
    if order is not None:
        header = np.frombuffer(image, elf_layout.ELF_HEADER[order], 1)[0]
        if not _has_sections(image, header, order):
            for name in ("shoff", "shnum", "shstrndx"):
                header[name] = 0
    return image


def _has_sections(image: bytearray, header: np.void, order: ByteOrder) -> bool:
    """Whether all sections are there; the last page of a small file has them, unless the loader cleared it."""
    shape = elf_layout.SECTION_HEADER[order]
    start, count, names = int(header["shoff"]), int(header["shnum"]), int(header["shstrndx"])
    if not count or names >= count or start + count * shape.itemsize > len(image):
        return False
    sections = np.frombuffer(image, shape, count, start)
    stored = sections[~np.isin(sections["type"], (elf_layout.SHT_NULL, elf_layout.SHT_NOBITS))]
    length = np.uint64(len(image))
    inside = (stored["offset"] <= length) & (stored["size"] <= length - np.minimum(stored["offset"], length))
    name = sections[names]
    text = image[int(name["offset"]) : int(name["offset"]) + min(int(name["size"]), len(image))]
    return bool(inside.all()) and name["type"] == elf_layout.SHT_STRTAB and any(text)


def build_id_in(image: bytes | bytearray | memoryview, name: str) -> bytes | None:
    """The build ID in the first pages of a file; None if it is not there."""
    try:
        elf = ElfFile(without_lost_sections(bytearray(image)), name)
        notes = elf.segments[elf.segments["type"] == elf_layout.PT_NOTE]
    except WalkbackError:
        return None
    for note in notes:
        offset, size, alignment = (int(note[field]) for field in ("offset", "filesz", "align"))
        if offset + size > len(image):
            continue
        try:
            found = find_build_id(
                read_notes(elf.data[offset : offset + size], elf.byteorder, alignment, (name, offset))
            )
        except WalkbackError:
            continue
        if found:
            return found
    return None
