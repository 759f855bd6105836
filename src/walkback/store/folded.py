"""Folded stacks as samples: names are all that frames have."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from walkback.base.arrays import numbered
from walkback.base.errors import UnreadableError
from walkback.stacks.stacks import End
from walkback.store.builder import Builder, SampleOrigin

_LINES = 1 << 14
"""Taken at once."""
_LONGEST = 1 << 24
"""Bytes of a line."""
_MOST_DIGITS = 18
"""Of a weight: more could be too large for a column."""


class _Lines:
    """Lines as columns, on their way to a builder."""

    def __init__(self, builder: Builder, origin: SampleOrigin, when: int) -> None:
        self._builder = builder
        self._origin = origin
        self._when = when
        self._numbers: dict[bytes, int] = {}
        self._frames = np.zeros(0, np.int32)
        self._clear()

    def _clear(self) -> None:
        self._first, self._words = [0], list[int]()
        self._processes: list[bytes | None] = []
        self._weights: list[int] = []

    def add(self, process: bytes | None, frames: list[bytes], weight: int) -> None:
        """Take a line."""
        numbers = self._numbers
        self._words += [numbers.setdefault(name, len(numbers)) for name in reversed(frames)]
        self._first.append(len(self._words))
        self._processes.append(process)
        self._weights.append(weight)
        if len(self._weights) == _LINES:
            self.put()

    def put(self) -> None:
        """Give the builder all since the last time."""
        new = list(self._numbers)[len(self._frames) :]
        # A call that is inlined is of the same function as others.
        names = [os.fsdecode(name).removesuffix("_[i]") for name in new]
        numbers = self._builder.frames(np.full(len(new), -1), np.zeros(len(new), np.uint64), names)
        self._frames = np.concatenate((self._frames, numbers.astype(np.int32)))
        processes, process = numbered(self._processes)
        sources = self._builder.sources(
            replace(self._origin, process=os.fsdecode(name) if name else None) for name in processes
        )
        first, words = np.array(self._first, np.int64), np.array(self._words, np.int64)
        count = len(self._weights)
        self._builder.add(
            np.zeros(count, np.int64),
            self._builder.stacks.add(first, self._frames[words]),
            np.array(self._weights, np.int64),
            sources[process],
            np.full(count, End.COMPLETE),
            since=self._when,
        )
        self._clear()


def add(
    builder: Builder, lines: Iterable[bytes], origin: SampleOrigin, when: int, *, with_process: bool, name: str | None
) -> None:
    """Add lines `process;outermost;...;innermost weight`, all of one time."""
    taken = _Lines(builder, origin, when)
    if isinstance(lines, io.IOBase):
        lines = iter(partial(lines.readline, _LONGEST + 1), b"")
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST:
            raise UnreadableError(f"line {number} has more than {_LONGEST} bytes", file=name)
        text, _, weight = line.rstrip().rpartition(b" ")
        if not line.strip():
            continue
        if not text or not weight.isdigit() or len(weight) > _MOST_DIGITS:
            raise UnreadableError(f"line {number} does not end in a blank and a number", file=name)
        frames = text.split(b";")
        taken.add(frames.pop(0) if with_process else None, frames, int(weight))
    taken.put()
