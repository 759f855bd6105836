"""Files around an SFrame section, to be read: `small` is a section, `linked` and `relocatable` are ELF files."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from elfbuilder import ElfBuilder, Image
from sframebuilder import PCREL, SFrameBuilder, row
from walkback.base.arch import ByteOrder
from walkback.sframe.files import read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


TEXT, SFRAME = 0x1000, 0x2000
"""Where `linked` puts code and section."""

SIZE = 32
"""Bytes of each function of `small`."""

GNU_SFRAME = 0x6FFFFFF4

PT_GNU_SFRAME = 0x6474E554

PC32, PC64 = 2, 24


def small(version: int = 3, functions: int = 3, **options: Any) -> SFrameBuilder:
    """Functions of 32 bytes at 0x1000, each with a push, a frame and its end; for a section at 0x2000."""
    builder = SFrameBuilder(version, **{"address": SFRAME, **options})
    for number in range(functions):
        rows = [row(0, 1, [8]), row(1, 1, [16, -16]), row(4, 0, [16, -16]), row(31, 1, [8, -16])]
        builder.function(TEXT + SIZE * number, SIZE, rows)
    return builder


def linked(
    data: bytes,
    *,
    kind: int = GNU_SFRAME,
    flags: int = 2,
    segment: bool = True,
    symbols: bool = True,
    machine: int = 62,
    order: ByteOrder = "little",
) -> ElfBuilder:
    """A shared library with eight functions `f0` to `f7` and the section; to be built."""
    elf = ElfBuilder(order, machine, 3)
    text = elf.code(".text", 0x100, TEXT)
    elf.segment(1, ".text", flags=5, vaddr=TEXT)
    elf.section(".sframe", data, kind=kind, flags=flags, addr=SFRAME, addralign=8)
    elf.segment(1, ".sframe", vaddr=SFRAME)
    if segment:
        elf.segment(PT_GNU_SFRAME, ".sframe", vaddr=SFRAME)
    if symbols:
        table = elf.symtab()
        for number in range(8):
            elf.symbol(table, f"f{number}", TEXT + SIZE * number, section=text, size=SIZE)
    return elf


Relocation = tuple[int, int, str, int]
"""Offset, type, symbol and addend."""


def placing(version: int, functions: int = 3) -> list[Relocation]:
    """One relocation for each function of `small`."""
    entry, kind = (16, PC64) if version == 3 else ({1: 17, 2: 20}[version], PC32)
    return [(0x1C + entry * number, kind, ".text", SIZE * number) for number in range(functions)]


def relocatable(
    builder: SFrameBuilder | bytes, relocations: Sequence[Relocation], *, addends: bool = True, **fields: Any
) -> ElfBuilder:
    """An object with `f0` to `f7`; relocations are against `.text`, a function, `nothing` (undefined) or no symbol."""
    data = builder if isinstance(builder, bytes) else unplaced(builder)
    elf = ElfBuilder("little", 62, 1)
    text = elf.code(".text", 0x100)
    section = elf.section(".sframe", data, **{"kind": GNU_SFRAME, "flags": 2, **fields})
    table = elf.symtab()
    names = {"": 0, ".text": elf.symbol(table, "", 0, section=text, kind=3, binding=0)}
    for number in range(8):
        names[f"f{number}"] = elf.symbol(table, f"f{number}", SIZE * number, section=text, size=SIZE)
    names["nothing"] = elf.symbol(table, "nothing", 0)
    entries = [(offset, kind, names[name], addend) for offset, kind, name, addend in relocations]
    elf.relocations(section, table, entries, addends=addends)
    return elf


def unplaced(builder: SFrameBuilder) -> bytes:
    """The section as an assembler leaves it: unsorted, with starts of 0."""
    builder.flags = PCREL if builder.version == 3 else 0
    for function in builder.functions:
        function.raw = 0 if function.raw is None else function.raw
    return builder.bytes()


def written(folder: Path, content: ElfBuilder | Image | bytes, name: str = "file") -> Path:
    """The file, on disk."""
    path = folder / name
    path.write_bytes(bytes(content.build() if isinstance(content, ElfBuilder) else content))
    return path


def archive(folder: Path, name: str, *members: Path) -> Path:
    """An archive, without a symbol index since not all members are ELF files."""
    subprocess.run(["ar", "rcS", name, *(member.name for member in members)], cwd=folder, check=True)
    return folder / name


def starts(path: Path) -> list[int]:
    return [int(a) for source in read(path) for piece in source.pieces() for a in piece.section.code_address]
