"""The tasks of asyncio of a thread, while that stands still: the lists of them, what awaits each, and their coroutines.

A task is in the list of the thread that has made it, until it has ended; if the thread ends first, in that of its
interpreter. What awaits it is in the task: another task, or a future, which may be awaited itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from walkback.runtimes.memory import TargetMemory, gathered
from walkback.runtimes.python.coroutines import Coroutine, Coroutines
from walkback.runtimes.python.objecttypes import ObjectTypes, is_object, words
from walkback.runtimes.python.offsets import Build
from walkback.runtimes.python.strings import Strings, word
from walkback.runtimes.python.tasklayout import (
    DIGIT_BITS,
    ENTRY,
    IS_NUMBER,
    IS_STRING,
    SIZE_SHIFT,
    TaskLayout,
)

_MOST_TASKS = 1 << 16
"""Of a process, in one look."""
_MOST_COROUTINES = 1 << 18
_MOST_WAITERS = 1 << 18
_MOST_ENTRIES = 1 << 16
"""Of one set."""
_MOST_FUTURES = 8
"""Futures one behind the other, each awaiting the next."""
_NAME = 128
"""Bytes of a name that are read at once."""
_REMOVED = 2**64 - 1
"""The hash of an entry that is not in the set any more."""
_OBJECT = -8


class ReadTask(NamedTuple):
    """What one task has."""

    address: int
    name: str
    coroutine: int
    waiters: list[int]


@dataclass
class ReadTasks:
    """What was read of one thread."""

    current: set[int] = field(default_factory=set)
    """The tasks that it runs."""
    own: list[ReadTask] = field(default_factory=list)
    ended: list[ReadTask] = field(default_factory=list)
    """Those of threads that have ended."""
    others: list[ReadTask] = field(default_factory=list)
    """Those that await these and are in neither list."""
    futures: dict[int, list[int]] = field(default_factory=dict)
    """The futures that await these, with what awaits them."""
    coroutines: dict[int, Coroutine | None] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    def codes(self) -> set[tuple[int, int]]:
        """The code objects of all coroutines, each with the number of the copy of its instructions."""
        return {(one.code, one.copy) for one in self.coroutines.values() if one is not None and one.code}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there, and nothing is wrong."""
        return not (self.own or self.ended or self.troubles)


class _Budget:
    """How much is read at most in one look at all threads, whatever the memory says."""

    def __init__(self) -> None:
        self.tasks, self.coroutines, self.waiters = _MOST_TASKS, _MOST_COROUTINES, _MOST_WAITERS


