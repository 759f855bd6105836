"""Bytes of `.gopclntab` to functions and their stack depths."""

from __future__ import annotations

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I32, I64, U8, U32, U64, Bools, distinct
from walkback.base.dataclass import dataclass
from walkback.base.errors import GoError
from walkback.elf.stringtable import find_string
from walkback.gopclntab import _values
from walkback.gopclntab.layout import ENTRY_SHAPES, HEAD, HEADER_WORDS, EntryShape, Layout

Buffer = bytes | bytearray | memoryview

_POINTERS = (4, 8)
_LONGEST_NAME = 1 << 16
_BYTES_OF_ROW = 8
"""Of a table for each row of depths, at least. Go has 32 or more, with what is shared."""
_FEW_ROWS = 4096
"""As many are always read."""
_FIRST_FUNCTIONS = 16
"""As many are looked at before all are read."""
_ORDERS: tuple[ByteOrder, ...] = ("little", "big")
_QUANTA = (1, 2, 4)
"""Lengths that instructions of Go's machines are multiples of."""


@dataclass(slots=True)
class FunctionTable:
    """The functions of a Go program, by address.

    >>> [source] = walkback.gopclntab.read("hello-go")
    >>> table = source.functions
    >>> len(table), table.layout.name, table.name(0)
    (2, 'GO_1_20', 'main.main')
    """

    data: memoryview
    layout: Layout
    byteorder: ByteOrder
    pointer_size: int
    text: int
    """Where the code begins."""
    start: U64
    end: U64
    """Where the next one begins."""
    size: U64
    """Bytes of the code whose depths are known; padding is behind it."""
    name_place: I64
    """Where the name is in the table; -1 if that is not in it."""
    flag: U8
    """Bits of `Flag`; 0 before Go 1.17."""
    first_row: I64
    rows: I64
    fault: U8
    """1 if the depths cannot be read."""
    row_offset: U32
    """From the start of the function."""
    row_depth: I32
    """By how many bytes the stack pointer is below where it was at the entry."""

    header: Header
    entry_place: I64
    """Where the entry is in the table, past its start."""

    def __len__(self) -> int:
        return len(self.start)

    def name(self, number: int) -> str | None:
        """The name of a function, as Go has it."""
        return self.text_at(int(self.name_place[number]))

    def text_at(self, place: int) -> str | None:
        """The text at a place in the table; None where there is none."""
        if not 0 <= place < len(self.data):
            return None
        end = bytes(self.data[place : place + _LONGEST_NAME]).find(0)
        return bytes(self.data[place : place + end]).decode(errors="backslashreplace") if end >= 0 else None

    def locate(self, addresses: U64) -> tuple[list[str | None], U64]:
        """Of each address the name of the function that holds it, and where that begins."""
        number = np.searchsorted(self.start, addresses, "right") - 1
        inside = (number >= 0) & (addresses < self.end[number]) if len(self) else np.zeros(len(addresses), np.bool_)
        names: dict[int, str | None] = {one: self.name(one) for one in distinct(number[inside]).tolist()}
        found = [names[one] if here else None for one, here in zip(number.tolist(), inside.tolist(), strict=True)]
        return found, np.where(inside, self.start[number], np.uint64(0)) if len(self) else np.zeros_like(addresses)

    def named(self, *names: str) -> I64:
        """The numbers of the functions with one of these names; the ABI may follow it behind a dot."""
        places = np.where(self.name_place < 0, len(self.data), self.name_place)
        return find_string(self.data, places, *names, ends=b"\0.")


@dataclass(frozen=True, slots=True)
class Header:
    """What a table begins with."""

    layout: Layout
    byteorder: ByteOrder
    quantum: int
    pointer_size: int
    words: dict[str, int]

    @property
    def size(self) -> int:
        """Bytes of it."""
        return HEAD + self.pointer_size * len(self.words)


def read_header(data: Buffer) -> Header:
    """The header of a table, if its numbers agree with each other."""
    for byteorder in _ORDERS:
        number = int.from_bytes(data[:4], byteorder)
        if number in set(Layout) and len(data) >= HEAD:
            break
    else:
        raise GoError("this is no table of Go's functions", offset=0, rule="go-magic")
    layout = Layout(number)
    quantum, pointer_size = data[6], data[7]
    if data[4] or data[5] or quantum not in _QUANTA or pointer_size not in _POINTERS:
        raise GoError("the head has numbers that Go does not write", offset=4, rule="go-head")
    names = HEADER_WORDS[layout]
    end = HEAD + pointer_size * len(names)
    if len(data) < end:
        raise GoError("the table ends within its header", offset=0, rule="go-header")
    values = [int.from_bytes(data[at : at + pointer_size], byteorder) for at in range(HEAD, end, pointer_size)]
    header = Header(layout, byteorder, quantum, pointer_size, dict(zip(names, values, strict=True)))
    for name, value in header.words.items():
        if name != "text" and value > len(data):
            place = HEAD + pointer_size * names.index(name)
            message = f"the word for {name.replace('_', ' ')} leads beyond the table"
            raise GoError(message, offset=place, rule="go-header")
    return header


