"""Names for functions that have none: where unwind tables say that a function begins.

Of a stripped program `program+0x1234` is one function, apart from all others; the number is its address in the file, as
disassemblers and `addr2line` take it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property, lru_cache
from posixpath import basename

import numpy as np

from walkback.base.arrays import I64, U64, ends_of
from walkback.base.errors import WalkbackError
from walkback.dwarf.files import frame_sources
from walkback.elf import ElfFile
from walkback.symbols.spans import SettledSpans


def function_at(module: str, start: int) -> str:
    """What to call a function of a file that has no name."""
    return f"{_base_name(module)}+{start:#x}"


# Thousands of functions are of the same few files.
_base_name = lru_cache(maxsize=1 << 10)(basename)


class Borders:
    """Where the functions of one file begin and end, by its call frame information and its SFrame."""

    def __init__(self, elf: ElfFile, name: str) -> None:
        self._elf = elf
        self._name = name

    @cached_property
    def _spans(self) -> tuple[U64, SettledSpans]:
        start, size = (np.concatenate(column) for column in zip(*self._tables(), strict=True))
        order = np.argsort(start, kind="stable")
        start, size = start[order], size[order]
        return start, SettledSpans(start, ends_of(start, size))

    def _tables(self) -> Iterator[tuple[U64, U64]]:
        yield np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        with contextlib.suppress(WalkbackError):
            for source in frame_sources(self._elf):
                with contextlib.suppress(WalkbackError):
                    fdes = source.fdes
                    sound = fdes.fault == 0
                    yield fdes.start[sound], fdes.size[sound]
        with contextlib.suppress(WalkbackError):
            for section in self._elf.sframe:
                table = section.table
                yield table.range_start, table.range_size.astype(np.uint64)

    def locate(self, addresses: U64) -> tuple[list[str | None], U64]:
        """The name of the function around each address, None where none is known, and where it begins."""
        start, spans = self._spans
        number: I64 = spans.find(addresses)
        begin = np.where(number >= 0, start[number] if len(start) else np.uint64(0), np.uint64(0))
        names = [
            function_at(self._name, at) if inside else None
            for at, inside in zip(begin.tolist(), (number >= 0).tolist(), strict=True)
        ]
        return names, begin
