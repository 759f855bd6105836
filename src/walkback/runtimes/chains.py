"""What is known of the functions that one thread's evaluators run.

An evaluator is a function of the interpreter; while it runs it has one frame on the thread's stack, and any number of
functions of the program are in it. So the chain of these functions has *parts*, one for each evaluator.
"""

from __future__ import annotations

from typing import NamedTuple


class RuntimeFrame(NamedTuple):
    """A function at a line."""

    symbol: str
    file: str | None
    line: int
    """0 where it is not known."""


class RuntimeFrames:
    """The distinct frames that were met, by number."""

    def __init__(self) -> None:
        self._numbers: dict[RuntimeFrame, int] = {}
        self._all: list[RuntimeFrame] = []

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> RuntimeFrame:
        return self._all[number]

    def add(self, frame: RuntimeFrame) -> int:
        """The number of a frame."""
        number = self._numbers.setdefault(frame, len(self._all))
        if number == len(self._all):
            self._all.append(frame)
        return number


class Part(NamedTuple):
    """The frames of one evaluator."""

    at: int
    """An address in the evaluator's own frame on the stack."""
    frames: list[int]
    """Numbers of `RuntimeFrames`, innermost first."""


class Chain(NamedTuple):
    """The parts of one thread, as far as they could be followed."""

    how: int
    """A `How` for these frames."""
    parts: list[Part]
    torn: int | None = None
    """The address at which the chain could not be followed; None if it came to its end."""
    has_more: bool = False
    """Whether it goes on there with more frames than were wanted."""
