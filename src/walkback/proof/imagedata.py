"""The bytes of the parts of an image. Of data only those blocks are read that are wanted: few have jump tables."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from mmap import MAP_PRIVATE, mmap
from typing import NamedTuple

import numpy as np

from walkback.base.arrays import U8
from walkback.code.machines import SLACK
from walkback.elf import ElfFile, layout, loaded_addresses

BLOCK_BITS = 14
_WORD = 8


class Part(NamedTuple):
    """A section or a segment."""

    address: int
    size: int
    is_code: bool
    read: Callable[[int, memoryview], None]
    """Fills memory with its bytes from one on."""

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


def _zeros(size: int) -> U8:
    """An array that takes memory page by page; one of NumPy takes it in pieces of 2 MB."""
    try:
        return np.frombuffer(mmap(-1, size, MAP_PRIVATE), np.uint8)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"{size} bytes of code and constants") from error


class ImageData:
    """The bytes of all parts, one part behind the other, and zeros for decoders behind the last."""

    def __init__(self, elf: ElfFile, parts: Sequence[Part]) -> None:
        self._parts, self._byteorder = parts, elf.byteorder
        self._pos = list(accumulate((part.size for part in parts), initial=0))
        self.data = _zeros(self._pos[-1] + SLACK)
        # Of a relocatable file the parts are relocated as they are read.
        self._words = None if elf.is_relocatable else loaded_addresses(elf)  # jump tables are made of them
        # On s390x `ex` executes instructions that may be among the constants.
        whole = elf.is_relocatable or elf.machine == layout.EM_S390
        at_once = [part.is_code or whole for part in parts]
        self._is_later = [not now for now in at_once]
        self._is_there = bytearray(self.blocks)
        for part, pos, now in zip(parts, self._pos, at_once, strict=False):
            if now:
                self._read(part, 0, self.data[pos : pos + part.size])

    @property
    def blocks(self) -> int:
        """How many there are."""
        return (len(self.data) >> BLOCK_BITS) + 1

    def load(self, block: int) -> None:
        """Read the data in a block, if that has not been done; other threads may do so meanwhile."""
        if self._is_there[block]:
            return
        begin, end = block << BLOCK_BITS, (block + 1) << BLOCK_BITS
        number = bisect_right(self._pos, begin) - 1
        while number < len(self._parts) and self._pos[number] < end:
            part, pos = self._parts[number], self._pos[number]
            first, last = max(begin - pos, 0), min(end - pos, part.size)
            if first < last and self._is_later[number]:
                # Words of the loader can reach over the edges. What others see must never be half done.
                before, behind = max(first - _WORD, 0), min(last + _WORD, part.size)
                some = np.empty(behind - before, np.uint8)
                self._read(part, before, some)
                if some.any():  # a hole costs nothing
                    self.data[pos + first : pos + last] = some[first - before : last - before]
            number += 1
        self._is_there[block] = True

    def _read(self, part: Part, start: int, room: U8) -> None:
        part.read(start, room.data)
        if self._words is not None:
            self._words.write(room, part.address + start, self._byteorder)
