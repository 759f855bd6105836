"""Frames of code, each followed by the calls that are inlined there, and stacks laid out with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from walkback.base.arrays import I64, Bools
from walkback.stacks.profile import NamedFrames
from walkback.symbols.sourceline import SourceLine


class LaidOut(NamedTuple):
    """Stacks of named frames: those of code, each behind the calls that are inlined there."""

    first: I64
    """Where each stack begins, and behind the last how many frames there are."""
    frame: I64
    """The number of each among the named frames."""
    source: I64
    """The number of the frame of code, among all that were given."""
    inlined: Bools


class InlinedFrames:
    """Frames of code by number, and in `named` the same with what is inlined in each.

    A frame's *row* is its number among the named ones, and the calls that are inlined in it follow, the outermost
    first.
    """

    def __init__(self) -> None:
        zeros = np.zeros(0, np.uint64)
        self.named = NamedFrames([], [], zeros, np.zeros(0, np.bool_), zeros, inlined=np.zeros(0, np.bool_))
        self.rows = np.zeros(0, np.int64)
        self._calls = np.zeros(0, np.int64)
        """How many are inlined in each."""

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, frames: NamedFrames, inlined: Sequence[tuple[SourceLine, ...]]) -> None:
        """More of them, with the calls that are inlined in each, innermost first."""
        calls = np.array([len(lines) for lines in inlined], np.int64)
        ends = np.cumsum(calls + 1)
        rows, source = ends - calls - 1, np.repeat(np.arange(len(calls)), calls + 1)
        is_inlined = np.ones(len(source), np.bool_)
        is_inlined[rows] = False
        old = self.named
        offset = np.zeros(len(source), np.uint64)
        if frames.offset is not None:
            offset[rows] = frames.offset
        outermost = [lines[::-1] for lines in inlined]
        self.rows = np.concatenate((self.rows, rows + len(old)))
        self._calls = np.concatenate((self._calls, calls))
        self.named = NamedFrames(
            [*old.symbol, *_with_calls(frames.symbol, outermost, "function")],
            [*old.module, *(frames.module[number] for number in source.tolist())],
            np.concatenate((old.address, frames.address[source])),
            np.concatenate((old.kernel, frames.kernel[source])),
            np.concatenate((_column(old.offset), offset)),
            [*(old.file or []), *_with_calls(frames.file, outermost, "file")] if frames.file is not None else None,
            [*(old.line or []), *_with_calls(frames.line, outermost, "line")] if frames.line is not None else None,
            np.concatenate((_column(old.inlined), is_inlined)).astype(np.bool_),
        )

    def laid_out(self, first: I64, numbers: I64) -> LaidOut:
        """Stacks of numbers of frames, with the calls that are inlined there."""
        count = self._calls[numbers] + 1
        ends = np.cumsum(count)
        source = np.repeat(np.arange(len(numbers)), count)
        frame = self.rows[numbers][source] + ends[source] - 1 - np.arange(len(source))
        is_inlined = np.ones(len(source), np.bool_)
        is_inlined[ends - 1] = False
        return LaidOut(np.concatenate(([0], ends))[first], frame, source, is_inlined)

    def of_code(self, first: I64, frame: I64) -> tuple[I64, I64]:
        """Stacks of named frames without inlined calls, as numbers of frames."""
        numbers = np.full(len(self.named), -1, np.int64)
        numbers[self.rows] = np.arange(len(self.rows))
        kept = numbers[frame] >= 0
        return np.concatenate(([0], np.cumsum(kept)))[first], numbers[frame[kept]]


def _column(values: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
    return np.zeros(0, np.uint64) if values is None else values


def _with_calls(values: Sequence[Any], inlined: list[tuple[SourceLine, ...]], name: str) -> Iterator[Any]:
    """A value of each frame, and behind it those of the calls that are inlined there."""
    for value, lines in zip(values, inlined, strict=True):
        yield value
        for line in lines:
            yield getattr(line, name)
