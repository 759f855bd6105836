"""The contents of a section of a relocatable file as if it had been linked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.base.dataclass import dataclass
from walkback.elf import layout
from walkback.elf.relocations import relocations_for

if TYPE_CHECKING:
    from walkback.base.arrays import I32, I64, U64
    from walkback.elf.file import ElfFile


@dataclass(frozen=True, slots=True)
class Relocated:
    """A copy of the contents; what was applied is returned, so that a value is known to count from a section."""

    data: memoryview
    offset: U64
    """Where relocations were applied, rising."""
    section: I32
    """The section of each one's symbol."""

    def section_at(self, offsets: I64) -> I32:
        """The section that the value at each offset is a place in; 0 where no relocation was applied."""
        if not len(self.offset):
            return np.zeros(len(offsets), np.int32)
        number = np.searchsorted(self.offset, offsets.astype(np.uint64)).clip(max=len(self.offset) - 1)
        return np.where(self.offset[number] == offsets.astype(np.uint64), self.section[number], 0).astype(np.int32)


def relocated(elf: ElfFile, index: int, *, placed: bool = False) -> Relocated:
    """Apply the relocations of a section that write `S + A` or `S + A - P`; others change nothing.

    Every section is at address 0, or if they are `placed` where its header says.
    Only those with a symbol in a section of the file are applied, and of several at one place the first.
    """
    contents = np.frombuffer(bytes(elf.section_data(index)), np.uint8).copy()
    relocations = relocations_for(elf, index)
    table, targets = relocations.table, relocations.targets(elf)
    applied = np.zeros(len(table), np.bool_)
    base = elf.sections["addr"].view(np.int64) if placed else np.zeros(len(elf.sections), np.int64)
    for kinds, relative in ((layout.PC_RELATIVE, True), (layout.ABSOLUTE, False)):
        for (machine, kind), width in kinds.items():
            if machine != elf.machine:
                continue
            chosen = (table["type"] == kind) & (targets["section"] > 0)
            chosen &= table["offset"] < np.uint64(max(0, len(contents) - width + 1))
            chosen[1:] &= table["offset"][1:] != table["offset"][:-1]
            places = table["offset"][chosen].astype(np.int64)
            octets = places[:, None] + np.arange(width)
            field = np.dtype(f"{'<' if elf.byteorder == 'little' else '>'}i{width}")
            stored = contents[octets].view(field)[:, 0].astype(np.int64)
            value = targets["value"][chosen] + np.where(table["has_addend"][chosen], table["addend"][chosen], stored)
            value += base[targets["section"][chosen]]
            value -= places + base[index] if relative else 0
            contents[octets] = value.astype(field).view(np.uint8).reshape(-1, width)
            applied |= chosen
    return Relocated(
        memoryview(contents.tobytes()), table["offset"][applied], targets["section"][applied].astype(np.int32)
    )
