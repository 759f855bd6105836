"""Bytes to `Section`.

Every length, offset and count is checked before use, and no size that the bytes claim decides an allocation. What is
wrong with the header, or makes the index unreachable, raises `SFrameError`; a function whose rows cannot be read keeps
those that can and carries a fault, so that the others stay usable and the checker can name them all. `decode` refuses
faults unless asked not to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I64, U32, Bools, is_one_of
from walkback.base.dataclass import dataclass
from walkback.base.errors import SFrameError
from walkback.sframe import _rows, layout
from walkback.sframe.header import Header, further, headers, read_header
from walkback.sframe.section import FunctionIndex, RowFault, Section, Shapes, start_bases

Buffer = bytes | bytearray | memoryview

_SHARED_ROWS: Final = 1 << 16
"""Rows that functions may share in the smallest section."""


def decode(data: Buffer, *, address: int = 0, faults: bool = False) -> Section:
    """Read one section; what follows its FRE sub-section is kept as a gap.

    `address` is where the first byte is loaded. With `faults`, functions whose rows cannot be read are returned with
    `FunctionIndex.fault` set instead of raising.

    >>> [source] = walkback.sframe.read("a.out")
    >>> section = walkback.sframe.decode(source.data, address=source.address)
    >>> section.version, [hex(start) for start in section.code_address.tolist()]
    (3, ['0x1000', '0x1020', '0x1060'])
    """
    view = memoryview(data).cast("B")
    header, order = read_header(view)
    section = _body(view, header, order, address)
    if not faults:
        refuse_faults(section.functions)
    return section


def refuse_faults(functions: FunctionIndex) -> None:
    """Raise an error for the first function whose rows cannot be read."""
    faulty = np.flatnonzero(functions.fault)
    if len(faulty):
        function = int(faulty[0])
        fault = RowFault(int(functions.fault[function]))
        offset = int(functions.fault_offset[function])
        raise SFrameError(fault.words, offset=offset, function=f"function {function}", rule=fault.rule)


def decode_all(data: Buffer, *, address: int = 0, faults: bool = False) -> Iterator[tuple[int, Section]]:
    """Read the complete sections that a linker without knowledge of SFrame put one after the other.

    Yields the position of each and what it says. Between two there may be zeros up to the alignment of 8. What follows
    the last is kept as its tail.

    >>> [source] = walkback.sframe.read("concatenated")
    >>> sections = walkback.sframe.decode_all(source.data)
    >>> [(position, len(section.functions)) for position, section in sections]
    [(0, 2), (104, 1)]
    """
    view = memoryview(data).cast("B")
    for position, stop, _, _ in headers(view):
        try:
            section = decode(view[position:stop], address=address + position, faults=faults)
        except SFrameError as error:
            raise further(error, position) from None
        yield position, section


def _body(view: memoryview, header: Header, order: ByteOrder, address: int) -> Section:
    """Index, rows and gaps of a section whose header holds."""
    dtype = layout.fde_dtype(header.version, order)
    count = header.num_fdes
    index = np.frombuffer(view, dtype, count, header.fde_start) if count else np.zeros(0, dtype)
    info_offset = header.fde_start + np.arange(count) * dtype.itemsize + layout.V1_INFO_OFFSET
    fre_start, fre_end = np.full(count, header.fre_start), np.full(count, header.end)
    read = read_functions(view, index, info_offset, fre_start, fre_end, header.version, order)
    auxiliary = bytes(view[layout.HEADER_SIZE : header.header_end])
    section = section_of(header, order, read, auxiliary, len(view), address)
    section.code_address = read.functions.start.view(np.uint64) + start_bases(section)
    # The borders of the rows are parts without bytes, so that no gap reaches over them.
    borders = [(header.fre_start, header.fre_start), (header.end, header.end)]
    parts = [(0, header.header_end), (header.fde_start, header.fde_end), *borders]
    section.gaps = _gaps(view, parts, read.block_start, read.block_end)
    return section


def section_of(header: Header, order: ByteOrder, read: Read, auxiliary: bytes, length: int, address: int) -> Section:
    """What was read, with the fields of a header; where the functions are is not known yet."""
    fields = {name: value for name, value in header._asdict().items() if name not in {"magic", "auxhdr_len"}}
    return Section(
        **fields,
        auxiliary=auxiliary,
        byteorder=order,
        functions=read.functions,
        row_start=read.row_start,
        row_shape=read.row_shape,
        shapes=read.shapes,
        length=length,
        address=address,
    )


@dataclass(frozen=True, slots=True)
class Read:
    """What the index and the rows say."""

    functions: FunctionIndex
    row_start: U32
    row_shape: U32
    shapes: Shapes
    block_start: I64
    """Where each function's part of the FRE sub-section begins."""
    block_end: I64


