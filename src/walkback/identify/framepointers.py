"""How much of some code keeps a frame pointer, by what its unwind table says."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import Bools, marked
from walkback.base.dataclass import dataclass
from walkback.table.rule import PartKind, of_kind
from walkback.table.table import UnwindTable


@dataclass(frozen=True, slots=True)
class FramePointers:
    """Functions are counted by their entries in the source."""

    functions: int
    """Functions that have a row whose CFA counts from the frame pointer, or is stored where that points to."""
    code_bytes: int
    """Code where it does."""
    saved: int
    """Functions that have a row where the caller's frame pointer is saved."""


def frame_pointers(table: UnwindTable) -> FramePointers:
    """Of a settled table: ranges in order, rows one after the other.

    A function that bases its CFA on the frame pointer does so from the end of its prologue on. On AArch64 most that
    keep a frame pointer still count from the stack pointer: there only `saved` shows it.
    """
    cfa, fp = table.rules["cfa"], table.rules["fp"]
    # Functions that realign their stack have stored it: on AMD64 it is `*(rbp-8)`.
    based = of_kind(cfa, PartKind.REGISTER, PartKind.AT_REGISTER) & (cfa["register"] == table.machine.fp)
    saved = of_kind(fp, PartKind.AT_CFA, PartKind.AT_REGISTER)
    return FramePointers(_functions(table, based), _code(table, based), _functions(table, saved))


def _functions(table: UnwindTable, chosen: Bools) -> int:
    origins = table.range_origin[table.rows_where(chosen) > 0]
    return int(marked(origins, int(origins.max(initial=-1)) + 1).sum())


def _code(table: UnwindTable, chosen: Bools) -> int:
    """How many bytes of code have a rule that is chosen; of repeating blocks none."""
    if not chosen.any():
        return 0
    end = np.append(table.row_offset[1:], np.uint32(0)).astype(np.uint64)
    some = table.range_rows > 0
    last = (table.range_first_row + table.range_rows - 1)[some]
    end[last] = table.range_size[some]
    counted = chosen[table.row_rule] & np.repeat(table.range_block == 0, table.range_rows)
    return int((end - table.row_offset)[counted].sum())
