"""Bytes to `Section`.

Every length, offset and count is checked before use, and no size that the bytes claim decides an allocation. What is
wrong with the header, or makes the index unreachable, raises `SFrameError`; a function whose rows cannot be read keeps
those that can and carries a fault, so that the others stay usable and the checker can name them all. `decode` refuses
faults unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from walkback.arrays import I64, U8, U32
from walkback.errors import SFrameError
from walkback.sframe import _rows, layout
from walkback.sframe.layout import ByteOrder
from walkback.sframe.section import Fault, Functions, Section, Shapes, start_bases

Buffer = bytes | bytearray | memoryview

_SHARED_ROWS: Final = 1 << 16
"""Rows that functions may share in the smallest section."""

FAULT_WORDS: Final = {
    Fault.CUT_OFF: "a row runs over the end of the FRE sub-section",
    Fault.WORD_SIZE: "a row has word size code 3, which means nothing",
    Fault.FRE_TYPE: "the FRE type is none of ADDR1, ADDR2 and ADDR4",
    Fault.ATTRIBUTE: "the attribute record does not lie in the FRE sub-section",
    Fault.SHARED: "functions claim more rows than the section has bytes",
}


def decode(data: Buffer, *, address: int = 0, faults: bool = False) -> Section:
    """Read one section; what follows its FRE sub-section is kept as a gap.

    `address` is where the first byte is loaded. With `faults`, functions whose rows cannot be read are returned with
    `Functions.fault` set instead of raising.
    """
    view = memoryview(data).cast("B")
    header, order = _header(view)
    section = _body(view, header, order, address)
    if not faults and section.functions.fault.any():
        function = int(np.flatnonzero(section.functions.fault)[0])
        fault = Fault(int(section.functions.fault[function]))
        raise SFrameError(
            FAULT_WORDS[fault],
            offset=int(section.functions.fault_offset[function]),
            function=f"function {function}",
            rule=fault_rule(fault),
        )
    return section


def fault_rule(fault: Fault) -> str:
    """The code of the rule that a fault breaks, as `check` lists it."""
    return {
        Fault.CUT_OFF: "row-cut-off",
        Fault.WORD_SIZE: "row-word-size",
        Fault.FRE_TYPE: "function-fre-type",
        Fault.ATTRIBUTE: "function-attribute",
        Fault.SHARED: "rows-shared",
    }[fault]


def pieces(data: Buffer, *, address: int = 0, faults: bool = False) -> Iterator[tuple[int, Section]]:
    """Read the complete sections that a linker without knowledge of SFrame put one after the other.

    Yields the position of each and what it says. Between two there may be zeros up to the alignment of 8. What follows
    the last is kept as its tail.
    """
    view = memoryview(data).cast("B")
    position = 0
    while True:
        following = _next_piece(view, position)
        stop = len(view) if following is None else following
        try:
            section = decode(view[position:stop], address=address + position, faults=faults)
        except SFrameError as error:
            error.offset = position + (error.offset or 0)
            if position:
                error.message = f"in the further section at {position:#x}, {error.message}"
            raise
        yield position, section
        if following is None:
            return
        position = following


def _next_piece(view: memoryview, position: int) -> int | None:
    """Where the next header stands after the section at `position`, if there is one."""
    try:
        header, order = _header(view[position:])
    except SFrameError:
        return None
    parts = layout.HEADER_SIZE + header["auxhdr_len"]
    index_size = header["num_fdes"] * layout.fde_dtype(header["version"], order).itemsize
    end = parts + max(header["fdeoff"] + index_size, header["freoff"] + header["fre_len"])
    for pad in range(8):
        start = position + end + pad
        if start + layout.HEADER_SIZE > len(view):
            return None
        if bytes(view[start : start + 2]) in (b"\xe2\xde", b"\xde\xe2") and start % 4 == position % 4:
            return int(start) if view[start + 2] in layout.VERSIONS else None
        if view[start]:
            return None
    return None


def _header(view: memoryview) -> tuple[dict[str, int], ByteOrder]:
    """The header's fields, and the byte order that its magic number tells."""
    if len(view) < layout.HEADER_SIZE:
        message = f"{len(view)} bytes are too few for a header of {layout.HEADER_SIZE}"
        raise SFrameError(message, offset=0, rule="header-size")
    order: ByteOrder = "little" if view[0] == layout.MAGIC & 0xFF else "big"
    record = np.frombuffer(view, layout.header_dtype(order), 1)[0]
    header = dict(zip(record.dtype.names, record.item(), strict=True))
    if header["magic"] != layout.MAGIC:
        message = f"the magic number is {bytes(view[:2]).hex(' ')}, not e2 de or de e2"
        raise SFrameError(message, offset=0, rule="header-magic")
    if header["version"] not in layout.VERSIONS:
        message = f"version {header['version']} is not known; versions 1, 2 and 3 are"
        raise SFrameError(message, offset=2, rule="header-version")
    end = layout.HEADER_SIZE + header["auxhdr_len"]
    if end > len(view):
        message = f"the auxiliary header of {header['auxhdr_len']} bytes runs over the end at {len(view):#x}"
        raise SFrameError(message, offset=7, rule="header-auxiliary")
    table = end + header["fdeoff"] + header["num_fdes"] * layout.fde_dtype(header["version"], order).itemsize
    if header["num_fdes"] and table > len(view):
        message = (
            f"the index of {header['num_fdes']} functions would end at {table:#x}, the section ends at {len(view):#x}"
        )
        raise SFrameError(message, offset=8, rule="index-bounds")
    rows = end + header["freoff"] + header["fre_len"]
    if rows > len(view):
        message = f"the FRE sub-section would end at {rows:#x}, the section ends at {len(view):#x}"
        raise SFrameError(message, offset=0x10, rule="rows-bounds")
    return header, order


