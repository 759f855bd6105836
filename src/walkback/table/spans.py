"""Ranges of code with their rows, and which range and row hold at an address.

A *range* is what a format calls a function: code with rows. A *row* has the number of what holds from its offset on. In
an `UnwindTable` that is a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields, replace
from operator import index
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from walkback.base.arrays import I32, I64, U8, U32, U64, Bools
from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.table import _search
from walkback.table.pieces import Pieces, SearchIndex


@dataclass(slots=True, repr=False)
class Spans(OneLine):
    """Ranges of code and their rows, as columns."""

    range_section: I32
    """In relocatable files the text section's index; -1 where addresses are absolute."""
    range_start: U64
    range_size: U64
    range_first_row: I64
    range_rows: I64
    range_signal: Bools
    range_pauth_key: U8
    range_block: U32
    """Size of the repeating block (PLT); 0 for ordinary code."""
    range_origin: I64
    """Number of the function in the source."""
    row_offset: U32
    """From the start of the range, or of its repeating block."""
    row_rule: U32
    """The number of what holds from there on."""
    _indexes: dict[int, SearchIndex] = field(default_factory=dict, init=False)
    """By section; made when that is searched first."""
    _by_section: tuple[I32, I64] | None = field(default=None, init=False)

    def __len__(self) -> int:
        return len(self.range_start)

    def chosen(self, ranges: I64) -> Self:
        """Some ranges only; their rows stay where they are."""
        return replace(self, **{name: getattr(self, name)[ranges] for name in _RANGE_COLUMNS})

    def find_many(self, pcs: npt.ArrayLike, *, section: int = -1) -> tuple[I64, I64]:
        """Range and row for each program counter, -1 where there is none.

        Where ranges overlap, the one that starts last holds, and of several with one start the last in the table that
        is not empty.
        """
        # A list goes through objects, because NumPy makes floats of small and large integers together.
        wanted = np.asarray(pcs, None if isinstance(pcs, np.ndarray) else object)
        if wanted.dtype.kind not in "iuO":
            raise TypeError(f"program counters are integers, not {wanted.dtype}")
        flat = wanted.reshape(-1)
        outside = np.zeros(len(flat), np.bool_)
        if wanted.dtype.kind != "u":
            numbers = flat if wanted.dtype.kind == "i" else np.array([index(pc) for pc in flat.tolist()], object)
            outside = ((numbers < 0) | (numbers >= 2**64)).astype(np.bool_)
            flat = np.where(outside, 0, numbers)
        ranges, rows = self._find(np.ascontiguousarray(flat, np.uint64), section)
        ranges[outside] = rows[outside] = -1
        return ranges.reshape(wanted.shape), rows.reshape(wanted.shape)

    def _find(self, wanted: U64, section: int) -> tuple[I64, I64]:
        return _search.find(wanted, self._index_of(section), self.row_offset)

    def _index_of(self, section: int) -> SearchIndex:
        """What is searched for the ranges of one text section; there can be as many sections as ranges."""
        if section not in self._indexes:
            if self._by_section is None:
                order = np.argsort(self.range_section, kind="stable")
                self._by_section = (self.range_section[order], order)
            sections, order = self._by_section
            first, last = np.searchsorted(sections, [section, section + 1])
            ranges = order[first:last]
            pieces = Pieces.of(self.range_start[ranges], self.range_size[ranges], ranges)
            columns = self.range_start, self.range_first_row, self.range_rows, self.range_block
            self._indexes[section] = SearchIndex.of(pieces, *columns)
        return self._indexes[section]


_RANGE_COLUMNS = [column.name for column in fields(Spans) if column.name.startswith("range_")]

AnySpans = TypeVar("AnySpans", bound=Spans)


def joined_spans(parts: Sequence[AnySpans], kinds: Sequence[int]) -> AnySpans:
    """Several of one file as one; each has its number of `kinds` of rows, and `range_origin` still counts in each."""
    if len(parts) == 1:
        return parts[0]
    first_row = np.cumsum([0, *(len(part.row_offset) for part in parts)])
    first_kind = np.cumsum([0, *kinds]).astype(np.uint32)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in (*_RANGE_COLUMNS, "row_offset")
    }
    columns["range_first_row"] += np.repeat(first_row[:-1], [len(part) for part in parts])
    columns["row_rule"] = np.concatenate(
        [part.row_rule + first for part, first in zip(parts, first_kind[:-1], strict=True)]
    )
    return replace(parts[0], **columns)
