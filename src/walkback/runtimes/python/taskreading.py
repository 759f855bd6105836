"""The tasks of asyncio of a thread, while that stands still: the lists of them, what awaits each, and their coroutines.

A task is in the list of the thread that has made it, until it has ended; if the thread ends first, in that of its
interpreter. What awaits it is in the task: another task, or a future, which may be awaited itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.dataclass import dataclass
from walkback.runtimes.bulk import Objects, read_objects
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.coroutines import Coroutines, ReadCoroutines
from walkback.runtimes.python.objecttypes import ObjectTypes, are_objects, is_object
from walkback.runtimes.python.offsets import Build
from walkback.runtimes.python.strings import Strings, word
from walkback.runtimes.python.tasklayout import ENTRY, TaskLayout
from walkback.runtimes.python.tasknames import Names, ReadNames

_MOST_TASKS = 1 << 16
"""Of a process, in one look."""
_MOST_COROUTINES = 1 << 18
_MOST_WAITERS = 1 << 18
_MOST_ENTRIES = 1 << 16
"""Of one set."""
_MOST_FUTURES = 8
"""Futures one behind the other, each awaiting the next."""
_REMOVED = np.uint64(2**64 - 1)
"""The hash of an entry that is not in the set any more."""
_OBJECT = np.uint64(2**64 - 8)
"""A mask: the lowest bits of the address of an object may be used otherwise."""


@dataclass
class TaskColumns:
    """Some tasks, with what each refers to: 0 for nothing."""

    address: list[int]
    name: list[int]
    coroutine: list[int]


@dataclass
class ReadTasks:
    """What was read of one thread."""

    current: set[int]
    """The tasks that it runs."""
    own: TaskColumns
    ended: TaskColumns
    """Those of threads that have ended."""
    others: TaskColumns
    """Those that await these and are in neither list."""
    waiters: dict[int, list[int]]
    """What awaits a task, or a future that awaits some."""
    futures: set[int]
    names: ReadNames
    coroutines: ReadCoroutines
    troubles: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there, and nothing is wrong."""
        return not (self.own.address or self.ended.address or self.troubles)


@dataclass
class _Look:
    """One look at a thread."""

    memory: TargetMemory
    budget: _Budget
    waiters: dict[int, list[int]] = field(default_factory=dict)
    futures: set[int] = field(default_factory=set)
    troubles: list[str] = field(default_factory=list)


class _Budget:
    """How much is read at most in one look at all threads, whatever the memory says."""

    def __init__(self) -> None:
        self.tasks, self.coroutines, self.waiters = _MOST_TASKS, _MOST_COROUTINES, _MOST_WAITERS