class TaskReader:
    """Reads the tasks of one Python in one process."""

    def __init__(self, build: Build, layout: TaskLayout, strings: Strings, order: str) -> None:
        self.layout, self._order, self._strings = layout, order, strings
        self._type_at, self._big = build.layout.object_type, order == ">"
        self._types = ObjectTypes(layout, order)
        self._coroutines = Coroutines(build, layout, self._types, order)
        self._budget = _Budget()
        self._listed: dict[int, list[int]] = {}
        """The tasks that were in each list the last time: they are read at once."""
        self._keepers: dict[int, int] = {}
        """The thread with which the list of each interpreter is read."""
        self._head = max(layout.task_awaited_by + 8, layout.task_is_task + 1, layout.task_has_set + 1)
        """What futures have as well."""
        self._size = max(self._head, layout.task_name + 8, layout.task_coroutine + 8, layout.task_node + 16)

    def begin(self) -> None:
        """Begin another look at all threads."""
        self._budget = _Budget()
        self._keepers.clear()

    def read(
        self, number: int, states: Iterable[tuple[int, int]], memory: TargetMemory, *, is_standing: bool
    ) -> ReadTasks:
        """The tasks of a thread, by its states with their interpreters; one that runs is read for later looks."""
        budget = self._budget if is_standing else _Budget()
        self._types.forget()
        found, layout = ReadTasks(), self.layout
        own: dict[int, bytes] = {}
        ended: dict[int, bytes] = {}
        for state, interpreter in states:
            loop, task = (self._word(state + place, memory) for place in (layout.thread_loop, layout.thread_task))
            if loop and task:
                found.current.add(task & _OBJECT)
            self._follow(state + layout.thread_tasks, own, budget, found, memory)
            if not is_standing or self._keepers.setdefault(interpreter, number) == number:
                self._follow(interpreter + layout.interpreter_tasks, ended, budget, found, memory)
        known = own.keys() | ended.keys()
        waiters = self._waiters({**own, **ended}, budget, found.troubles, memory)
        others = self._others(waiters, known, found, budget, memory)
        names = self._names([*own.values(), *ended.values(), *others.values()], memory)
        for contents, tasks in ((own, found.own), (ended, found.ended), (others, found.others)):
            for address, chunk in contents.items():
                name, coroutine = (self._pointer(chunk, at) for at in (layout.task_name, layout.task_coroutine))
                called = names.get(name) or f"<task at {address:#x}>"
                tasks.append(ReadTask(address, called, coroutine, waiters.get(address, [])))
        coroutines = [one.coroutine for one in (*found.own, *found.ended, *found.others) if one.coroutine]
        found.coroutines = self._coroutines.read(coroutines, budget.coroutines, memory)
        budget.coroutines -= len(found.coroutines)
        return found

    def _follow(
        self, head: int, tasks: dict[int, bytes], budget: _Budget, found: ReadTasks, memory: TargetMemory
    ) -> None:
        """Add the tasks of a list."""
        place, order = self.layout.task_node, self._order
        before = self._listed.get(head, [])
        ready = dict(zip(before, gathered(before, self._size, memory), strict=True))
        listed: list[int] = []
        node = self._word(head + self.layout.list_next, memory)
        while node != head:
            address = node - place
            if not budget.tasks:
                found.troubles.append(f"there are more tasks than the {_MOST_TASKS} that are read")
                break
            chunk = b""
            if is_object(address) and address not in tasks:
                chunk = ready.get(address) or memory.read(address, self._size)
            if len(chunk) < self._size or chunk[self.layout.task_is_task] != 1:
                found.troubles.append(f"a list of tasks cannot be followed at {address % 2**64:#x}")
                break
            budget.tasks -= 1
            tasks[address] = chunk
            listed.append(address)
            node = word(chunk, place + self.layout.list_next, order) or 0
        self._listed[head] = listed

    def _waiters(
        self, tasks: dict[int, bytes], budget: _Budget, troubles: list[str], memory: TargetMemory
    ) -> dict[int, list[int]]:
        """What awaits each task or future."""
        found: dict[int, list[int]] = {}
        for address, chunk in tasks.items():
            awaited_by = self._pointer(chunk, self.layout.task_awaited_by)
            if not awaited_by:
                continue
            several = self._members(awaited_by, memory) if chunk[self.layout.task_has_set] else [awaited_by]
            if several is None:
                troubles.append(f"what awaits the task at {address:#x} cannot be read")
                continue
            found[address] = several[: budget.waiters]
            budget.waiters -= len(found[address])
            if len(found[address]) < len(several):
                troubles.append(f"more await these tasks than the {_MOST_WAITERS} that are read")
                break
        return found

    def _members(self, address: int, memory: TargetMemory) -> list[int] | None:
        """The objects of a set; None where there is none."""
        layout, order = self.layout, self._order
        head = memory.read(address, max(layout.set_used, layout.set_table, layout.set_mask) + 8)
        mask, table = word(head, layout.set_mask, order), word(head, layout.set_table, order)
        if mask is None or mask >= _MOST_ENTRIES or not table:
            return None
        contents = memory.read(table, ENTRY * (mask + 1))
        if len(contents) < ENTRY * (mask + 1):
            return None
        entries = words(contents, order)
        pairs = zip(entries[::2], entries[1::2], strict=False)
        return [one for one, its in pairs if its != _REMOVED and is_object(one)]

    def _others(
        self,
        waiters: dict[int, list[int]],
        known: set[int],
        found: ReadTasks,
        budget: _Budget,
        memory: TargetMemory,
    ) -> dict[int, bytes]:
        """The tasks that are only known because they await something; futures that do are added as well."""
        tasks: dict[int, bytes] = {}
        new = {one for several in waiters.values() for one in several} - known
        for _ in range(_MOST_FUTURES):
            heads = {one: chunk for one in new if len(chunk := memory.read(one, self._head)) == self._head}
            those = {one: chunk for one, chunk in heads.items() if chunk[self.layout.task_is_task] == 0}
            for one, chunk in heads.items():
                if chunk[self.layout.task_is_task] == 1 and budget.tasks:
                    whole = memory.read(one, self._size)
                    if len(whole) == self._size:
                        budget.tasks -= 1
                        tasks[one] = whole
            those |= {one: tasks[one] for one in heads if one in tasks}
            its = self._waiters(those, budget, found.troubles, memory)
            found.futures |= {one: its.get(one, []) for one in those if one not in tasks}
            waiters |= its
            new = {one for several in its.values() for one in several} - known - tasks.keys() - found.futures.keys()
            if not new:
                break
        return tasks

    def _names(self, chunks: list[bytes], memory: TargetMemory) -> dict[int, str]:
        """The names at these addresses: text, or a number where nobody has asked for it yet."""
        addresses = list(dict.fromkeys(self._pointer(chunk, self.layout.task_name) for chunk in chunks))
        addresses = [one for one in addresses if one]
        found = {}
        for address, head in zip(addresses, gathered(addresses, _NAME, memory), strict=True):
            kind = word(head, self._type_at, self._order)
            flags = self._types.find(kind, memory)[0] if kind else 0
            name = None
            if flags & IS_NUMBER:
                number = self._number(head)
                name = f"Task-{number}" if number is not None else None
            elif flags & IS_STRING:
                name = self._strings.read(address, memory, head)
            if name:
                found[address] = name
        return found

    def _number(self, head: bytes) -> int | None:
        """A number of at most three digits, which are of 30 bits."""
        tag = word(head, self.layout.number_tag, self._order)
        if tag is None or not 0 < tag >> SIZE_SHIFT <= 3:
            return None
        begin, size = self.layout.number_digits, 4 * (tag >> SIZE_SHIFT)
        digits = head[begin : begin + size]
        if len(digits) < size:
            return None
        order = "big" if self._big else "little"
        parts = (int.from_bytes(digits[at : at + 4], order) for at in range(0, size, 4))  # type: ignore[arg-type]
        return sum(part << DIGIT_BITS * place for place, part in enumerate(parts))

    def _pointer(self, chunk: bytes, place: int) -> int:
        """The address of an object; 0 where none can be."""
        address = (word(chunk, place, self._order) or 0) & _OBJECT
        return address if is_object(address) else 0

    def _word(self, address: int, memory: TargetMemory) -> int:
        return word(memory.read(address % 2**64, 8), 0, self._order) or 0
