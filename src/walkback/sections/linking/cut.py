"""One section laid out as several complete ones that follow each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from walkback.base.arrays import I64
from walkback.base.dataclass import dataclass
from walkback.sframe import layout
from walkback.sframe.encoding import encoded, header_entry, index_entries
from walkback.sframe.section import Section

_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Laid:
    """Complete sections and where they stand, or a single one."""

    contents: memoryview
    position: I64
    """Where each section begins."""
    length: I64
    first: I64
    """The first function of each section; one entry more than there are sections."""
    field: I64
    """Where each function's start field is."""


class OutOfReachError(Exception):
    """Functions, by their numbers in the section, whose starts do not fit their fields."""

    def __init__(self, functions: list[int]) -> None:
        super().__init__()
        self.functions = functions


def whole(section: Section) -> Laid:
    """The section as one."""
    count = len(section.functions)
    field = section.fde_start + np.arange(count) * section.fde_size
    length = np.array([section.length], np.int64)
    return Laid(encoded(section), np.zeros(1, np.int64), length, np.array([0, count], np.int64), field)


def cut(section: Section, key: I64, *, address: int | None = None) -> Laid:
    """A complete section for each run of functions that have one key; they have no gaps and no auxiliary header.

    With an `address` for the first, functions are at absolute addresses, and in order within each run. Raises
    `OutOfReachError`.
    """
    functions, count = section.functions, len(key)
    first = np.concatenate(([0], np.flatnonzero(np.diff(key)) + 1, [count] if count else [])).astype(np.int64)
    number = np.diff(first)
    begin = functions.fre_offset.astype(np.int64)[first[:-1]]
    end = np.append(begin[1:], section.fre_len)[: len(begin)]
    index_size = number * section.fde_size
    length = layout.HEADER_SIZE + index_size + end - begin
    room = -(-length // _ALIGNMENT) * _ALIGNMENT
    position = np.cumsum(room) - room
    field = np.repeat(position + layout.HEADER_SIZE - first[:-1] * section.fde_size, number)
    field += np.arange(count) * section.fde_size
    moved = replace(functions, fre_offset=functions.fre_offset - np.repeat(begin, number).astype(np.uint32))
    if address is not None:
        base = field if section.pcrel else np.repeat(position, number)
        away = section.code_address - np.uint64(address) - base.view(np.uint64)
        start = away.view(np.int64)
        if section.version < 3 and (far := np.flatnonzero((start < -(2**31)) | (start >= 2**31))).size:
            raise OutOfReachError(far.tolist())
        moved = replace(moved, start=start)
    entries = index_entries(replace(section, functions=moved))
    headers = np.repeat(header_entry(section), len(begin))
    headers["flags"] |= 0 if address is None else layout.F_FDE_SORTED
    headers["num_fdes"], headers["freoff"], headers["fre_len"] = number, index_size, end - begin
    rows = np.concatenate(([0], np.cumsum(functions.rows)))
    headers["num_fres"] = rows[first[1:]] - rows[first[:-1]]
    contents = _assembled(section, headers, entries, position, length, first, begin, end)
    return Laid(contents, position, length, first, field)


def _assembled(
    section: Section,
    headers: np.ndarray,
    entries: np.ndarray,
    position: I64,
    length: I64,
    first: I64,
    begin: I64,
    end: I64,
) -> memoryview:
    """Header, index and rows of each section at its place."""
    rows = encoded(section)[section.fre_start : section.end]
    parts = [one.reshape(-1).view(np.uint8).data for one in (headers, entries)]
    out = bytearray(int(position[-1] + length[-1]) if len(position) else 0)
    size, places = section.fde_size, (position, first[:-1], first[1:], begin, end)
    for number, (at, low, high, start, stop) in enumerate(zip(*(one.tolist() for one in places), strict=True)):
        head = layout.HEADER_SIZE * number
        piece = (parts[0][head : head + layout.HEADER_SIZE], parts[1][low * size : high * size], rows[start:stop])
        out[at : at + sum(map(len, piece))] = b"".join(piece)
    return memoryview(out)
