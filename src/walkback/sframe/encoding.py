"""`Section` to bytes: the inverse of `decode`.

What the section records is written where it records it, so `encode(decode(b)) == b`. Nothing is rounded or cut: a
value that its field cannot hold raises `InexpressibleError`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from walkback.base.arch import ByteOrder, check_byteorder
from walkback.base.arrays import I64, U8
from walkback.base.errors import InexpressibleError
from walkback.sframe import _rows, layout
from walkback.sframe.section import Section


def encode(section: Section) -> bytes:
    """The bytes of a section.

    >>> [source] = walkback.sframe.read("a.out")
    >>> walkback.sframe.encode(walkback.sframe.decode(source.data)) == source.data
    True
    """
    return encoded(section).tobytes()


def encoded(section: Section) -> memoryview:
    """The same, without a copy."""
    if section.version not in layout.VERSIONS:
        message = f"version {section.version} is not known; versions 1, 2 and 3 are"
        raise InexpressibleError(message, rule="header-version")
    faulty = np.flatnonzero(section.functions.fault)
    if len(faulty):
        message = "its rows could not be read, so they cannot be written"
        raise InexpressibleError(message, function=f"function {faulty[0]}", rule="function-unreadable")
    if not 0 <= section.length <= _content(section):
        message = f"the section would have {section.length} bytes and contents for at most {_content(section)}"
        raise InexpressibleError(message, rule="section-length")
    out = np.zeros(section.length, np.uint8)
    for position, content in section.gaps:
        _put(out, position, np.frombuffer(content, np.uint8))
    _put(out, 0, header_entry(section))
    _put(out, layout.HEADER_SIZE, np.frombuffer(section.auxiliary, np.uint8))
    _put(out, section.fde_start, index_entries(section))
    _write_rows(section, out)
    return out.data


def with_byteorder(section: Section, order: ByteOrder) -> Section:
    """The same section in the other byte order, for encoding. Gaps, whose meaning nobody knows, keep their bytes.

    >>> [section] = walkback.ElfFile("a.out").sframe
    >>> walkback.sframe.encode(walkback.sframe.with_byteorder(section.section, "big"))[:3].hex()
    'dee203'
    """
    check_byteorder(order)
    return replace(section, byteorder=order)


def _content(section: Section) -> int:
    """How many bytes the parts of the section have; parts can share bytes."""
    index = len(section.functions) * (section.fde_size + layout.ATTRIBUTE_SIZE)
    lengths = section.shapes.length.astype(np.uint8)  # 61 at most
    rows = 4 * len(section.row_shape) + int(lengths[section.row_shape].sum(dtype=np.int64))
    return section.header_end + index + rows + sum(len(content) for _, content in section.gaps)


def _put(out: U8, position: int, part: npt.NDArray[np.generic]) -> None:
    raw = part.reshape(-1).view(np.uint8)
    if len(raw) and not 0 <= position <= len(out) - len(raw):
        message = f"{len(raw)} bytes at {position:#x} do not fit into the section of {len(out):#x} bytes"
        raise InexpressibleError(message, offset=position, rule="section-length")
    out[position : position + len(raw)] = raw


def header_entry(section: Section) -> npt.NDArray[np.generic]:
    """The header as it is on disk."""
    header = np.zeros(1, layout.header_dtype(section.byteorder))
    names = header.dtype.names or ()
    values = tuple(layout.MAGIC if name == "magic" else getattr(section, name) for name in names)
    with suppress(OverflowError):
        header[0] = values
    if header[0].item() != values:  # then set each alone, to name the first that does not fit
        for name, value in zip(names, values, strict=True):
            _fill(header, name, np.array([value], np.int64))
    return header


def _fill(table: npt.NDArray[np.void], name: str, column: npt.NDArray[np.generic]) -> None:
    """Set a column, or name the first entry whose value the field cannot hold."""
    table[name] = column.astype(table.dtype[name])
    unlike = table[name] != column
    if unlike.any():
        wrong = int(unlike.argmax())
        size = 8 * table.dtype[name].itemsize
        where = f"function {wrong}: " if len(table) > 1 else ""
        raise InexpressibleError(f"{where}{name} {column[wrong]} does not fit into {size} bits", rule="field-range")


def index_entries(section: Section) -> npt.NDArray[np.generic]:
    """The entries of the index as they are on disk."""
    functions = section.functions
    index = np.zeros(len(functions), layout.fde_dtype(section.version, section.byteorder))
    for name in index.dtype.names or ():
        _fill(index, name, getattr(functions, name))
    return index


def _write_rows(section: Section, out: U8) -> None:
    functions = section.functions
    position = section.fre_start + functions.fre_offset.astype(np.int64)
    if section.version == 3:
        attributes = np.zeros(len(functions), layout.attribute_dtype(section.byteorder))
        for name in attributes.dtype.names or ():
            _fill(attributes, name, getattr(functions, name))
        if len(position) and int(position.max()) + layout.ATTRIBUTE_SIZE > len(out):
            raise InexpressibleError("an attribute record would end after the section", rule="section-length")
        if len(position):
            layout.attribute_bytes(out)[position] = attributes.view(f"V{layout.ATTRIBUTE_SIZE}")
        position += layout.ATTRIBUTE_SIZE
    width = np.array(layout.FRE_START_SIZES, np.uint8)[functions.fre_type]
    shape_bytes, shape_first = _shape_octets(section)
    try:
        wrong = _rows.encode_rows(
            out,
            position,
            functions.rows,
            width,
            section.row_start,
            section.row_shape,
            shape_bytes,
            shape_first,
            section.byteorder == "big",
        )
    except IndexError:
        raise InexpressibleError("rows would end after the section", rule="section-length") from None
    if wrong >= 0:
        message = f"row {wrong} starts at {section.row_start[wrong]:#x}, which its FRE type cannot hold"
        raise InexpressibleError(message, rule="row-start-range")


def _shape_octets(section: Section) -> tuple[U8, I64]:
    """The bytes of every shape one after the other, and where each begins."""
    shapes = section.shapes
    first = np.zeros(len(shapes) + 1, np.int64)
    np.cumsum(shapes.length, out=first[1:])
    octets = np.zeros(int(first[-1]), np.uint8)
    wrong = _rows.encode_words(octets, first, shapes.info, shapes.first_word, shapes.words, section.byteorder == "big")
    if wrong >= 0:
        raise InexpressibleError(f"data word {int(shapes.words[wrong])} does not fit its size", rule="word-range")
    return octets, first
