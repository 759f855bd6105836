"""Files that the documents speak of."""

from __future__ import annotations

import struct

from elfbuilder import ElfBuilder
from gopclntab.gotables import Function, encoded, go_program
from sframebuilder import PCREL, row
from sframefiles import (
    PC64,
    SFRAME,
    SIZE,
    TEXT,
    linked,
    placing,
    relocatable,
    small,
    unplaced,
)


def of_go() -> bytes:
    """A program of Go with two functions."""
    depths = [(0, 0), (4, 24), (60, 0)]
    return go_program(encoded([Function("main.main", 64, depths), Function("main.init", 64)]), ".gopclntab")


def with_a_signal_frame() -> ElfBuilder:
    builder = small()
    builder.function(TEXT + 3 * SIZE, SIZE, [row(0, 1, [8])], signal=True)
    return linked(builder.bytes())


def concatenated() -> ElfBuilder:
    """A program as from a linker that knows nothing of SFrame: of two objects; with a program header to spare."""
    first = small(functions=2, flags=PCREL).bytes()
    first += bytes(-len(first) % 8)
    second = small(functions=3, flags=PCREL, address=SFRAME + len(first))
    del second.functions[:2]
    elf = linked(first + second.bytes(), segment=False)
    elf.segment(0, ".sframe")
    return elf


def joined() -> ElfBuilder:
    """An object as from `ld.lld -r`: its section is those of two objects."""
    first = unplaced(small(2, 2))
    first += bytes(-len(first) % 8)
    places = [(offset + len(first), kind, symbol, addend + 2 * SIZE) for offset, kind, symbol, addend in placing(2, 1)]
    return relocatable(first + unplaced(small(2, 1)), [*placing(2, 2), *places])


def with_a_group() -> ElfBuilder:
    """An object whose section tells of `.text` and of an inline function's, which is in a group."""
    elf = relocatable(small(functions=2), placing(3, 1))
    table = next(iter(elf.symbol_tables))
    group = elf.section(".group", kind=17, link=table, entsize=4)
    text = elf.section(".text.inline", bytes(SIZE), flags=0x206)
    symbol = elf.symbol(table, "inline", 0, section=text, size=SIZE, binding=2)
    (relocations,) = (one for one in elf.sections if one.name == ".rela.sframe")
    relocations.data += struct.pack("<QQq", 0x1C + 16, symbol << 32 | PC64, 0)
    elf.sections[group].data = struct.pack("<II", 1, text)
    elf.sections[group].fields["sh_info"] = symbol
    return elf