def read_functions(
    view: memoryview,
    index: np.ndarray,
    info_offset: I64,
    fre_start: I64,
    fre_end: I64,
    version: int,
    order: ByteOrder,
) -> Read:
    """Read functions of one version with their rows; their FRE sub-sections can be different ones."""
    functions = _functions(view, index, version, order, fre_start, fre_end)
    block_start = functions.fre_offset.astype(np.int64) + fre_start
    if version == 3:
        info_offset = block_start + layout.V3_INFO_OFFSET
    row_start, row_shape, shapes, block_end = _decode_rows(
        view, functions, block_start, fre_end, info_offset, order, version
    )
    return Read(functions, row_start, row_shape, shapes, block_start, block_end)


def _functions(
    view: memoryview, index: np.ndarray, version: int, order: ByteOrder, fre_start: I64, fre_end: I64
) -> FunctionIndex:
    """The columns of the index, in version 3 with those of the attribute records."""
    count = len(index)
    fault = np.zeros(count, np.uint8)
    fault_offset = np.zeros(count, np.int64)
    if version == 3:
        position = index["fre_offset"].astype(np.int64) + fre_start
        outside = position + layout.ATTRIBUTE_SIZE > fre_end
        fault[outside] = RowFault.ATTRIBUTE
        fault_offset[outside] = position[outside]
        attributes = layout.attribute_bytes(view)[np.where(outside, 0, position)].view(layout.attribute_dtype(order))
        attributes[outside] = 0
    else:
        attributes = index
    names = [name for name in attributes.dtype.names or () if name not in {"start", "size", "fre_offset"}]
    return FunctionIndex.zeros(
        count,
        start=index["start"],
        size=index["size"],
        fre_offset=index["fre_offset"],
        fault=fault,
        fault_offset=fault_offset,
        **{name: attributes[name] for name in names},
    )


def _decode_rows(
    view: memoryview,
    functions: FunctionIndex,
    block_start: I64,
    fre_end: I64,
    info_offset: I64,
    order: ByteOrder,
    version: int,
) -> tuple[U32, U32, Shapes, I64]:
    """Read all rows; sets the row counts and faults of the functions. Also returns where each function's rows end."""
    position = block_start + (layout.ATTRIBUTE_SIZE if version == 3 else 0)
    claimed = functions.num_fres.astype(np.int64)
    _set_fault(functions, functions.fre_type >= len(layout.FRE_START_SIZES), RowFault.FRE_TYPE, info_offset)
    claimed[functions.fault != 0] = 0
    # A row has two bytes or more, so claims that cannot be true cost nothing.
    room = np.maximum(fre_end - position, 0) // 2
    too_many = claimed > room
    # Functions may share rows, but a small section must not fill the memory that way.
    most = len(view) // 2 + _SHARED_ROWS
    if too_many.any() or int(claimed.sum()) > most:
        claimed = _feasible(functions, claimed, too_many, room, most, position)
    rows, fault, row_start, row_shape, at, fde_type = _rows.decode_rows(
        view, fre_end, position, claimed, functions.start_size, functions.fde_type, order == "big"
    )
    _set_fault(functions, is_one_of(fault, RowFault.CUT_OFF), RowFault.CUT_OFF, position)
    _set_fault(functions, is_one_of(fault, RowFault.WORD_SIZE), RowFault.WORD_SIZE, position)
    functions.rows = rows
    functions.first_row = np.cumsum(rows) - rows
    return row_start, row_shape, Shapes(fde_type, *_rows.decode_words(view, at, order == "big")), position


def _feasible(functions: FunctionIndex, claimed: I64, too_many: Bools, room: I64, most: int, position: I64) -> I64:
    """How many rows of each function are worth trying to read, where not all that are claimed can be there."""
    feasible = np.where(too_many, room + 1, claimed)
    over = too_many & (np.cumsum(np.where(too_many, feasible, 0)) > most)
    feasible[over] = 0
    _set_fault(functions, over, RowFault.CUT_OFF, position)
    over = ~too_many & (np.cumsum(np.where(too_many, 0, feasible)) > most)
    feasible[over] = 0
    _set_fault(functions, over & (claimed > 0), RowFault.SHARED, position)
    return feasible


def _set_fault(functions: FunctionIndex, where: np.ndarray, fault: RowFault, offset: I64) -> None:
    """Mark functions that have no fault yet."""
    if not where.any():
        return
    new = where & (functions.fault == 0)
    functions.fault[new] = fault
    functions.fault_offset[new] = offset[new]


def _gaps(
    view: memoryview, parts: list[tuple[int, int]], block_start: I64, block_end: I64
) -> tuple[tuple[int, memoryview], ...]:
    """The bytes that no part covers."""
    starts = np.concatenate(([part[0] for part in parts], block_start, [len(view)])).astype(np.int64)
    ends = np.concatenate(([part[1] for part in parts], block_end, [len(view)])).astype(np.int64)
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    covered = np.maximum.accumulate(np.concatenate(([0], ends[:-1])))
    return tuple((int(covered[i]), view[covered[i] : starts[i]].toreadonly()) for i in np.flatnonzero(starts > covered))
