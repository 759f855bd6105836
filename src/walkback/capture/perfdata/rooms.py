"""Memory that pieces of a file are read into, and that is used again.

New memory costs more than reading does, since the kernel clears every page of it and maps it when it is first touched.
"""

from __future__ import annotations

import contextlib
import mmap
import weakref

import numpy as np

_MOST_FREE = 2


class Rooms:
    """Rooms of one size. A room is free again as soon as nobody holds a view of what was read into it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._free: list[mmap.mmap] = []

    def take(self, size: int) -> memoryview:
        """Memory of this size, which is not larger than a room; what it holds is left from before."""
        room = self._free.pop() if self._free else _new(self._size)
        array = np.frombuffer(room, np.uint8, size)
        weakref.finalize(array, self._give_back, room)
        return array.data

    def _give_back(self, room: mmap.mmap) -> None:
        if len(self._free) < _MOST_FREE:
            self._free.append(room)


def _new(size: int) -> mmap.mmap:
    room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # of a kernel without huge pages
        room.madvise(mmap.MADV_HUGEPAGE)
    return room
