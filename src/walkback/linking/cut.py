"""One section cut into complete ones: for each text section of an object, or each of the sections it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from walkback.sframe import layout
from walkback.sframe.section import Functions, Section, start_bases

_ALIGNMENT = 8


def cut(section: Section, *, address: int | None = None) -> Iterator[tuple[int, Section]]:
    """A complete section for each run of functions that have one `code_section`, and where it stands behind the others.

    With an `address` for the first, functions are at absolute addresses and in order within each run.
    """
    assert section.code_section is not None
    runs = np.flatnonzero(np.diff(section.code_section)) + 1
    borders = [0, *runs.tolist(), len(section.code_section)]
    position = 0
    for first, end in pairwise(borders):
        if first == end:
            continue
        piece = _piece(section, first, end)
        if address is not None:
            piece.flags |= layout.F_FDE_SORTED
            piece.address = address + position
            piece.code_section = None
            piece.functions.start = (piece.code_address - start_bases(piece)).view(np.int64)
        yield position, piece
        position += -(-piece.length // _ALIGNMENT) * _ALIGNMENT


def _piece(section: Section, first: int, end: int) -> Section:
    functions = section.functions
    columns = {name: getattr(functions, name)[first:end] for name in Functions.__slots__}
    first_row = int(functions.first_row[first])
    last_row = int(functions.first_row[end - 1] + functions.rows[end - 1])
    first_octet = int(functions.fre_offset[first])
    last_octet = int(functions.fre_offset[end]) if end < len(functions) else section.fre_len
    columns["first_row"] = columns["first_row"] - first_row
    columns["fre_offset"] = columns["fre_offset"] - np.uint32(first_octet)
    index_size, fre_len = (end - first) * section.fde_size, last_octet - first_octet
    assert section.code_section is not None
    return replace(
        section,
        num_fdes=end - first,
        num_fres=last_row - first_row,
        fre_len=fre_len,
        freoff=index_size,
        functions=Functions(**columns),
        row_start=section.row_start[first_row:last_row],
        row_shape=section.row_shape[first_row:last_row],
        length=layout.HEADER_SIZE + index_size + fre_len,
        code_section=section.code_section[first:end],
        code_address=section.code_address[first:end],
    )
