"""The SFrame sections of one object read as one: there can be as many as text sections."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from walkback.base.dataclass import dataclass
from walkback.base.errors import SFrameError
from walkback.elf import RELOCATION_TABLE, Relocations, relocations_for
from walkback.elf.layout import NO_RELOCATION
from walkback.sframe.batch import SectionBatch, batches
from walkback.sframe.files import NOT_ON_A_FIELD, Source


@dataclass
class ObjectSections(Source):
    """Sections of an object, one behind the other; positions count from the first."""

    parts: Sequence[Source] = ()
    starts: list[int] = field(default_factory=list)
    """Where each of them begins."""

    def part(self, position: int) -> tuple[int, int]:
        """The number of the part that has a position, and the position in it."""
        number = bisect_right(self.starts, position) - 1
        return number, position - self.starts[number]

    def _batches(self, faults: bool) -> list[SectionBatch]:
        try:
            return list(batches(self.data, faults=faults, starts=self.starts))
        except SFrameError as error:
            number, error.offset = self.part(error.offset or 0)
            raise error.within(file=self.file, section=self.parts[number].name) from None

    @cached_property
    def _relocations(self) -> Relocations:
        assert self.elf is not None
        tables = [np.zeros(0, RELOCATION_TABLE)]
        for part, start in zip(self.parts, self.starts, strict=True):
            assert part.index is not None
            table = relocations_for(self.elf, part.index).table
            idle = [kind for machine, kind in NO_RELOCATION if machine == self.elf.machine]
            beyond = table["offset"] >= np.uint64(len(part.data))
            if (beyond & ~np.isin(table["type"], idle)).any():
                message = f"a relocation cannot be applied: {NOT_ON_A_FIELD}"
                offset = int(table["offset"][-1])
                raise SFrameError(message, file=self.file, section=part.name, offset=offset, rule="relocation-stray")
            table = table[~beyond]
            table["offset"] += np.uint64(start)
            tables.append(table)
        return Relocations(np.concatenate(tables), ())


def together(sources: Sequence[Source]) -> ObjectSections:
    """All of these sections, which are of one object and not empty."""
    first = sources[0]
    contents, starts = bytearray(), []
    for source in sources:
        starts.append(len(contents))
        contents += source.data
    place = (first.file, first.name, memoryview(contents), 0, first.elf, first.index)
    return ObjectSections(*place, _names=first._names, parts=sources, starts=starts)
