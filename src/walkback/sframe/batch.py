"""Many complete sections in one place, read at once.

A linker without knowledge of SFrame concatenates the sections of thousands of objects. Those that differ in nothing
but their functions are one *batch*, which costs not much more than one section with as many functions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I64
from walkback.base.dataclass import dataclass
from walkback.base.errors import SFrameError
from walkback.sframe import layout
from walkback.sframe.decoding import Buffer, read_functions, refuse_faults, section_of
from walkback.sframe.header import Header, further, headers
from walkback.sframe.section import Section


@dataclass(frozen=True, slots=True)
class SectionBatch:
    """Sections that are alike, as one that has the functions of all."""

    section: Section
    """Its functions and rows with what they mean; it is nowhere in this form, so positions in it mean nothing."""
    position: I64
    """Where each section begins."""
    first: I64
    """The first function of each section; one entry more than there are sections."""
    field: I64
    """Where each function's start field is."""

    @property
    def counts(self) -> I64:
        """How many functions each section has."""
        return np.diff(self.first)

    def place(self, function: int) -> tuple[int, int]:
        """The position of a function's section, and the function's number in it."""
        piece = int(np.searchsorted(self.first, function, side="right")) - 1
        return int(self.position[piece]), function - int(self.first[piece])


def batches(
    data: Buffer, *, address: int = 0, faults: bool = False, starts: Sequence[int] = (0,)
) -> Iterator[SectionBatch]:
    """Read the complete sections that stand one after the other, as few batches as there are kinds of them.

    `address` and `faults` are as for `decode`. With several `starts` each is a place of its own in the data.
    """
    view = memoryview(data).cast("B")
    alike: dict[tuple[ByteOrder, tuple[int, ...], bool], list[tuple[int, Header]]] = {}
    for start, end in pairwise([*starts, len(view)]):
        try:
            for position, _, header, order in headers(view[start:end]):
                key = (order, header[1:6], header.auxhdr_len > 0)
                alike.setdefault(key, []).append((start + position, header))
        except SFrameError as error:
            error.offset = start + (error.offset or 0)
            raise
    for (order, *_), found in alike.items():
        batch = _read(view, found, order, address)
        if not faults:
            _refuse_faults(batch, starts)
        yield batch


def _read(view: memoryview, found: list[tuple[int, Header]], order: ByteOrder, address: int) -> SectionBatch:
    kind = found[0][1]
    position = np.array([one for one, _ in found], np.int64)
    of = dict(zip(Header._fields, np.array([header for _, header in found], np.int64).T, strict=True))
    count, start = of["num_fdes"], position + layout.HEADER_SIZE + of["auxhdr_len"]
    first = np.concatenate(([0], np.cumsum(count)))
    fde_start, fre_start = np.repeat(start + of["fdeoff"], count), np.repeat(start + of["freoff"], count)
    fre_end = fre_start + np.repeat(of["fre_len"], count)
    size = layout.FDE_SIZES[kind.version]
    field = fde_start + (np.arange(int(first[-1])) - np.repeat(first[:-1], count)) * size
    index = layout.index_bytes(view, kind.version)[field].view(layout.fde_dtype(kind.version, order))
    read = read_functions(view, index, field + layout.V1_INFO_OFFSET, fre_start, fre_end, kind.version, order)
    auxiliary = b"".join(bytes(view[at + layout.HEADER_SIZE : at + one.header_end]) for at, one in found)
    nowhere = kind._replace(num_fdes=len(index), num_fres=len(read.row_start), fre_len=0, fdeoff=0, freoff=0)
    section = section_of(nowhere, order, read, auxiliary, len(view), address)
    base = field if section.pcrel else np.repeat(position, count)
    start = read.functions.start.view(np.uint64)
    section.code_address = start + base.view(np.uint64) + np.uint64(address % 2**64)
    return SectionBatch(section, position, first, field)


def _refuse_faults(batch: SectionBatch, starts: Sequence[int]) -> None:
    functions = batch.section.functions
    if functions.fault.any():
        position, number = batch.place(int(np.flatnonzero(functions.fault)[0]))
        try:
            refuse_faults(functions)
        except SFrameError as error:
            error.function = f"function {number}"
            error.offset = (error.offset or 0) - position
            start = starts[bisect_right(starts, position) - 1]
            error = further(error, position - start)
            error.offset = start + (error.offset or 0)
            raise error from None
