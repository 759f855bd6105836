"""The chain of frames of a thread, while that stands still.

From 3.12 on each evaluator puts a frame of its own on its stack, behind those of the functions that it runs; in 3.11
it has a record there, and the first function's frame is marked. Both say which evaluator the functions belong to.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import U64, first_of_each
from walkback.runtimes.chains import Chain, Part, RuntimeFrame, RuntimeFrames, Standing, Walked
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python._frames import WIDTH, follow
from walkback.runtimes.python.code import Code, Codes
from walkback.runtimes.python.joining import Joining, ThreadTasks
from walkback.runtimes.python.layout import OWNED_BY_INTERPRETER, RECORDS
from walkback.runtimes.python.offsets import Build, is_confirmed
from walkback.runtimes.python.tasklayout import read_task_layout
from walkback.runtimes.python.taskreading import ReadTasks, TaskReader
from walkback.runtimes.tasks import AsyncioTask
from walkback.stacks.stacks import How

_PAGE = 4096
_MOST_INTERPRETERS = 1 << 10
_MOST_THREADS = 1 << 14
_ENTRY = 256
"""Bytes of code that the beginning of an evaluator has at most."""
_LOOKS = 1 << 12
"""Pages in which the end of a part that is cut is looked for."""
_OBJECT = -8
"""A mask: the lowest bits of the address of an object may be used otherwise."""


class _Thread(NamedTuple):
    """What one thread state has."""

    rows: list[list[int]]
    """Frames, as `_frames` reads them."""
    records: list[tuple[int, int]]
    """Those of evaluators, of 3.11."""
    torn: int | None
    entry: int | None = None
    """Where there are more frames than are read: an address in the frame of the evaluator whose part is cut."""


class Followed(NamedTuple):
    """What was read of one thread."""

    runtime: PythonRuntime
    threads: list[_Thread]
    codes: dict[int, Code | None]
    tasks: ReadTasks | None

    def chain(self, known: RuntimeFrames, _: Walked) -> Chain:
        """With names and lines; where evaluators are on the stack was read as well."""
        parts: list[Part] = []
        torn = None
        for thread in self.threads:
            broken = self.runtime.add_parts(thread, self.codes, parts, known)
            torn = torn or broken
        has_more = any(one.torn is not None and len(one.rows) == self.runtime.limit for one in self.threads)
        return Chain(How.PYTHON, parts, torn, has_more)


class PythonRuntime:
    """One CPython in one process."""

    def __init__(
        self,
        runtime: int,
        build: Build,
        byteorder: ByteOrder,
        *,
        code_type: int | None = None,
        evaluator: int | None = None,
        limit: int = 1024,
    ) -> None:
        """`runtime` is where it has `_PyRuntime`; at most `limit` frames of a thread are followed.

        `evaluator` is where the code of the evaluator begins.
        """
        self._runtime, self._build, self.limit = runtime, build, limit
        self._big = byteorder == "big"
        self._order = ">" if self._big else "<"
        layout = build.layout
        self._layout = layout
        self._codes = Codes(build, byteorder, code_type)
        self._record = RECORDS.get(build.version)
        self._evaluator = evaluator
        self._marks_first = build.version == (3, 11)
        """Whether the first frame of an evaluator is marked, and none is its own."""
        self._threads: dict[int, list[int]] = {}
        self._strangers: set[int] = set()
        """Threads that no interpreter knew."""
        copy = layout.frame_copy or -1
        ends = (layout.frame_previous + 8, layout.frame_code + 8, layout.frame_instruction + 8, layout.frame_owner + 1)
        self._size = max(*ends, copy + 4)
        places = (layout.frame_previous, layout.frame_code, layout.frame_instruction, layout.frame_owner)
        self._shape = np.array([*places, copy, self._size], np.int64)
        self._found = np.zeros((limit, WIDTH), np.uint64)
        self._thread = _Words(
            self._order, layout.thread_next, layout.thread_interpreter, layout.thread_frame, layout.thread_number
        )
        self._of_record = _Words(self._order, *((self._record.newest, self._record.previous) if self._record else ()))
        self._tasks: TaskReader | None = None

    def read_tasks(self, table: int, memory: TargetMemory) -> None:
        """Read asyncio's tasks as well from now on; `table` is where the module has `_AsyncioDebug`."""
        if self._tasks is None:
            layout = read_task_layout(self._runtime, table, self._build, memory, self._order)
            byteorder: ByteOrder = "big" if self._big else "little"
            self._tasks = TaskReader(self._build, layout, self._codes.strings, byteorder, self.limit)

    @property
    def is_foreseeable(self) -> bool:
        """Asyncio's tasks are more than can be read twice for each sample."""
        return self._tasks is None

    @property
    def version(self) -> tuple[int, int]:
        """The version of Python."""
        return self._build.version

    def prepare(self, memory: TargetMemory) -> None:
        """Look which threads there are; they may be running."""
        if self._tasks is not None:
            self._tasks.begin()
        self._find_threads(memory)

    def _find_threads(self, memory: TargetMemory) -> None:
        self._threads = {}
        for interpreter in self._interpreters(memory):
            for state, number in self._states(interpreter, memory):
                self._threads.setdefault(number, []).append(state)

    def is_entering(self, pc: int) -> bool:
        """Whether a thread there may have linked the record of its evaluator before it has filled it."""
        return self._record is not None and self._evaluator is not None and 0 <= pc - self._evaluator < _ENTRY

    def look(
        self,
        number: int,
        memory: TargetMemory,
        standing: Callable[[], Standing] | None = None,
        running: TargetMemory | None = None,
    ) -> Followed | None:
        """What a thread runs; None for one that runs no Python."""
        if number not in self._threads and number not in self._strangers:
            # It may have begun just now.
            self._strangers.add(number)
            self._find_threads(memory)
        threads, states = self._followed(number, memory)
        tasks = None
        if self._tasks is not None and states:
            tasks = self._tasks.read(number, states, memory, is_standing=standing is not None)
        rows = [(row[1] & _OBJECT, row[4]) for one in threads for row in one.rows if self._is_function(row)]
        rows += [] if tasks is None else tasks.coroutines.codes()
        if not rows and all(one.torn is None for one in threads) and (tasks is None or tasks.is_empty):
            return None
        addresses = list({address for address, _ in rows})
        if running is None:
            codes = self._codes.current(addresses, memory)
        elif standing is None:
            self._codes.learn(addresses, running)
            return None
        else:
            codes = self._codes.unchanged(addresses, running)
        for address, copy in rows:
            code = codes[address] if copy else None
            if code is not None:
                self._codes.find_copy(code, copy, memory)
        return Followed(self, threads, codes, tasks)

    def _followed(self, number: int, memory: TargetMemory) -> tuple[list[_Thread], list[tuple[int, int]]]:
        """The chains of a thread, and its states with their interpreters."""
        threads, states = [], []
        for state in self._threads.get(number, ()):
            words = self._thread.read(memory, state)
            if words is not None and words[3] == number:
                states.append((state, words[1]))
                if words[2]:
                    threads.append(self._follow(words[2], state, memory))
        return threads, states

    def join_tasks(self, looked: Sequence[tuple[int, Followed]]) -> list[AsyncioTask]:
        """The tasks of threads, each by the number by which others know it."""
        if self._tasks is None:
            return []
        threads = [
            ThreadTasks(number, one.tasks, one.codes, [self._stack(thread, one.codes) for thread in one.threads])
            for number, one in looked
            if one.tasks is not None
        ]
        return Joining(self._build, self._tasks.layout, self._codes, self.limit, threads).tasks()

    def _stack(self, thread: _Thread, codes: dict[int, Code | None]) -> list[tuple[int, RuntimeFrame | None]]:
        """Where the frames of a thread are, and the functions of those that have one."""
        found: list[tuple[int, RuntimeFrame | None]] = []
        for row in thread.rows:
            address, code_at, instruction, _, copy = row
            if not self._is_function(row):
                found.append((address, None))
                continue
            code = codes[code_at & _OBJECT]
            if code is None:
                break
            frame = None if code.is_inner else code.frame(self._codes.instruction(code, instruction, copy))
            found.append((address, frame))
        return found

    def _is_function(self, row: list[int]) -> bool:
        return self._marks_first or row[3] < OWNED_BY_INTERPRETER

    def add_parts(
        self, thread: _Thread, codes: dict[int, Code | None], parts: list[Part], known: RuntimeFrames
    ) -> int | None:
        """Add the parts of a chain; returns where it could not be followed."""
        frames: list[int] = []
        seen: set[int] = set()
        number = 0
        for row in thread.rows:
            address, code_at, instruction, owner, copy = row
            if address in seen:
                return address
            seen.add(address)
            is_function = self._is_function(row)
            if is_function:
                code = codes[code_at & _OBJECT]
                if code is None:
                    return address
                if not code.is_inner:
                    frames.append(known.add(code.frame(self._codes.instruction(code, instruction, copy))))
            if owner if self._marks_first else not is_function:
                if self._marks_first:
                    if number >= len(thread.records):
                        return address
                    address = thread.records[number][0]
                parts.append(Part(address, frames))
                number += 1
                frames = []
        if frames and thread.entry is not None:
            parts.append(Part(thread.entry, frames))
        return thread.torn if not frames or thread.torn is not None else thread.rows[-1][0]

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
            words = self._thread.read(memory, state) if state else None
            if words is None or words[1] != interpreter:
                return
            yield state, words[3]
            state = words[0]

    def _word(self, address: int, memory: TargetMemory) -> int:
        contents = memory.read(address, 8)
        return int(struct.unpack(f"{self._order}Q", contents)[0]) if len(contents) == 8 else 0

    def _follow(self, address: int, state: int, memory: TargetMemory) -> _Thread:
        """The frames of a chain, whose newest one is there; in 3.11 and 3.12 the newest record of an evaluator."""
        records = self._records(address, state, memory)
        if self._record is not None:
            address = records[0][1] if records else 0
        used = 0
        while address:
            # Its callers are mostly below it.
            start = address & -_PAGE
            window = memory.read(start, address - start + self._size)
            following, now = follow(memoryview(window), start, address, self._shape, self._big, self._found, used)
            if now == used:
                used = _before_circle(self._found[:used])
                entry = self._entry(address, records, memory) if used == self.limit else None
                return _Thread(self._found[:used].tolist(), records, address, entry)
            address, used = following, now
        return _Thread(self._found[:used].tolist(), records, None)

    def _entry(self, address: int, records: list[tuple[int, int]], memory: TargetMemory) -> int | None:
        """The first frame from one on that is an evaluator's own; in 3.11 the record of the evaluator."""
        if self._marks_first:
            number = int(np.count_nonzero(self._found[:, 3]))
            return records[number][0] if number < len(records) else None
        found = np.zeros_like(self._found)
        seen = set()
        for _ in range(_LOOKS):
            seen.add(address)
            start = address & -_PAGE
            window = memory.read(start, address - start + self._size)
            address, used = follow(memoryview(window), start, address, self._shape, self._big, found, 0)
            own = np.flatnonzero(found[:used, 3] >= OWNED_BY_INTERPRETER)
            if len(own):
                return int(found[own[0], 0])
            if not used or not address or address in seen:
                break
        return None

    def _records(self, address: int, state: int, memory: TargetMemory) -> list[tuple[int, int]]:
        """The records of evaluators, from the newest on: where each is, and its newest frame."""
        found: list[tuple[int, int]] = []
        if self._record is None:
            return found
        last = state + self._record.last
        while address and address != last and len(found) < len(self._found):
            words = self._of_record.read(memory, address)
            if words is None:
                break
            found.append((address, words[0]))
            # 3.12 needs the newest only: its evaluators have frames of their own.
            if not self._marks_first or words[1] <= address:
                break
            address = words[1]
        return found


def _before_circle(found: U64) -> int:
    """How many frames come before one that was there, as when a thread makes new ones in the place of old ones."""
    first = first_of_each(found[:, 0])[1]
    return len(first) if len(first) == len(found) else int(np.setdiff1d(np.arange(len(found)), first)[0])


class _Words:
    """Some words of a structure."""

    def __init__(self, order: str, *places: int) -> None:
        self._places = [slice(place, place + 8) for place in places]
        self._size = max(places, default=0) + 8
        self._words = struct.Struct(f"{order}{len(places)}Q")

    def read(self, memory: TargetMemory, address: int) -> tuple[int, ...] | None:
        """Those of the structure at an address; None if it is not there."""
        contents = memory.read(address, self._size)
        if len(contents) < self._size:
            return None
        return self._words.unpack(b"".join([contents[place] for place in self._places]))
