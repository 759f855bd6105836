"""Starts that count from their own fields though nothing in their section says so.

Assemblers before errata 1 of version 2 relocate a start as if it counted from its own field, and GNU ld then makes it
count from the section, and sorts. A linker that knows nothing of SFrame leaves both undone.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from walkback.arrays import U64
from walkback.dwarf.files import frame_sources
from walkback.elf import ElfFile
from walkback.errors import WalkbackError
from walkback.sframe.batch import Batch
from walkback.sframe.files import Source


def count_from_fields(source: Source, batch: Batch) -> int:
    """Place the functions of sections that are not marked as sorted, if the linker knew nothing of SFrame.

    It did not, unless more functions that are known otherwise begin where the sections say by their flags. Returns how
    many sections that were.
    """
    assert source.elf is not None
    away = batch.field - np.repeat(batch.position, batch.counts)
    moved = batch.section.code_address + away.view(np.uint64)
    known = _known_starts(source.elf)
    if np.isin(moved, known).sum() < np.isin(batch.section.code_address, known).sum():
        return 0
    batch.section.code_address = moved
    return len(batch.position)


def _known_starts(elf: ElfFile) -> U64:
    """Where functions begin by the call frame information of a file; nothing if it cannot be read."""
    with suppress(WalkbackError):
        return np.concatenate([np.zeros(0, np.uint64), *(one.table.range_start for one in frame_sources(elf))])
    return np.zeros(0, np.uint64)
