"""Folded stacks as samples: names are all that frames have."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from walkback.base.arrays import I32
from walkback.base.errors import UnreadableError
from walkback.base.intern import Interner
from walkback.stacks.stacks import End
from walkback.store import _folded
from walkback.store.builder import Builder, SampleOrigin

_BLOCK = 1 << 24
"""Bytes that are taken at once."""
_LINES = 1 << 14
"""Lines that are taken at once, where they come one by one."""
_LONGEST = 1 << 24
"""Bytes of a line."""
_NEWLINE, _SEMICOLON = b"\n;"


class _Lines:
    """Lines on their way to a builder."""

    def __init__(self, builder: Builder, origin: SampleOrigin, when: int, with_process: bool) -> None:
        self._builder = builder
        self._origin = origin
        self._when = when
        self._with_process = with_process
        self._frames: dict[bytes, int] = {}
        self.count = 0
        """Lines so far."""

    def add(self, block: bytes, name: str | None) -> None:
        """Take whole lines; errors name the file `name`."""
        data = np.frombuffer(block, np.uint8)
        behind = np.flatnonzero(data == _NEWLINE)
        if not block.endswith(b"\n"):
            behind = np.append(behind, len(block))
        most = len(behind)
        words = int(np.count_nonzero(data == _SEMICOLON)) + most
        interner = Interner(memoryview(block))
        first, weights, state = np.zeros(most + 1, np.int64), np.empty(most, np.int64), np.zeros(2, np.int64)
        frames, processes = np.empty(words, np.int32), np.empty(most, np.int32)
        path, ends = np.empty(words, np.int32), np.empty(words, np.int64)
        wrong = _folded.read_lines(
            data, behind, _LONGEST, self._with_process, interner, first, frames, processes, weights, path, ends, state
        )
        count, lines = state.tolist()
        self.count += lines
        if wrong == _folded.TOO_LONG:
            raise UnreadableError(f"line {self.count} has more than {_LONGEST} bytes", file=name)
        if wrong:
            raise UnreadableError(f"line {self.count} does not end in a blank and a number", file=name)
        numbers = self._numbers(block, interner)
        self._builder.add(
            np.zeros(count, np.int64),
            self._builder.stacks.add(first[: count + 1], numbers[frames[: first[count]]]),
            weights[:count],
            numbers[processes[:count]] if self._with_process else np.full(count, self._source(b"")),
            np.full(count, End.COMPLETE),
            since=self._when,
        )

    def _numbers(self, block: bytes, interner: Interner) -> I32:
        """What the builder calls the names of a block: frames, and where the tag is 1 sources."""
        begins, lengths = interner.first_positions(), interner.first_lengths()
        names = [block[begin:end] for begin, end in zip(begins.tolist(), (begins + lengths).tolist(), strict=True)]
        is_process = interner.first_tags().tolist()
        new = [name for name, other in zip(names, is_process, strict=True) if not other and name not in self._frames]
        # A call that is inlined is of the same function as others.
        shown = [os.fsdecode(name).removesuffix("_[i]") for name in new]
        made = self._builder.frames(np.full(len(new), -1), np.zeros(len(new), np.uint64), shown)
        self._frames.update(zip(new, made.tolist(), strict=True))
        numbers = [
            self._source(name) if other else self._frames[name] for name, other in zip(names, is_process, strict=True)
        ]
        return np.array(numbers, np.int32)

    def _source(self, process: bytes) -> int:
        [number] = self._builder.sources([replace(self._origin, process=os.fsdecode(process) or None)])
        return int(number)


def _blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines, many at once; the last may have no end, and so may one that is too long."""
    if not isinstance(lines, io.IOBase):
        iterator = iter(lines)
        while some := list(islice(iterator, _LINES)):
            yield b"\n".join(line.rstrip(b"\n") for line in some)
        return
    rest = b""
    while len(rest) <= _LONGEST and (data := lines.read(_BLOCK)):
        end = data.rfind(b"\n") + 1
        if end:
            yield rest + data[:end]
            rest = b""
        rest += data[end:]
    if rest:
        yield rest


def add(
    builder: Builder, lines: Iterable[bytes], origin: SampleOrigin, when: int, *, with_process: bool, name: str | None
) -> None:
    """Add lines `process;outermost;...;innermost weight`, all of one time."""
    taken = _Lines(builder, origin, when, with_process)
    for block in _blocks(lines):
        taken.add(block, name)
