"""What a linked file says to its loader: the dynamic section (gABI, chapter "Dynamic Section")."""

from __future__ import annotations

import numpy as np

from walkback.elf import layout
from walkback.elf.file import ElfFile


def dynamic_entries(elf: ElfFile) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.void]]]:
    """Where the dynamic section is in the file, and its entries up to the null; none in a static program."""
    shape = layout.DYNAMIC[elf.byteorder]
    for index in np.flatnonzero(elf.segments["type"] == layout.PT_DYNAMIC).tolist():
        contents = elf.segment_data(index)
        entries = np.frombuffer(contents, shape, len(contents) // shape.itemsize)
        last = np.flatnonzero(entries["tag"] == layout.DT_NULL)
        return int(elf.segments["offset"][index]), entries[: last[0]] if len(last) else entries
    return 0, np.zeros(0, shape)
