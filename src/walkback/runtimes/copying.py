"""Memory that is read twice: a look at a running process notes what it reads, and a second one has a copy of that.

noted = NotedMemory(memory)
look(noted)
ranges = ranges_of(noted.blocks)
look(CopiedMemory(ranges, contents_of(ranges)))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from walkback.runtimes.memory import TargetMemory

_BLOCK = 512
"""Bytes that are copied together: if one of them can be read, all can."""


class NotCopiedError(Exception):
    """A look wants what was not copied."""

    def __init__(self, blocks: Sequence[int] = ()) -> None:
        """The blocks that have it; none if a copy cannot have it."""
        super().__init__(blocks)
        self.blocks = blocks


class NotedMemory:
    """The memory of a process, and the blocks of it that were read."""

    def __init__(self, memory: TargetMemory) -> None:
        self._memory = memory
        self.blocks: dict[int, None] = {}
        """In the order in which they were read."""

    def read(self, address: int, size: int) -> bytes:
        """As much of it as can be read from an address on."""
        contents = self._memory.read(address, size)
        self.blocks.update(dict.fromkeys(_blocks(address, len(contents))))
        return contents

    def gather(self, addresses: Sequence[int], size: int) -> bytes:
        """`size` bytes from each address, one after the other; nothing from the first on that cannot be read."""
        contents = self._memory.gather(addresses, size)
        for address in addresses[: len(contents) // size]:
            self.blocks.update(dict.fromkeys(_blocks(address, size)))
        return contents


class CopiedMemory:
    """Ranges of memory. Whoever reads anything else gets a `NotCopiedError`, whether it could have been read or not."""

    def __init__(self, ranges: Sequence[tuple[int, int]], contents: bytes) -> None:
        """`contents` has them one after the other, and ends early if one of them cannot be read any more."""
        blocks = (block for start, size in ranges for block in range(start, start + size, _BLOCK))
        places = range(0, len(contents) - _BLOCK + 1, _BLOCK)
        self._blocks = {block: contents[place : place + _BLOCK] for place, block in zip(places, blocks, strict=False)}

    def read(self, address: int, size: int) -> bytes:
        """All of that."""
        blocks = _blocks(address, size)
        try:
            found = b"".join([self._blocks[block] for block in blocks])
        except KeyError:
            raise NotCopiedError(blocks) from None
        away = address % _BLOCK
        return found[away : away + size]

    def gather(self, addresses: Sequence[int], size: int) -> bytes:
        """`size` bytes from each address, one after the other."""
        return b"".join([self.read(address, size) for address in addresses])


def ranges_of(blocks: Iterable[int]) -> list[tuple[int, int]]:
    """Where pieces begin, and their sizes; what follows each other is one."""
    found: list[tuple[int, int]] = []
    for block in sorted(blocks):
        if found and sum(found[-1]) == block:
            found[-1] = found[-1][0], found[-1][1] + _BLOCK
        else:
            found.append((block, _BLOCK))
    return found


def _blocks(address: int, size: int) -> range:
    """The blocks that have some of that."""
    return range(address & -_BLOCK, address + size, _BLOCK) if size else range(0)
