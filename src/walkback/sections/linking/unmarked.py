"""Starts that count from their own fields though nothing in their section says so.

Assemblers before errata 1 of version 2 relocate a start as if it counted from its own field, and GNU ld then makes it
count from the section, and sorts. A linker that knows nothing of SFrame leaves both undone.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import are_among
from walkback.sections.pairs import all_frames
from walkback.sframe.batch import SectionBatch
from walkback.sframe.files import Source


def count_from_fields(source: Source, batch: SectionBatch) -> int:
    """Place the functions of sections that are not marked as sorted, if the linker knew nothing of SFrame.

    It did not, unless more functions that are known otherwise begin where the sections say by their flags. Returns how
    many sections that were.
    """
    assert source.elf is not None
    away = batch.field - np.repeat(batch.position, batch.counts)
    moved = batch.section.code_address + away.view(np.uint64)
    frames = all_frames(source.elf)
    known = np.zeros(0, np.uint64) if frames is None else frames.range_start
    if are_among(moved, known).sum() < are_among(batch.section.code_address, known).sum():
        return 0
    batch.section.code_address = moved
    return len(batch.position)
