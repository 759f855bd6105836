"""What is known of the functions that one thread's evaluators run.

An evaluator is a function of the interpreter; while it runs it has one frame on the thread's stack, and any number of
functions of the program are in it. So the chain of these functions has *parts*, one for each evaluator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from walkback.base.arch import ByteOrder
from walkback.runtimes.memory import TargetMemory


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


class Standing(NamedTuple):
    """A thread that stands still."""

    registers: tuple[int, ...]
    start: int
    """Where the copy of its stack begins."""
    stack: bytes
    end: int
    """Where the memory of its stack ends."""


class Walked(NamedTuple):
    """The native frames of a thread, innermost first."""

    lookup: list[int]
    """The address to look up of each."""
    sp: list[int]
    """Where each begins on the stack; 0 where that is not known."""


class Looked(Protocol):
    """What was read of one thread while it stood still."""

    def chain(self, known: RuntimeFrames, walked: Walked, /) -> Chain:
        """The same with names and lines, for which the thread need not stand still."""


class Runtime(Protocol):
    """An interpreter in one process."""

    def prepare(self, memory: TargetMemory, /) -> None:
        """Look which threads there are; they may be running."""

    def look(
        self,
        thread: int,
        memory: TargetMemory,
        standing: Callable[[], Standing] | None,
        running: TargetMemory | None,
        /,
    ) -> Looked | None:
        """What a thread runs, by the number that it has for itself; None for nothing.

        Without `standing` it may be running: then what is read is for later looks. With `running`, the memory of the
        process as it is now, the other may be a `CopiedMemory`.
        """

    @property
    def is_foreseeable(self) -> bool:
        """Whether a look at a running thread reads the same memory as one that follows at once."""

    def is_entering(self, pc: int, /) -> bool:
        """Whether a thread with this program counter may be entering an evaluator, and its chain is not in order."""


class RuntimeFile(Protocol):
    """A file that holds an interpreter."""

    def open(self, bias: int, memory: TargetMemory, byteorder: ByteOrder, limit: int) -> Runtime:
        """The interpreter in a process; at most `limit` frames of a thread are followed.

        One that is not known is an `UnreadableError`.
        """
