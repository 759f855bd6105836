"""Where exceptions go on in the code of a file, and what they take off the stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from walkback.base.arrays import I64, U64, distinct
from walkback.dwarf import _landings
from walkback.dwarf.files import FrameSource
from walkback.dwarf.others import program_reader
from walkback.elf import ElfFile, layout
from walkback.elf.relocations import relocations_for
from walkback.proof.image import Image

_AREAS = ".gcc_except_table"
"""In an object, the beginning of the names of sections of language-specific data areas."""


def landings(elf: ElfFile, image: Image, sources: Iterable[FrameSource]) -> U64:
    """Rows of where calls begin and end, and where exceptions that come out of them go on, by address."""
    found = [np.zeros((0, 4), np.uint64)]
    big = elf.byteorder == "big"
    for source in sources:
        fdes = source.frames.fdes
        for index, some, area in _areas(elf, source):
            data = elf.section_data(index, keep=False)
            start = image.addresses(fdes.start[some], source.frames.code_section[some])
            found.append(_landings.read(data, int(elf.sections["addr"][index]), big, start, area))
    rows = np.concatenate(found)[:, 1:]
    return np.ascontiguousarray(rows[np.argsort(rows[:, 0], kind="stable")])


def by_range(rows: U64, start: U64, size: I64) -> tuple[I64, U64]:
    """The landings that each range has: where its own begin among all that some range has."""
    number = np.searchsorted(start, rows[:, 0], "right").astype(np.int64) - 1
    held = number >= 0
    held[held] = rows[held, 0] - start[number[held]] < size[number[held]].astype(np.uint64)
    number, rows = number[held], rows[held]
    first = np.searchsorted(number, np.arange(len(start) + 1))
    return first.astype(np.int64), np.ascontiguousarray(rows)


def arguments(image: Image, sources: Iterable[FrameSource]) -> U64:
    """Rows of an address, rising, and the bytes of arguments on the stack at the calls from there on."""
    found = [np.zeros((0, 2), np.uint64)]
    for source in sources:
        frames = source.frames
        rows = _landings.arguments(program_reader(frames), frames.fdes)
        number = rows[:, 0].astype(np.int64)
        start = image.addresses(frames.fdes.start[number], frames.code_section[number])
        found.append(np.stack((start + rows[:, 1], rows[:, 2]), axis=1))
    every = np.concatenate(found)
    return every[np.argsort(every[:, 0], kind="stable")]


def _areas(elf: ElfFile, source: FrameSource) -> Iterator[tuple[int, I64, U64]]:
    """Sections of language-specific data areas, the numbers of the FDEs that name them, and where they are."""
    fdes = source.frames.fdes
    if not elf.is_relocatable:
        some = np.flatnonzero(fdes.lsda)
        some = some[np.argsort(fdes.lsda[some], kind="stable")]
        areas, is_left = fdes.lsda[some], np.ones(len(some), np.bool_)
        sections = elf.sections
        first, end = (np.searchsorted(areas, sections["addr"] + size) for size in (np.uint64(0), sections["size"]))
        loaded = (sections["flags"] & layout.SHF_ALLOC != 0) & (sections["type"] == layout.SHT_PROGBITS)
        for index in np.flatnonzero(loaded & (first < end)).tolist():
            held = first[index] + np.flatnonzero(is_left[first[index] : end[index]])
            is_left[held] = False  # sections may overlap
            if len(held):
                yield index, some[held], areas[held]
    elif source.index is not None:
        relocations = relocations_for(elf, source.index)
        targets = relocations.targets(elf)
        place = relocations.table["offset"].astype(np.int64)
        number = np.searchsorted(fdes.position, place, "right") - 1
        behind = (number >= 0) & (place > fdes.start_field[np.maximum(number, 0)]) if len(fdes.position) else number > 0
        for index in distinct(targets["section"][behind]).tolist():
            if 0 < index < len(elf.sections) and elf.section_name(index).startswith(_AREAS):
                chosen = behind & (targets["section"] == index)
                area = targets["value"][chosen].astype(np.int64) + relocations.table["addend"][chosen]
                yield index, number[chosen], area.astype(np.uint64)
