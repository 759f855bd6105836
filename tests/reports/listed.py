"""A program whose functions are looked at."""

from __future__ import annotations

from typing import Any

from cfibuilder import CfiBuilder, cfa
from elfbuilder import ElfBuilder
from sframefiles import SFRAME, TEXT

FRAMES = 0x8000

NO_CODE = b"\x06"
START = "def_cfa 7 8; offset 16 1"


def program(
    *fdes: tuple[int, int, str],
    sframe: bytes | None = None,
    size: int = 0x1000,
    names: list[tuple[str, int, int]] | tuple[Any, ...] = (),
    **builder: Any,
) -> ElfBuilder:
    """A linked file with code at 0x1000; each FDE is a start, a size and a program."""
    frames = CfiBuilder(address=FRAMES)
    number = frames.cie(cfa(START), **builder)
    for start, length, text in fdes:
        frames.fde(number, start, length, cfa(text))
    elf = ElfBuilder(kind=3)
    # Nothing that the machine knows, so that no rule is proved right or wrong.
    code = elf.section(".text", NO_CODE * size, flags=6, addr=TEXT)
    elf.segment(1, ".text", flags=5, vaddr=TEXT)
    elf.section(".eh_frame", frames.bytes(), flags=2, addr=FRAMES)
    elf.segment(1, ".eh_frame", vaddr=FRAMES)
    if sframe is not None:
        elf.section(".sframe", sframe, kind=0x6FFFFFF4, flags=2, addr=SFRAME, addralign=8)
    symbols = elf.symtab()
    for name, place, length in names:
        elf.symbol(symbols, name, place, section=code, size=length)
    return elf
