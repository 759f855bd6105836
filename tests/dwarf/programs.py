"""The rows of one function, whose instructions a test says."""

from __future__ import annotations

from typing import Any

from cfibuilder import (
    CfiBuilder,
    cfa,
)
from walkback.base.arch import AMD64, ByteOrder, Machine
from walkback.dwarf.decoding import decode
from walkback.dwarf.frames import Frames
from walkback.dwarf.rules import to_table

START, SIZE = 0x100, 0x1000
AT_START = "def_cfa 7 8; offset 16 1"
"""What every CIE for AMD64 says."""


def frames_of(
    program: bytes | str,
    *,
    machine: Machine = AMD64,
    start: str = AT_START,
    order: ByteOrder = "little",
    faults: bool = False,
    **cie: Any,
) -> Frames:
    """One function of one CIE."""
    builder = CfiBuilder(order=order, address=0x400, text=0x40, got=0x80)
    first = program if isinstance(program, bytes) else cfa(program, order)
    builder.fde(builder.cie(cfa(start, order), **cie), START, SIZE, first)
    options: dict[str, Any] = {"address": 0x400, "byteorder": order, "text": 0x40, "got": 0x80, "faults": faults}
    return decode(builder.bytes(), machine, **options)


def rows(program: bytes | str, **options: Any) -> list[tuple[int, str]]:
    """The rows of one function, as people write them."""
    frames = frames_of(program, **options)
    assert frames.fdes.start.tolist() == [START]
    table = to_table(frames)
    return [(int(at), table.rule(row).text(table.machine)) for row, at in enumerate(table.row_offset)]


def last(program: str, **options: Any) -> str:
    return rows(program, **options)[-1][1]


def amd64(cfa_text: str, *, ra: str = "RA = *(CFA-8)", fp: str = "FP unchanged") -> str:
    return f"CFA = {cfa_text}, {ra}, {fp}"
