"""A section split into what its bytes are for."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U8
from walkback.base.dataclass import dataclass
from walkback.sframe import layout
from walkback.sframe.section import Section

_HEADER, _INDEX, _ATTRIBUTE, _START, _INFO, _WORD = range(1, 7)
_INDEX_PADDING = 2
"""Bytes of an index entry of version 2 that say nothing."""


@dataclass(slots=True)
class Parts:
    """Bytes by what they are for; together they are the section."""

    header: int = 0
    """The header, with the auxiliary header."""
    index: int = 0
    """The index, without its padding."""
    padding: int = 0
    """The padding in the index of version 2."""
    attributes: int = 0
    """The records before the rows of a function, in version 3."""
    starts: int = 0
    """The offsets at which rows start."""
    info: int = 0
    """The info bytes of rows."""
    words: int = 0
    """The data words of rows."""
    other: int = 0
    """Unused bytes."""

    @property
    def total(self) -> int:
        """Bytes of the section."""
        held = (self.header, self.index, self.padding, self.attributes, self.starts, self.info, self.words, self.other)
        return sum(held)


@dataclass(frozen=True, slots=True)
class RowLengths:
    """Lengths of rows, and of functions in the FRE sub-section."""

    owner: I64
    """The function of each row."""
    width: I64
    """Bytes of each row's start."""
    words: I64
    """Bytes of each row's words."""
    body: I64
    """Bytes of each function's rows, with its attribute record."""

    @classmethod
    def of(cls, section: Section) -> RowLengths:
        """Those of a section."""
        functions = section.functions
        owner = np.repeat(np.arange(len(functions)), functions.rows)
        width = functions.start_size.astype(np.int64)[owner]
        words = section.shapes.length[section.row_shape] - 1
        sums = np.concatenate(([0], np.cumsum(width + 1 + words)))
        body = sums[functions.first_row + functions.rows] - sums[functions.first_row] + _head(section)
        return cls(owner, width, words, body)


def _head(section: Section) -> int:
    return layout.ATTRIBUTE_SIZE if section.version == 3 else 0


def parts_of_built(section: Section) -> Parts:
    """What the bytes of a section that was built here are for: its functions have no gaps between them."""
    parts = _without_rows(section)
    parts.attributes = _head(section) * len(section.functions)
    parts.starts = int((section.functions.rows * section.functions.start_size).sum())
    parts.info = len(section.row_start)
    parts.words = section.fre_len - parts.attributes - parts.starts - parts.info
    return parts


def parts_of(section: Section) -> Parts:
    """What the bytes of a section are for."""
    rows, functions = RowLengths.of(section), section.functions
    order = np.argsort(functions.fre_offset, kind="stable")
    begin = functions.fre_offset[order].astype(np.int64)
    end = begin + rows.body[order]
    parts = _without_rows(section)
    apart = section.fre_start >= section.fde_end and bool((end[:-1] <= begin[1:]).all())
    if apart and not functions.fault.any():
        parts.attributes = _head(section) * len(functions)
        parts.starts, parts.info, parts.words = int(rows.width.sum()), len(rows.owner), int(rows.words.sum())
    else:
        counts = np.bincount(_marks(section, rows), minlength=_WORD + 1).tolist()
        parts.attributes, parts.starts, parts.info, parts.words = counts[_ATTRIBUTE:]
    parts.other = section.length - parts.total
    return parts


def _without_rows(section: Section) -> Parts:
    """The parts in front of the rows: header and index."""
    count = len(section.functions)
    padding = _INDEX_PADDING * count if section.version == 2 else 0
    return Parts(header=section.header_end, index=count * section.fde_size - padding, padding=padding)


def _marks(section: Section, rows: RowLengths) -> U8:
    """What each byte is for, where several functions have the same bytes; the header and the index are left out."""
    marks = np.zeros(section.length, np.uint8)
    if section.version == 3:
        begin = section.fre_start + section.functions.fre_offset.astype(np.int64)
        begin = begin[begin + layout.ATTRIBUTE_SIZE <= section.length]
        for away in range(layout.ATTRIBUTE_SIZE):
            marks[begin + away] = _ATTRIBUTE
    place = section.row_offsets()
    info = place + rows.width
    for away in range(int(rows.words.max(initial=0))):
        marks[info[rows.words > away] + 1 + away] = _WORD
    for away in range(int(rows.width.max(initial=0))):
        marks[place[rows.width > away] + away] = _START
    marks[info] = _INFO
    marks[: section.header_end] = _HEADER
    marks[section.fde_start : section.fde_end] = _INDEX
    return marks
