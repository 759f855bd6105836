"""What the interpreters of a thread run, for which it stands still as short as can be.

A look reads many pieces of memory, one after the other. So it is done before, while the thread runs; what that has
read is copied at once during the stop; and the look at the copy is done when the thread runs on. Where that wants
more, the thread is stopped again, at last for a whole look.
"""

from __future__ import annotations

from collections.abc import Iterable

from walkback.capture.live.ptrace import Pieces, Tracer
from walkback.runtimes.chains import Looked
from walkback.runtimes.copying import CopiedMemory, NotCopiedError, NotedMemory, ranges_of
from walkback.runtimes.interpreters import Interpreters
from walkback.runtimes.memory import TargetMemory

_COPIED = 2
"""How many stops copy, before one is as long as a whole look takes."""
_RECENT = 32
"""Blocks of the last looks that are copied as well: a thread does the same things again and again."""


class RecentBlocks:
    """The blocks of memory that the last looks have read, the newest first."""

    def __init__(self) -> None:
        self.blocks: list[int] = []

    def add(self, blocks: Iterable[int]) -> None:
        """Add those of one more look."""
        self.blocks = list(dict.fromkeys([*blocks, *self.blocks]))[:_RECENT]


class _StoppedMemory:
    """The memory of a thread that stands still, whose stack was copied already."""

    def __init__(self, memory: TargetMemory, tracer: Tracer) -> None:
        self._memory, self._tracer = memory, tracer
        self.gather = memory.gather

    def read(self, address: int, size: int) -> bytes:
        """As much of it as can be read from an address on."""
        return self._tracer.copied_at(address, size) or self._memory.read(address, size)


class Look:
    """A look at one thread, by one or several stops."""

    def __init__(self, interpreters: Interpreters, number: int, memory: TargetMemory, recent: RecentBlocks) -> None:
        """`number` is the thread's own for itself; `memory` and `recent` are of its process."""
        self._interpreters, self.number = interpreters, number
        self._memory, self._recent = memory, recent
        self._stops = 0
        self._is_copied = False
        self.pieces = Pieces()
        """What the next stop has to copy."""
        self.found: list[Looked] | None = None
        """What it runs, once this is known."""

    def begin(self) -> None:
        """To be done before a stop: what is read for the first time takes long, and is only compared later."""
        noted = NotedMemory(self._memory)
        self._interpreters.look(self.number, noted, None, self._memory)
        recent = (block for block in self._recent.blocks if block not in noted.blocks)
        self.pieces = Pieces([*ranges_of(noted.blocks), *ranges_of(recent)])
        self._stops += 1
        self._is_copied = self._stops <= _COPIED and self._interpreters.is_foreseeable and self.pieces.is_fit
        if not self._is_copied:
            self.pieces = Pieces()
        self._recent.add(noted.blocks)
        self.found = None

    def stand(self, tracer: Tracer) -> None:
        """To be done during it."""
        if not self._is_copied:
            memory = _StoppedMemory(self._memory, tracer)
            self.found = self._interpreters.look(self.number, memory, tracer.standing)

    def end(self, tracer: Tracer) -> None:
        """To be done after it, before the tracer stops another thread."""
        if not self._is_copied:
            return
        if len(tracer.collected) < self.pieces.size:
            # Some of what was there is not any more.
            self._recent.blocks.clear()
        memory = _StoppedMemory(CopiedMemory(self.pieces.ranges, tracer.collected), tracer)
        try:
            self.found = self._interpreters.look(self.number, memory, tracer.standing, self._memory)
        except NotCopiedError as error:
            self._recent.add(error.blocks)
