"""Files with symbols, and the index of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elfbuilder import ElfBuilder
from walkback.base.arch import ByteOrder
from walkback.elf import ElfFile, layout
from walkback.symbols import SymbolIndex

NOTYPE, OBJECT, FUNC, SECTION, FILE, TLS, IFUNC = 0, 1, 2, 3, 4, 6, 10


def elf_of(
    symbols: Sequence[tuple[Any, ...]],
    *,
    order: ByteOrder = "little",
    machine: int = 62,
    kind: int = layout.ET_DYN,
    dynamic: tuple[tuple[str, int], ...] = (),
) -> ElfFile:
    """Section 1 is code at 0x1000, section 2 more code at 0x3000, section 3 data at 0x5000."""
    linked = kind != layout.ET_REL
    builder = ElfBuilder(order, machine, kind)
    builder.code(".text", 0x1000, addr=0x1000 * linked)
    builder.code(".text.two", 0x1000, addr=0x3000 * linked)
    builder.section(".data", bytes(64), flags=3, addr=0x5000 * linked)
    for name, number, entries in ((".symtab", 2, symbols), (".dynsym", 11, dynamic)):
        if entries:
            table = builder.symtab(name, number)
            for label, value, *rest in entries:
                builder.symbol(table, label, value, **{"section": 1, **(rest[0] if rest else {})})
    return ElfFile(bytes(builder.build()), "test.elf")


def index_of(*symbols: tuple[Any, ...], **options: Any) -> SymbolIndex:
    return SymbolIndex(elf_of(symbols, **options))
