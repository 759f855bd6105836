"""Folded stacks as samples: names are all that frames have."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from walkback.arrays import I32
from walkback.errors import UnreadableError
from walkback.store.builder import Builder, Origin
from walkback.unwind.stacks import End

_LINES = 1 << 14
"""Taken at once."""
_LONGEST = 1 << 24
"""Bytes of a line."""


class _Lines:
    """Lines as columns."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._numbers: dict[bytes, int] = {}
        self._new: list[bytes] = []
        self._frames = np.zeros(0, np.int32)
        self._clear()

    def _clear(self) -> None:
        self._first, self._words = [0], list[int]()
        self.processes: list[bytes | None] = []
        self.weights: list[int] = []

    def __len__(self) -> int:
        return len(self.weights)

    def add(self, process: bytes | None, frames: list[bytes], weight: int) -> None:
        numbers = self._numbers
        for name in reversed(frames):
            number = numbers.setdefault(name, len(numbers))
            self._words.append(number)
        self._first.append(len(self._words))
        self.processes.append(process)
        self.weights.append(weight)

    def take(self) -> tuple[I32, list[bytes | None], list[int]]:
        """The stacks, processes and weights since the last time."""
        new = list(self._numbers)[len(self._frames) :]
        numbers = self._builder.frames(
            np.full(len(new), -1), np.zeros(len(new), np.uint64), [os.fsdecode(name) for name in new]
        )
        self._frames = np.concatenate((self._frames, numbers.astype(np.int32)))
        stacks = self._builder.stacks.add(
            np.array(self._first, np.int64), self._frames[np.array(self._words, np.int64)]
        )
        found = stacks, self.processes, self.weights
        self._clear()
        return found


def add(
    builder: Builder, lines: Iterable[bytes], origin: Origin, when: int, *, with_process: bool, name: str | None
) -> None:
    """Add lines `process;outermost;...;innermost weight`, all of one time."""
    taken = _Lines(builder)
    if isinstance(lines, io.IOBase):
        lines = iter(partial(lines.readline, _LONGEST + 1), b"")
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST:
            raise UnreadableError(f"line {number} has more than {_LONGEST} bytes", file=name)
        text, _, weight = line.rstrip().rpartition(b" ")
        if not line.strip():
            continue
        if not text or not weight.isdigit() or len(weight) > 18:
            raise UnreadableError(f"line {number} does not end in a blank and a number", file=name)
        frames = text.split(b";")
        taken.add(frames.pop(0) if with_process else None, frames, int(weight))
        if len(taken) == _LINES:
            _put(builder, taken, origin, when)
    _put(builder, taken, origin, when)


def _put(builder: Builder, taken: _Lines, origin: Origin, when: int) -> None:
    stacks, processes, weights = taken.take()
    distinct = {process: number for number, process in enumerate(dict.fromkeys(processes))}
    sources = builder.sources(
        replace(origin, process=os.fsdecode(process) if process else None) for process in distinct
    )
    count = len(weights)
    builder.add(
        np.zeros(count, np.int64),
        stacks,
        np.array(weights, np.int64),
        sources[np.array([distinct[process] for process in processes], np.int64)],
        np.full(count, End.COMPLETE),
        since=when,
    )
