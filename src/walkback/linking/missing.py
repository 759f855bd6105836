"""Functions that a file has and its SFrame does not: linkers drop whole inputs, and end as if all were well."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from walkback.dwarf.files import frame_sources, in_code
from walkback.elf import ElfFile
from walkback.errors import WalkbackError
from walkback.table import UnwindTable, joined
from walkback.text import counted


def missing(elf: ElfFile, table: UnwindTable) -> list[str]:
    """A note about the functions that the call frame information describes and a table does not."""
    known: list[UnwindTable] = []
    with suppress(WalkbackError):
        known = [one.table for one in frame_sources(elf)]
    if not known:
        return []
    frames = joined(known)
    frames = frames.chosen(np.flatnonzero(in_code(elf, frames) & (frames.range_size > 0)))
    if elf.is_relocatable:
        frames = frames.chosen(np.flatnonzero(frames.range_section > 0))
        there = np.isin(_places(frames), _places(table))
    else:
        there = table.find_many(frames.range_start)[0] >= 0
    count = int((~there).sum())
    if not count:
        return []
    return [
        f"{counted(count, 'function')} of the call frame information without SFrame: `walkback compare` tells which"
    ]


def _places(table: UnwindTable) -> np.ndarray:
    """Where the functions begin, as values that can be looked for."""
    places = np.zeros(len(table), [("section", "i8"), ("start", "u8")])
    places["section"], places["start"] = table.range_section, table.range_start
    return places
