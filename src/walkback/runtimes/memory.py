"""What a runtime reads: the memory of a process that runs or stands still, or of a core file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

_AT_ONCE = 32


class TargetMemory(Protocol):
    """The memory of one process."""

    def read(self, address: int, size: int) -> bytes:
        """As much of it as can be read from an address on, up to `size` bytes."""

    def gather(self, addresses: Sequence[int], size: int) -> bytes:
        """`size` bytes from each address, one after the other; nothing from the first on that cannot be read."""


def gathered(addresses: list[int], size: int, memory: TargetMemory) -> list[bytes]:
    """As many bytes from each address, or less where they cannot be read."""
    contents = memory.gather(addresses, size)
    if len(contents) < size * len(addresses):
        return [memory.read(address, size) for address in addresses]
    return [contents[place : place + size] for place in range(0, len(contents), size)]


def readable(addresses: list[int], size: int, memory: TargetMemory) -> Iterator[tuple[int, bytes]]:
    """Those addresses from which as many bytes can be read, with them."""
    place = 0
    while place < len(addresses):
        some = addresses[place : place + _AT_ONCE]
        contents = memory.gather(some, size)
        count = len(contents) // size
        for number in range(count):
            yield some[number], contents[number * size : (number + 1) * size]
        # The one behind them cannot be read.
        place += count + (count < len(some))
