"""Many objects of one size, read at once into an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I64, U8, U64
from walkback.runtimes.memory import TargetMemory

_AT_ONCE = 1024
_MOST_FAILURES = 16
"""After as many, each is read alone."""


class Objects(NamedTuple):
    """The beginnings of objects, a row each; what cannot be read is zero."""

    rows: U8
    sizes: I64
    """How much of each could be read."""
    byteorder: ByteOrder

    def words(self, place: int, size: int = 8) -> U64:
        """The number at an offset of each."""
        kind = np.dtype(f"u{size}").newbyteorder(self.byteorder)
        columns = np.ascontiguousarray(self.rows[:, place : place + size])
        if columns.shape[1] < size:
            return np.zeros(len(self.rows), np.uint64)
        return columns.view(kind).ravel().astype(np.uint64)

    def bytes(self, place: int) -> U8:
        """The byte at an offset of each."""
        return self.rows[:, place]

    def among(self, chosen: I64) -> Objects:
        """Some of them."""
        return Objects(self.rows[chosen], self.sizes[chosen], self.byteorder)


def read_objects(addresses: Sequence[int], size: int, memory: TargetMemory, byteorder: ByteOrder) -> Objects:
    """As many bytes from each address, or less where they cannot be read."""
    parts: list[bytes] = []
    sizes = np.full(len(addresses), size, np.int64)
    place = failures = 0
    while place < len(addresses):
        some = addresses[place : place + _AT_ONCE] if failures < _MOST_FAILURES else ()
        contents = memory.gather(some, size) if some else b""
        count = len(contents) // size
        parts.append(contents[: count * size])
        place += count
        if count < len(some) or not some:
            failures += 1
            part = memory.read(addresses[place], size)
            sizes[place] = len(part)
            parts.append(part.ljust(size, b"\0"))
            place += 1
    rows = np.frombuffer(b"".join(parts), np.uint8).reshape(len(addresses), size)
    return Objects(rows, sizes, byteorder)