def begins_well(data: Buffer) -> bool:
    """Whether the header and the first functions are those of a table, which is soon known of a table of any size."""
    try:
        _functions(data, read_header(data), 0, _FIRST_FUNCTIONS)
    except GoError:
        return False
    return True


def decode(data: Buffer, *, text: int | None = None) -> FunctionTable:
    """Read a table; `text` is where the code begins, which the header need not say.

    Functions whose depths cannot be read keep their place, and a fault.

    >>> [source] = walkback.gopclntab.read("hello-go")
    >>> walkback.gopclntab.decode(source.data).size.tolist()
    [64, 64]
    """
    header = read_header(data)
    text = header.words.get("text", 0) if text is None else text
    start, place = _functions(data, header, text)
    shape = ENTRY_SHAPES[header.layout]
    entries = _entries(data, place, shape)
    depths = _word(entries, shape.depths, header).astype(np.int64)
    base = header.words.get("values", 0)
    most = len(data) // _BYTES_OF_ROW + _FEW_ROWS
    found = _values.depths(data, base, depths, (start[1:] - start[:-1]), header.quantum, most)
    if found.full >= 0:
        message = f"there are more than {most} rows of depths, too many for a table of {len(data)} bytes"
        raise GoError(message, offset=base + int(depths[found.full]), rule="go-depths")
    names = _word(entries, shape.name, header).astype(np.int64) + header.words.get("names", 0)
    names[(names < 0) | (names >= len(data))] = -1
    return FunctionTable(
        data=memoryview(data),
        layout=header.layout,
        byteorder=header.byteorder,
        pointer_size=header.pointer_size,
        text=text,
        start=start[:-1],
        end=start[1:],
        size=found.covered,
        name_place=names,
        flag=entries[:, shape.flag].copy() if shape.flag is not None else np.zeros(len(entries), np.uint8),
        first_row=found.first_row,
        rows=found.rows,
        fault=found.fault,
        row_offset=found.offset,
        row_depth=found.depth,
        header=header,
        entry_place=place,
    )


def _functions(data: Buffer, header: Header, text: int, most: int | None = None) -> tuple[U64, I64]:
    """Where each function begins, and behind them where the last one ends; and where each entry is, past its start.

    `most` are wanted.
    """
    count, base = header.words["functions"], header.words.get("entries", 0)
    list_at = base if "entries" in header.words else header.size
    width = 4 if "text" in header.words else header.pointer_size
    size = width * (2 * count + 1)
    if size > len(data) - list_at:
        raise GoError(f"the list of {count} functions ends beyond the table", offset=list_at, rule="go-functions")
    order = "<" if header.byteorder == "little" else ">"
    count = count if most is None else min(count, most)
    words = np.frombuffer(data, f"{order}u{width}", 2 * count + 1, list_at).astype(np.uint64)
    start = words[::2] + np.uint64(text if "text" in header.words else 0)
    if count and (start[1:] < start[:-1]).any():
        number = int(np.argmax(start[1:] < start[:-1]))
        message = "the functions are not in the order of their addresses"
        raise GoError(message, offset=list_at + 2 * width * (number + 1), rule="go-functions")
    shape = ENTRY_SHAPES[header.layout]
    place: I64 = words[1::2].astype(np.int64) + (base + width)
    outside: Bools = (place < 0) | (place > len(data) - shape.size)
    if outside.any():
        number = int(np.argmax(outside))
        message = f"the entry of function {number} is beyond the table"
        raise GoError(message, offset=list_at + width * (2 * number + 1), rule="go-functions")
    own = _as_words(np.frombuffer(data, np.uint8), place - width, width, order)
    wrong = own != words[:-1:2]
    if wrong.any():
        number = int(np.argmax(wrong))
        message = f"the entry of function {number} has another start than the list"
        raise GoError(message, offset=int(place[number]) - width, rule="go-functions")
    return start, place


def _as_words(contents: U8, place: I64, width: int, order: str) -> U64:
    """Numbers at places."""
    cells = contents[place[:, None] + np.arange(width)]
    return np.ascontiguousarray(cells).view(f"{order}u{width}").reshape(-1).astype(np.uint64)


def _entries(data: Buffer, place: I64, shape: EntryShape) -> U8:
    """The bytes of each entry, a row each."""
    found: U8 = np.frombuffer(data, np.uint8)[place[:, None] + np.arange(shape.size)]
    return found


def _word(entries: U8, at: int, header: Header) -> I32:
    order = "<" if header.byteorder == "little" else ">"
    return np.ascontiguousarray(entries[:, at : at + 4]).view(f"{order}i4").reshape(-1).astype(np.int32)
