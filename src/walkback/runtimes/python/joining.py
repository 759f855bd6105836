"""The tasks of all threads of a process together: each once, with its stack, and the tasks that await it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from walkback.runtimes.chains import RuntimeFrame
from walkback.runtimes.python.code import Code, Codes
from walkback.runtimes.python.coroutines import Coroutine
from walkback.runtimes.python.offsets import Build
from walkback.runtimes.python.tasklayout import STATES, TaskLayout
from walkback.runtimes.python.taskreading import ReadTask, ReadTasks
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


class _Frames(NamedTuple):
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
        self._known: set[int] = set()
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
            self._futures |= one.tasks.futures

    def tasks(self) -> list[AsyncioTask]:
        """All tasks, each once."""
        listed: list[tuple[ThreadTasks, int | None, list[ReadTask]]] = []
        listed += [(one, one.thread, one.tasks.own) for one in self._threads]
        listed += [(one, None, one.tasks.ended) for one in self._threads]
        listed += [(one, None, one.tasks.others) for one in self._threads]
        self._known = {task.address for _, _, tasks in listed for task in tasks}
        found: dict[int, AsyncioTask] = {}
        for one, thread, tasks in listed:
            for task in tasks:
                if task.address not in found:
                    found[task.address] = self._task(one, thread, task)
        return list(found.values())

    def _task(self, one: ThreadTasks, thread: int | None, task: ReadTask) -> AsyncioTask:
        stack = self._stack(one, task)
        self._left -= len(stack.frames)
        state = TaskState.RUNNING if task.address in self._current else stack.state
        waiters = tuple(self._waiters(task.waiters))
        return AsyncioTask(task.address, task.name, thread, state, tuple(stack.frames), waiters, stack.end, stack.at)

    def _waiters(self, addresses: list[int]) -> list[int]:
        """The tasks among these, and those behind futures."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        left = addresses[::-1]
        while left:
            address = left.pop()
            if address in seen or not self._waits:
                continue
            seen.add(address)
            self._waits -= 1
            if address in self._futures:
                left += self._futures[address][: self._waits]
            elif address in self._known:
                found[address] = None
        return list(found)

    def _stack(self, one: ThreadTasks, task: ReadTask) -> _Frames:
        """The coroutines from that of the task on."""
        outer = one.tasks.coroutines.get(task.coroutine)
        if outer is None or outer.state is None:
            torn = task.coroutine in one.tasks.coroutines and outer is None
            return _Frames(TaskState.UNKNOWN, [], End.TORN if torn else End.COMPLETE, task.coroutine if torn else 0)
        state = self._state(outer.state)
        if state is TaskState.RUNNING:
            running = self._running_stack(task.coroutine + self._layout.coroutine_frame)
            if running is not None:
                return running
        frames: list[RuntimeFrame] = []
        address, end, at = task.coroutine, End.COMPLETE, 0
        seen: set[int] = set()
        while address:
            coroutine = one.tasks.coroutines.get(address)
            stop = self._stop(address, coroutine, one, len(frames), seen)
            if coroutine is None or stop is not None:
                end, at = stop or End.TORN, address
                break
            seen.add(address)
            if coroutine.code:
                code = one.codes[coroutine.code]
                assert code is not None
                frames.append(code.frame(self._codes.instruction(code, coroutine.instruction, coroutine.copy)))
            if coroutine.is_torn:
                end, at = End.TORN, address
            address = coroutine.awaited
        if state is TaskState.RUNNING and end is End.COMPLETE:
            # Its thread has run on since, or is not that of the list.
            end, at = End.TORN, task.coroutine
        return _Frames(state, frames[::-1], end, at)

    def _stop(
        self, address: int, coroutine: Coroutine | None, one: ThreadTasks, count: int, seen: set[int]
    ) -> End | None:
        """Why a coroutine cannot be the next one of a chain."""
        if count >= min(self._limit, self._left) or address not in one.tasks.coroutines:
            return End.LIMIT
        if address in seen:
            return End.LOOP
        if coroutine is None or (coroutine.code and one.codes.get(coroutine.code) is None):
            return End.TORN
        return None

    def _running_stack(self, frame: int) -> _Frames | None:
        """What a thread runs from its innermost function to that frame."""
        place = self._running.get(frame)
        if place is None:
            return None
        stack, last = place
        if last >= self._left:
            return _Frames(TaskState.RUNNING, [], End.LIMIT, frame)
        return _Frames(TaskState.RUNNING, [its for _, its in stack[: last + 1] if its is not None])

    def _state(self, state: int) -> TaskState:
        states = self._states
        if state == states.new:
            return TaskState.NEW
        if state == states.running:
            return TaskState.RUNNING
        return TaskState.ENDED if state in states.ended else TaskState.WAITING
