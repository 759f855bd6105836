"""Types of objects: their flags, and the names of those that the interpreter has itself."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import U64, Bools
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.strings import word
from walkback.runtimes.python.tasklayout import IS_OF_HEAP, TaskLayout

_LONGEST_NAME = 32
_MOST = 1 << 12


class ObjectTypes:
    """The types of one process that were met."""

    def __init__(self, layout: TaskLayout, order: str) -> None:
        self._layout, self._order = layout, order
        self._known: dict[int, tuple[int, str]] = {}
        self._others: dict[int, tuple[int, str]] = {}
        """Those that may go, and others come in their place."""

    def forget(self) -> None:
        """Forget types that may have gone."""
        self._others.clear()

    def find(self, address: int, memory: TargetMemory) -> tuple[int, str]:
        """The flags of a type, and its name, which those have none of that a program makes."""
        found = self._known.get(address) or self._others.get(address)
        if found is None:
            found = self._read(address, memory)
            kept = self._others if found[0] & IS_OF_HEAP or not found[1] else self._known
            if len(kept) >= _MOST:
                kept.clear()
            kept[address] = found
        return found

    def _read(self, address: int, memory: TargetMemory) -> tuple[int, str]:
        layout, order = self._layout, self._order
        head = memory.read(address, max(layout.type_flags, layout.type_name) + 8)
        flags, name_at = word(head, layout.type_flags, order), word(head, layout.type_name, order)
        if flags is None or not name_at or flags & IS_OF_HEAP:
            return flags or 0, ""
        name, end, _ = memory.read(name_at, _LONGEST_NAME).partition(b"\0")
        return flags, name.decode("ascii", "replace") if end else ""


def are_objects(addresses: U64) -> Bools:
    """Whether objects could be there."""
    aligned = addresses & np.uint64(7) == 0
    return np.asarray(aligned & (addresses > np.uint64(0xFFF)) & (addresses < np.uint64(2**64 - (1 << 16))))


def is_object(address: int) -> bool:
    """The same of one."""
    return 0xFFF < address < 2**64 - (1 << 16) and not address & 7