class TaskReader:
    """Reads the tasks of one Python in one process."""

    def __init__(self, build: Build, layout: TaskLayout, strings: Strings, byteorder: ByteOrder, limit: int) -> None:
        """At most `limit` coroutines that await each other are followed."""
        self.layout, self._byteorder = layout, byteorder
        self._order = ">" if byteorder == "big" else "<"
        self._types = ObjectTypes(layout, self._order)
        # Between two coroutines may be objects that lead from one to the other.
        self._coroutines = Coroutines(build, layout, self._types, byteorder, 2 * limit)
        self._names = Names(build, layout, self._types, strings, byteorder)
        self._budget = _Budget()
        self._listed: dict[int, list[int]] = {}
        """The tasks that were in each list the last time: they are read at once."""
        self._keepers: dict[int, int] = {}
        """The thread with which the list of each interpreter is read."""
        self._head = max(layout.task_awaited_by + 8, layout.task_is_task + 1, layout.task_has_set + 1)
        """What futures have as well."""
        ends = (layout.task_name, layout.task_coroutine, layout.task_node + layout.list_next)
        self._size = max(self._head, max(ends) + 8)

    def begin(self) -> None:
        """Begin another look at all threads."""
        self._budget = _Budget()
        self._keepers.clear()

    def read(
        self, number: int, states: Iterable[tuple[int, int]], memory: TargetMemory, *, is_standing: bool
    ) -> ReadTasks:
        """The tasks of a thread, by its states with their interpreters; one that runs is read for later looks."""
        self._types.forget()
        look, layout = _Look(memory, self._budget if is_standing else _Budget()), self.layout
        current, seen = set(), set[int]()
        lists: dict[bool, list[Objects]] = {False: [], True: []}
        own: list[int] = []
        ended: list[int] = []
        for state, interpreter in states:
            loop, task = (self._word(state + place, memory) for place in (layout.thread_loop, layout.thread_task))
            if loop and task:
                current.add(task & int(_OBJECT))
            lists[False].append(self._follow(state + layout.thread_tasks, own, seen, look))
            if not is_standing or self._keepers.setdefault(interpreter, number) == number:
                lists[True].append(self._follow(interpreter + layout.interpreter_tasks, ended, seen, look))
        all_own, all_ended = self._joined(lists[False]), self._joined(lists[True])
        self._find_waiters([*own, *ended], self._joined([all_own, all_ended]), look)
        others, all_others = self._others(seen, look)
        columns = (
            self._columns(own, all_own),
            self._columns(ended, all_ended),
            self._columns(others, all_others),
        )
        names = self._names.read((one for column in columns for one in column.name), memory)
        coroutines = (one for column in columns for one in column.coroutine if one)
        read = self._coroutines.read(coroutines, look.budget.coroutines, memory)
        look.budget.coroutines -= len(read)
        return ReadTasks(current, *columns, look.waiters, look.futures, names, read, look.troubles)

    def _follow(self, head: int, tasks: list[int], seen: set[int], look: _Look) -> Objects:
        """The tasks of a list; their addresses are added."""
        before = self._listed.get(head, [])
        ready = read_objects(before, self._size, look.memory, self._byteorder)
        place = self.layout.task_node + self.layout.list_next
        is_good = (ready.sizes == self._size) & (ready.bytes(self.layout.task_is_task) == 1)
        following = dict(zip(before, zip(range(len(before)), ready.words(place).tolist(), strict=True), strict=True))
        alone: list[bytes] = []
        chosen: list[int] = []
        listed: list[int] = []
        node = self._word(head + self.layout.list_next, look.memory)
        while node != head:
            address = node - self.layout.task_node
            if not look.budget.tasks:
                look.troubles.append(f"there are more tasks than the {_MOST_TASKS} that are read")
                break
            row, node = following.get(address, (-1, 0))
            if address in seen or not is_object(address) or (row >= 0 and not is_good[row]):
                row = -2
            elif row < 0:
                chunk = look.memory.read(address, self._size)
                if len(chunk) == self._size and chunk[self.layout.task_is_task] == 1:
                    row, node = len(before) + len(alone), word(chunk, place, self._order) or 0
                    alone.append(chunk)
            if row < 0:
                look.troubles.append(f"a list of tasks cannot be followed at {address % 2**64:#x}")
                break
            look.budget.tasks -= 1
            seen.add(address)
            chosen.append(row)
            listed.append(address)
        self._listed[head] = listed
        tasks += listed
        rows = np.frombuffer(b"".join(alone), np.uint8).reshape(len(alone), self._size)
        both = self._joined([ready, Objects(rows, np.full(len(alone), self._size, np.int64), self._byteorder)])
        return both.among(np.array(chosen, np.int64))

    def _joined(self, parts: list[Objects]) -> Objects:
        """Several as one."""
        rows = [one.rows for one in parts] or [np.zeros((0, self._size), np.uint8)]
        sizes = [one.sizes for one in parts] or [np.zeros(0, np.int64)]
        return Objects(np.concatenate(rows), np.concatenate(sizes), self._byteorder)

    def _columns(self, addresses: list[int], objects: Objects) -> TaskColumns:
        names, coroutines = (self._pointers(objects, at) for at in (self.layout.task_name, self.layout.task_coroutine))
        return TaskColumns(addresses, names, coroutines)

    def _find_waiters(self, addresses: list[int], objects: Objects, look: _Look) -> list[int]:
        """Find what awaits each of these; returns all that do."""
        found: list[int] = []
        has_set = objects.bytes(self.layout.task_has_set).tolist()
        waiters = self._pointers(objects, self.layout.task_awaited_by)
        for address, awaited_by, several in zip(addresses, waiters, has_set, strict=True):
            if not awaited_by:
                continue
            its = self._members(awaited_by, look.memory) if several else [awaited_by]
            if its is None:
                look.troubles.append(f"what awaits the task at {address:#x} cannot be read")
                continue
            if len(its) > look.budget.waiters:
                look.troubles.append(f"more await these tasks than the {_MOST_WAITERS} that are read")
                break
            look.budget.waiters -= len(its)
            look.waiters[address] = its
            found += its
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
        entries = np.frombuffer(contents, f"{order}u8").astype(np.uint64).reshape(-1, 2)
        its: list[int] = entries[are_objects(entries[:, 0]) & (entries[:, 1] != _REMOVED), 0].tolist()
        return its

    def _others(self, known: set[int], look: _Look) -> tuple[list[int], Objects]:
        """The tasks that are only known because they await something; futures that do are found as well."""
        addresses: list[int] = []
        found: list[Objects] = []
        new = {one for its in look.waiters.values() for one in its} - known
        for _ in range(_MOST_FUTURES):
            several = list(new)
            objects = read_objects(several, self._head, look.memory, self._byteorder)
            is_whole = objects.sizes == self._head
            kinds = objects.bytes(self.layout.task_is_task)
            futures = np.flatnonzero(is_whole & (kinds == 0))
            tasks = [several[row] for row in np.flatnonzero(is_whole & (kinds == 1)).tolist()][: look.budget.tasks]
            look.budget.tasks -= len(tasks)
            whole = read_objects(tasks, self._size, look.memory, self._byteorder)
            those = [several[row] for row in futures.tolist()]
            look.futures.update(those)
            behind = self._find_waiters(those, objects.among(futures), look)
            behind += self._find_waiters(tasks, whole, look)
            addresses += tasks
            found.append(whole)
            new = set(behind) - known - look.futures - set(addresses)
            if not new:
                break
        return addresses, self._joined(found)

    def _pointers(self, objects: Objects, place: int) -> list[int]:
        """The addresses of objects; 0 where none can be."""
        words = objects.words(place) & _OBJECT
        words[~are_objects(words)] = 0
        its: list[int] = words.tolist()
        return its

    def _word(self, address: int, memory: TargetMemory) -> int:
        return word(memory.read(address % 2**64, 8), 0, self._order) or 0