def _body(view: memoryview, header: dict[str, int], order: ByteOrder, address: int) -> Section:
    """Index, rows and gaps of a section whose header holds."""
    version = header["version"]
    auxiliary = bytes(view[layout.HEADER_SIZE : layout.HEADER_SIZE + header["auxhdr_len"]])
    header_end = layout.HEADER_SIZE + len(auxiliary)
    dtype = layout.fde_dtype(version, order)
    index_start = header_end + header["fdeoff"]
    count = header["num_fdes"]
    index = np.frombuffer(view, dtype, count, index_start) if count else np.zeros(0, dtype)
    fre_start = header_end + header["freoff"]
    fre_end = fre_start + header["fre_len"]
    functions = _functions(view, index, version, order, fre_start, fre_end)
    block_start = functions.fre_offset.astype(np.int64) + fre_start
    info_offset = block_start + 2 if version == 3 else index_start + np.arange(count) * dtype.itemsize + 16
    row_start, row_shape, shapes, row_end = _decode_rows(
        view, functions, block_start, fre_end, info_offset, order, version
    )
    section = Section(
        version=version,
        flags=header["flags"],
        abi_arch=header["abi_arch"],
        cfa_fixed_fp_offset=header["cfa_fixed_fp_offset"],
        cfa_fixed_ra_offset=header["cfa_fixed_ra_offset"],
        auxiliary=auxiliary,
        num_fdes=count,
        num_fres=header["num_fres"],
        fre_len=header["fre_len"],
        fdeoff=header["fdeoff"],
        freoff=header["freoff"],
        byteorder=order,
        functions=functions,
        row_start=row_start,
        row_shape=row_shape,
        shapes=shapes,
        length=len(view),
        address=address,
    )
    section.code_address = functions.start.view(np.uint64) + start_bases(section)
    # The borders of the rows are parts without bytes, so that no gap reaches over them.
    borders = [(fre_start, fre_start), (fre_end, fre_end)]
    parts = [(0, header_end), (index_start, index_start + count * dtype.itemsize), *borders]
    section.gaps = _gaps(view, parts, block_start, row_end)
    return section


def _functions(
    view: memoryview, index: np.ndarray, version: int, order: ByteOrder, fre_start: int, fre_end: int
) -> Functions:
    """The columns of the index, in version 3 with those of the attribute records."""
    count = len(index)
    fault = np.zeros(count, np.uint8)
    fault_offset = np.zeros(count, np.int64)
    if version == 3:
        position = index["fre_offset"].astype(np.int64) + fre_start
        outside = position + layout.ATTRIBUTE_SIZE > fre_end
        fault[outside] = Fault.ATTRIBUTE
        fault_offset[outside] = position[outside]
        attributes = layout.attribute_bytes(view)[np.where(outside, 0, position)].view(layout.attribute_dtype(order))
        attributes[outside] = 0
    else:
        attributes = index
    names = attributes.dtype.names or ()

    def column(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return attributes[name].astype(dtype) if name in names else np.zeros(count, dtype)

    return Functions(
        start=index["start"].astype(np.int64),
        size=index["size"].astype(np.uint32),
        fre_offset=index["fre_offset"].astype(np.uint32),
        num_fres=column("num_fres", np.uint32),
        info=column("info", np.uint8),
        info2=column("info2", np.uint8),
        rep_size=column("rep_size", np.uint8),
        padding=column("padding", np.uint16),
        first_row=np.zeros(count, np.int64),
        rows=np.zeros(count, np.int64),
        fault=fault,
        fault_offset=fault_offset,
    )


def _decode_rows(
    view: memoryview,
    functions: Functions,
    block_start: I64,
    fre_end: int,
    info_offset: I64,
    order: ByteOrder,
    version: int,
) -> tuple[U32, U32, Shapes, I64]:
    """Read all rows; sets the row counts and faults of the functions. Also returns where each function's rows end."""
    position = block_start + (layout.ATTRIBUTE_SIZE if version == 3 else 0)
    claimed = functions.num_fres.astype(np.int64)
    _set_fault(functions, functions.fre_type >= len(layout.FRE_START_SIZES), Fault.FRE_TYPE, info_offset)
    claimed[functions.fault != 0] = 0
    # A row has two bytes or more, so claims that cannot be true cost nothing.
    room = np.maximum(fre_end - position, 0) // 2
    too_many = claimed > room
    feasible = np.where(too_many, room + 1, claimed)
    # Functions may share rows, but not so many that a small section fills the memory.
    most = len(view) // 2 + _SHARED_ROWS
    over = too_many & (np.cumsum(np.where(too_many, feasible, 0)) > most)
    feasible[over] = 0
    _set_fault(functions, over, Fault.CUT_OFF, position)
    over = ~too_many & (np.cumsum(np.where(too_many, 0, feasible)) > most)
    feasible[over] = 0
    _set_fault(functions, over & (claimed > 0), Fault.SHARED, position)
    width: U8 = np.array((*layout.FRE_START_SIZES, *(1,) * 13), np.uint8)[functions.fre_type]
    rows, fault, row_start, row_shape, at, fde_type = _rows.decode_rows(
        view, fre_end, position, feasible, width, functions.fde_type, order == "big"
    )
    _set_fault(functions, fault == 1, Fault.CUT_OFF, position)
    _set_fault(functions, fault == 2, Fault.WORD_SIZE, position)
    functions.rows = rows
    functions.first_row = np.cumsum(rows) - rows
    return row_start, row_shape, Shapes(fde_type, *_rows.decode_words(view, at, order == "big")), position


def _set_fault(functions: Functions, where: np.ndarray, fault: Fault, offset: I64) -> None:
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
