"""Tables of Go's functions, written as Go's linker lays them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from elfbuilder import ElfBuilder
from walkback.gopclntab.layout import Layout

if TYPE_CHECKING:
    from walkback.base.arch import ByteOrder

TEXT, TABLE, MODULE = 0x401000, 0x500000, 0x600000
RW, RX = 6, 5


@dataclass
class Function:
    """Bytes of code, and where the depth of the stack becomes what."""

    name: str
    size: int
    depths: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    covered: int | None = None
    flag: int = 0


def uleb(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def values(function: Function, quantum: int) -> bytes:
    """The table of depths: by how much each changes, and for how long it holds."""
    found, before = b"", -1
    ends = [offset for offset, _ in function.depths[1:]]
    covered = function.size if function.covered is None else function.covered
    for (offset, depth), end in zip(function.depths, [*ends, covered], strict=True):
        change, before = depth - before, depth
        found += uleb(change << 1 if change >= 0 else ~(change << 1)) + uleb((end - offset) // quantum)
    return found + b"\0"


def encoded(
    functions: list[Function],
    layout: Layout = Layout.GO_1_20,
    *,
    order: ByteOrder = "little",
    pointer: int = 8,
    quantum: int = 1,
    text: int = TEXT,
    header_text: int | None = None,
) -> bytes:
    """The whole table; functions with the same depths share them, as Go's linker lets them."""

    def word(value: int, width: int) -> bytes:
        return (value % (1 << (8 * width))).to_bytes(width, order)

    relative = layout in {Layout.GO_1_18, Layout.GO_1_20}
    width = 4 if relative else pointer
    words = 1 if layout is Layout.GO_1_2 else 8 if relative else 7
    header = 8 + pointer * words
    names, tables = b"\0", b"\0"
    name_at, depths_at = [], []
    written: dict[bytes, int] = {}
    for one in functions:
        name_at.append(len(names))
        names += one.name.encode() + b"\0"
        depths = values(one, quantum)
        if depths not in written:
            written[depths] = len(tables)
            tables += depths
        depths_at.append(written[depths])
    listed = width * (2 * len(functions) + 1)
    entry = {Layout.GO_1_2: 32, Layout.GO_1_16: 36, Layout.GO_1_18: 36, Layout.GO_1_20: 40}[layout] + width
    names_begin = header if words > 1 else header + listed + entry * len(functions)
    tables_begin = names_begin + len(names)
    list_begin = -(-(tables_begin + len(tables)) // 8) * 8 if words > 1 else header
    base = list_begin if words > 1 else 0
    """What places of entries count from."""
    place, at, rows, entries = list_begin + listed, text, b"", b""
    for number, one in enumerate(functions):
        start = at - text if relative else at
        rows += word(start, width) + word(place + len(entries) - base, width)
        away = (0, 0) if words > 1 else (names_begin, tables_begin)
        body = word(name_at[number] + away[0], 4) + word(0, 4) + word(0, 4) + word(depths_at[number] + away[1], 4)
        body = body.ljust(entry - width, b"\0")
        flag = {Layout.GO_1_16: 33, Layout.GO_1_18: 33, Layout.GO_1_20: 37}.get(layout)
        if flag is not None:
            body = body[:flag] + bytes([one.flag]) + body[flag + 1 :]
        entries += word(start, width) + body
        at += one.size
    rows += word(at - text if relative else at, width)
    if words == 1:
        numbers = [len(functions)]
        rest = rows + entries + names + tables
    else:
        numbers = [len(functions), 0, names_begin, 0, 0, tables_begin, list_begin]
        if relative:
            numbers.insert(2, text if header_text is None else header_text)
        rest = (names + tables).ljust(list_begin - header, b"\0") + rows + entries
    head = word(layout, 4) + bytes([0, 0, quantum, pointer])
    return head + b"".join(word(number, pointer) for number in numbers) + rest


def go_program(
    table: bytes,
    name: str,
    module: bytes = bytes(8),
    *,
    frames: tuple[str, bytes, int] | None = None,
    order: ByteOrder = "little",
    machine: int = 62,
) -> bytes:
    """A program with this table in a section of this name; `frames` are the name, contents and address of another."""
    builder = ElfBuilder(order, machine, kind=2)
    builder.code(size=0x100, addr=TEXT)
    builder.section(name, table, flags=2, addr=TABLE)
    builder.section(".noptrdata", module, flags=3, addr=MODULE)
    if frames is not None:
        builder.section(frames[0], frames[1], flags=2, addr=frames[2])
    builder.section(".go.buildinfo", bytes(16), flags=3, addr=MODULE + 0x1000)
    builder.segment(1, ".text", flags=RX, vaddr=TEXT)
    builder.segment(1, name, vaddr=TABLE)
    builder.segment(1, ".noptrdata", flags=RW, vaddr=MODULE)
    return bytes(builder.build())
