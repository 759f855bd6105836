"""Functions that a file has and its SFrame does not: linkers drop whole inputs, and end as if all were well."""

from __future__ import annotations

import numpy as np

from walkback.base.text import counted
from walkback.dwarf.files import in_code
from walkback.elf import ElfFile
from walkback.sections.pairs import all_frames
from walkback.table.table import UnwindTable


def missing(elf: ElfFile, table: UnwindTable) -> list[str]:
    """A note about the functions that the call frame information describes and a table does not."""
    frames = all_frames(elf)
    if frames is None:
        return []
    frames = frames.chosen(np.flatnonzero(in_code(elf, frames) & (frames.range_size > 0)))
    if elf.is_relocatable:
        frames = frames.chosen(np.flatnonzero(frames.range_section > 0))
        there = np.isin(_places(frames), _places(table))
    else:
        there = table.find_many(frames.range_start)[0] >= 0
    count = int((~there).sum())
    if not count:
        return []
    return [f"{counted(count, 'function')} of the call frame information without SFrame: `walkback compare` lists them"]


def _places(table: UnwindTable) -> np.ndarray:
    """Where the functions begin, as values that can be looked for."""
    places = np.zeros(len(table), [("section", "i8"), ("start", "u8")])
    places["section"], places["start"] = table.range_section, table.range_start
    return places
