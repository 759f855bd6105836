"""The chain of frames of a thread, while that stands still.

From 3.12 on each evaluator puts a frame of its own on its stack, behind those of the functions that it runs; in 3.11
it has a record there, and the first function's frame is marked. Both say which evaluator the functions belong to.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Literal, NamedTuple

from walkback.base.errors import UnreadableError
from walkback.runtimes.chains import Chain, Part, RuntimeFrames
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.code import Code, Codes
from walkback.runtimes.python.layout import OWNED_BY_INTERPRETER, RECORDS
from walkback.runtimes.python.offsets import DAMAGED, Build, is_confirmed
from walkback.stacks.stacks import How

_PAGE = 4096
_MOST_INTERPRETERS = 1 << 10
_MOST_THREADS = 1 << 14
_OBJECT = -8
"""A mask: the lowest bits of the address of an object may be used otherwise."""


class _Frame(NamedTuple):
    """As it stands in memory."""

    code: int
    instruction: int
    copy: int


class Followed(NamedTuple):
    """What was read of one thread."""

    parts: list[tuple[int, list[_Frame]]]
    codes: dict[int, Code | None]
    instructions: dict[_Frame, int]
    torn: int | None


class PythonRuntime:
    """One CPython in one process."""

    def __init__(
        self,
        runtime: int,
        build: Build,
        byteorder: Literal["little", "big"],
        *,
        code_type: int | None = None,
        limit: int = 1024,
    ) -> None:
        """`runtime` is where it has `_PyRuntime`; at most `limit` frames of a thread are followed."""
        self._runtime, self._build, self._limit = runtime, build, limit
        self._order = "<" if byteorder == "little" else ">"
        layout = build.layout
        self._layout = layout
        self._codes = Codes(build, byteorder, code_type)
        self._record = RECORDS.get(build.version)
        self._threads: dict[int, list[int]] = {}
        self._strangers: set[int] = set()
        """Threads that no interpreter knew."""
        fields = [
            (layout.frame_previous, "Q"),
            (layout.frame_code, "Q"),
            (layout.frame_instruction, "Q"),
            (layout.frame_owner, "B"),
        ]
        if layout.frame_copy:
            fields.append((layout.frame_copy, "i"))
        self._frame, self._frame_fields = _picker(self._order, fields)
        self._thread, self._thread_fields = _picker(
            self._order,
            [
                (layout.thread_next, "Q"),
                (layout.thread_interpreter, "Q"),
                (layout.thread_frame, "Q"),
                (layout.thread_number, "Q"),
            ],
        )

    def prepare(self, memory: TargetMemory) -> None:
        """Look which threads there are; they may be running."""
        self._threads = {}
        for interpreter in self._interpreters(memory):
            for state, number in self._states(interpreter, memory):
                self._threads.setdefault(number, []).append(state)

    def look(self, number: int, memory: TargetMemory) -> Followed | None:
        """What a thread that stands still runs; None for one that runs no Python."""
        if number not in self._threads and number not in self._strangers:
            # It may have begun just now.
            self._strangers.add(number)
            self.prepare(memory)
        parts: list[tuple[int, list[_Frame]]] = []
        torn = None
        for state in self._threads.get(number, ()):
            words = self._state(state, memory)
            if words is not None and words[3] == number:
                following, broken = self._follow(words[2], state, memory)
                parts += following
                torn = torn or broken
        if not parts and torn is None:
            return None
        addresses = list(dict.fromkeys(frame.code for _, frames in parts for frame in frames))
        codes = self._codes.current(addresses, memory)
        instructions = {}
        for _, frames in parts:
            for frame in frames:
                code = codes[frame.code]
                if code is not None and frame not in instructions:
                    instructions[frame] = self._codes.instruction(code, frame.instruction, frame.copy, memory)
        return Followed(parts, codes, instructions, torn)

    def chain(self, followed: Followed, known: RuntimeFrames) -> Chain:
        """With names and lines, for which the thread need not stand still."""
        torn = followed.torn
        parts = []
        for at, frames in followed.parts:
            numbers = []
            for frame in frames:
                code = followed.codes[frame.code]
                if code is None:
                    torn = torn or frame.code
                    break
                numbers.append(known.add(code.frame(followed.instructions[frame])))
            parts.append(Part(at, numbers))
        return Chain(How.PYTHON, parts, torn)

    def _interpreters(self, memory: TargetMemory) -> Iterator[int]:
        address = self._word(self._runtime + self._layout.interpreters, memory)
        for _ in range(_MOST_INTERPRETERS):
            if not address or not is_confirmed(self._build, self._runtime, address, memory, self._order):
                return
            yield address
            address = self._word(address + self._layout.interpreter_next, memory)

    def _states(self, interpreter: int, memory: TargetMemory) -> Iterator[tuple[int, int]]:
        """The thread states of an interpreter, with the numbers of their threads."""
        state = self._word(interpreter + self._layout.interpreter_threads, memory)
        for _ in range(_MOST_THREADS):
            words = self._state(state, memory) if state else None
            if words is None or words[1] != interpreter:
                return
            yield state, words[3]
            state = words[0]

    def _state(self, state: int, memory: TargetMemory) -> Sequence[int] | None:
        contents = memory.read(state, self._thread.size)
        return self._thread_fields(self._thread.unpack(contents)) if len(contents) == self._thread.size else None

    def _word(self, address: int, memory: TargetMemory) -> int:
        contents = memory.read(address, 8)
        return int(struct.unpack(f"{self._order}Q", contents)[0]) if len(contents) == 8 else 0

    def _follow(
        self, address: int, state: int, memory: TargetMemory
    ) -> tuple[list[tuple[int, list[_Frame]]], int | None]:
        """The parts of a chain, and where it could not be followed."""
        records = self._records(address, state, memory)
        if self._record is not None:
            address = records[0][1] if records else 0
        marks_first = self._build.version == (3, 11)
        parts: list[tuple[int, list[_Frame]]] = []
        frames: list[_Frame] = []
        seen: set[int] = set()
        window, start, room = b"", 0, -1
        unpack, fields, size = self._frame.unpack_from, self._frame_fields, self._frame.size
        while address:
            if address & 7 or address in seen or len(seen) >= self._limit:
                return parts, address
            seen.add(address)
            place = address - start
            if not 0 <= place <= room:
                # Its callers are mostly below it.
                start = address & -_PAGE
                window = memory.read(start, address - start + size)
                place, room = address - start, len(window) - size
                if place > room:
                    return parts, address
            previous, code, instruction, owner, *copy = fields(unpack(window, place))
            if marks_first or owner < OWNED_BY_INTERPRETER:
                frames.append(_Frame(code & _OBJECT, instruction, copy[0] if copy else 0))
            if marks_first and owner:
                if len(parts) >= len(records):
                    return parts, address
                parts.append((records[len(parts)][0], frames))
                frames = []
            elif not marks_first and owner >= OWNED_BY_INTERPRETER:
                parts.append((address, frames))
                frames = []
            address = previous
        return parts, (frames[-1].code if frames else None)

    def _records(self, address: int, state: int, memory: TargetMemory) -> list[tuple[int, int]]:
        """The records of evaluators, from the newest on: where each is, and its newest frame."""
        found: list[tuple[int, int]] = []
        if self._record is None:
            return found
        pick, fields = _picker(self._order, [(self._record.newest, "Q"), (self._record.previous, "Q")])
        while address and address != state + self._record.last and len(found) < self._limit:
            contents = memory.read(address, pick.size)
            if len(contents) < pick.size:
                break
            newest, previous = fields(pick.unpack(contents))
            found.append((address, newest))
            # 3.12 needs the newest only: its evaluators have frames of their own.
            if self._build.version != (3, 11) or previous <= address:
                break
            address = previous
        return found


def _picker(order: str, fields: Sequence[tuple[int, str]]) -> tuple[struct.Struct, itemgetter]:  # type: ignore[type-arg]
    """What takes numbers from a structure, and brings them into the order in which they were asked for."""
    rising = sorted(fields)
    text, place = order, 0
    for offset, kind in rising:
        if offset < place:
            raise UnreadableError(DAMAGED)
        text += f"{offset - place}x{kind}"
        place = offset + struct.calcsize(f"{order}{kind}")
    return struct.Struct(text), itemgetter(*(rising.index(field) for field in fields))
