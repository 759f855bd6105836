"""Symbol tables with the section numbers of symbols resolved (gABI, chapter "Symbol Table")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import record_type
from walkback.elf import layout

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Table = npt.NDArray[np.void]

SYMBOL_TABLE = record_type("name_offset u4, section u4, value u8, size u8, info u1, other u1", align=True)
"""A symbol as `ElfFile.symbols` gives it. `section` is the resolved number; the reserved ones (SHN_ABS and
its like) are or-ed with `layout.SHN_RESERVED`, because real sections may have those numbers."""


def symbol_table(stored: Table, extended_numbers: Callable[[], npt.NDArray[np.uint32]]) -> Table:
    """The stored symbols as a table of `SYMBOL_TABLE`; the numbers that they have no room for are asked for."""
    table = np.zeros(len(stored), SYMBOL_TABLE)
    for field in ("name_offset", "value", "size", "info", "other"):
        table[field] = stored[field]
    numbers = stored["shndx"].astype(np.uint32)
    extended = numbers == layout.SHN_XINDEX
    numbers[numbers >= layout.SHN_LORESERVE] |= np.uint32(layout.SHN_RESERVED)
    if extended.any():
        numbers[extended] = extended_numbers()[extended]
    table["section"] = numbers
    return table
