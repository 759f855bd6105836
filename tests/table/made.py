"""Tables, made of ranges."""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AMD64
from walkback.table.rule import Part, PartKind, Rule
from walkback.table.table import UnwindTable, rule_array


def make(ranges: list[tuple[int, int, list[int], int]], *, sections: list[int] | None = None) -> UnwindTable:
    """A table of ranges (start, size, row offsets, block); each row has a rule of its own."""
    offsets = [offset for one in ranges for offset in one[2]]
    rows = np.array([len(one[2]) for one in ranges], np.int64)
    return UnwindTable(
        machine=AMD64,
        range_section=np.array([-1] * len(ranges) if sections is None else sections, np.int32),
        range_start=np.array([one[0] for one in ranges], np.uint64),
        range_size=np.array([one[1] for one in ranges], np.uint64),
        range_first_row=np.cumsum(rows) - rows,
        range_rows=rows,
        range_signal=np.arange(len(ranges)) % 2 == 1,
        range_pauth_key=(np.arange(len(ranges)) % 2).astype(np.uint8),
        range_block=np.array([one[3] for one in ranges], np.uint32),
        range_origin=np.arange(len(ranges)),
        row_offset=np.array(offsets, np.uint32),
        row_rule=np.arange(len(offsets), dtype=np.uint32),
        rules=rule_array([Rule(Part(PartKind.REGISTER, 7, n)) for n in range(len(offsets))]),
    )
