"""What a runtime reads: the memory of a process that runs or stands still, or of a core file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TargetMemory(Protocol):
    """The memory of one process."""

    def read(self, address: int, size: int) -> bytes:
        """As much of it as can be read from an address on, up to `size` bytes."""

    def gather(self, addresses: Sequence[int], size: int) -> bytes:
        """`size` bytes from each address, one after the other; nothing from the first on that cannot be read."""
