"""The tasks of all threads of a process together: each once, with its stack, and the tasks that await it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from walkback.runtimes.chains import RuntimeFrame
from walkback.runtimes.python.code import Code, Codes
from walkback.runtimes.python.coroutines import BROKEN, NO_COROUTINE, Coroutine
from walkback.runtimes.python.offsets import Build
from walkback.runtimes.python.tasklayout import STATES, TaskLayout
from walkback.runtimes.python.taskreading import ReadTasks, TaskColumns
from walkback.runtimes.tasks import AsyncioTask, TaskState
from walkback.stacks.stacks import End

_MOST_FRAMES = 1 << 20
_MOST_WAITS = 1 << 20
"""Steps from tasks to what awaits them."""


class ThreadTasks(NamedTuple):
    """What was read of one thread."""

    thread: int
    tasks: ReadTasks
    codes: dict[int, Code | None]
    stacks: list[list[tuple[int, RuntimeFrame | None]]]
    """The frames that it runs, innermost first: where each is, and its function, if it has one."""


class _Stack(NamedTuple):
    """The stack of one task."""

    state: TaskState
    frames: list[RuntimeFrame]
    end: End = End.COMPLETE
    at: int = 0


class Joining:
    """Makes tasks of what was read."""

    def __init__(
        self, build: Build, layout: TaskLayout, codes: Codes, limit: int, threads: Sequence[ThreadTasks]
    ) -> None:
        """At most `limit` frames of a task are followed."""
        self._states, self._layout, self._codes, self._limit = STATES[build.version], layout, codes, limit
        self._threads = threads
        self._left, self._waits = _MOST_FRAMES, _MOST_WAITS
        self._running = {
            address: (stack, place)
            for one in threads
            for stack in one.stacks
            for place, (address, _) in enumerate(stack)
        }
        """Where on which stack the frame of a coroutine is that runs."""
        self._current = {address for one in threads for address in one.tasks.current}
        self._futures: dict[int, list[int]] = {}
        for one in threads:
            self._futures |= {future: one.tasks.waiters.get(future, []) for future in one.tasks.futures}

    def tasks(self) -> list[AsyncioTask]:
        """All tasks, each once."""
        known = {address for _, _, its in self._all() for address in its.address}
        found: dict[int, AsyncioTask] = {}
        for one, thread, its in self._all():
            for address, name, coroutine in zip(its.address, its.name, its.coroutine, strict=True):
                if address in found:
                    continue
                stack = self._stack(one, coroutine)
                self._left -= len(stack.frames)
                found[address] = AsyncioTask(
                    address=address,
                    name=one.tasks.names.find(name) or f"<task at {address:#x}>",
                    thread=thread,
                    state=TaskState.RUNNING if address in self._current else stack.state,
                    frames=tuple(stack.frames),
                    awaited_by=tuple(self._waiters(one.tasks.waiters.get(address, []), known)),
                    end=stack.end,
                    at=stack.at,
                )
        return list(found.values())

    def _all(self) -> Iterator[tuple[ThreadTasks, int | None, TaskColumns]]:
        """What was read of each thread, and which has made it; those of lists first."""
        yield from ((one, one.thread, one.tasks.own) for one in self._threads)
        yield from ((one, None, one.tasks.ended) for one in self._threads)
        yield from ((one, None, one.tasks.others) for one in self._threads)

    def _waiters(self, addresses: list[int], known: set[int]) -> list[int]:
        """The tasks among these, and those behind futures."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        left = addresses[::-1]
        while left and self._waits:
            address = left.pop()
            if address in seen:
                continue
            seen.add(address)
            self._waits -= 1
            if address in self._futures:
                left += self._futures[address][: self._waits]
            elif address in known:
                found[address] = None
        return list(found)

    def _stack(self, one: ThreadTasks, address: int) -> _Stack:
        """The coroutines from that of a task on."""
        outer = one.tasks.coroutines.find(address)
        state = self._state(outer)
        if state is TaskState.RUNNING:
            running = self._running_stack(address + self._layout.coroutine_frame)
            if running is not None:
                return running
        frames: list[RuntimeFrame] = []
        seen: set[int] = set()
        end, at, coroutine = End.COMPLETE, address, outer
        while at:
            stop = self._stop(at, coroutine, one, len(frames), seen)
            if stop is not None or coroutine is None:
                end = stop or End.TORN
                break
            seen.add(at)
            if coroutine.code:
                code = one.codes[coroutine.code]
                assert code is not None
                frames.append(code.frame(self._codes.instruction(code, coroutine.instruction, coroutine.copy)))
            if coroutine.is_torn:
                end = End.TORN
                break
            at = coroutine.awaited
            coroutine = one.tasks.coroutines.find(at)
        if state is TaskState.RUNNING and end is End.COMPLETE:
            # Its thread has run on since, or is not that of the list.
            end, at = End.TORN, address
        return _Stack(state, frames[::-1], end, at)

    def _stop(
        self, address: int, coroutine: Coroutine | None, one: ThreadTasks, count: int, seen: set[int]
    ) -> End | None:
        """Why a coroutine cannot be the next one of a chain."""
        if coroutine is None or count >= min(self._limit, self._left):
            return End.LIMIT
        if address in seen:
            return End.LOOP
        if coroutine.state == BROKEN or (coroutine.code and one.codes.get(coroutine.code) is None):
            return End.TORN
        return None

    def _running_stack(self, frame: int) -> _Stack | None:
        """What a thread runs from its innermost function to that frame."""
        place = self._running.get(frame)
        if place is None:
            return None
        stack, last = place
        if last >= self._left:
            return _Stack(TaskState.RUNNING, [], End.LIMIT, frame)
        return _Stack(TaskState.RUNNING, [its for _, its in stack[: last + 1] if its is not None])

    def _state(self, coroutine: Coroutine | None) -> TaskState:
        states = self._states
        if coroutine is None or coroutine.state in {NO_COROUTINE, BROKEN}:
            return TaskState.UNKNOWN
        if coroutine.state == states.new:
            return TaskState.NEW
        if coroutine.state == states.running:
            return TaskState.RUNNING
        return TaskState.ENDED if coroutine.state in states.ended else TaskState.WAITING
