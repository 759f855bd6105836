"""Where CPython keeps asyncio's tasks, and the coroutines that they run; from 3.14 on.

The module `_asyncio` has a table of its own, `_AsyncioDebug`. Of sets, numbers and coroutines the runtime's table says
where they are; how far a coroutine is, and where it keeps what it awaits, depends on the version.
"""

from __future__ import annotations

import struct
from dataclasses import fields

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.layout import DEBUG_OFFSETS_SIZE, LARGEST_OFFSET
from walkback.runtimes.python.offsets import Build

FIRST = (3, 14)
SECTION, SYMBOL = ".AsyncioDebug", "_AsyncioDebug"

IS_NUMBER, IS_STRING, IS_OF_HEAP = 1 << 24, 1 << 28, 1 << 9
"""Flags of a type."""
DIGIT_BITS = 30
SIZE_SHIFT = 3
"""A number's tag has the count of its digits above these bits."""
ENTRY = 16
"""Bytes of an entry of a set: the object and its hash."""
OWNED_BY_GENERATOR = 1
COROUTINES = frozenset(("coroutine", "generator", "async_generator"))
"""The types whose objects have a frame."""
WRAPPERS = frozenset(("coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable"))
"""The types whose objects have one of these, or a wrapper, as the first of what they refer to."""


@dataclass(frozen=True, slots=True)
class TaskLayout:
    """Offsets in the structures of one build; those of tasks hold for futures as well, up to the coroutine."""

    task_size: int
    task_name: int
    task_awaited_by: int
    """What awaits it: a task, a future, or a set of them."""
    task_is_task: int
    task_has_set: int
    task_coroutine: int
    task_node: int
    """Its place in a list of tasks."""
    interpreter_size: int
    interpreter_tasks: int
    """The list of tasks whose thread has ended."""
    thread_size: int
    thread_loop: int
    """The loop that runs."""
    thread_task: int
    """The task that runs."""
    thread_tasks: int
    frame_stack: int
    """The end of the stack of values."""
    object_size: int
    type_name: int
    type_flags: int
    set_used: int
    set_table: int
    set_mask: int
    number_tag: int
    number_digits: int
    coroutine_frame: int
    coroutine_state: int
    list_next: int


@dataclass(frozen=True, slots=True)
class CoroutineStates:
    """How far a coroutine is, and where it keeps what it awaits."""

    new: int
    awaiting: tuple[int, ...]
    running: int
    ended: tuple[int, ...]
    awaited: int
    """How many words before the end of its values."""


STATES = {
    (3, 14): CoroutineStates(new=-3, awaiting=(-1,), running=0, ended=(1, 4), awaited=1),
    (3, 15): CoroutineStates(new=0, awaiting=(2, 3), running=4, ended=(5,), awaited=2),
}
_PLACES = {
    (3, 14): (296, 400, 424, 440, 504, 512, 520, 576, 584, 680, 688, 696),
    (3, 15): (360, 464, 488, 504, 600, 608, 616, 672, 680, 808, 816, 824),
}
"""Where `_Py_DebugOffsets` of a version has the last offsets of `TaskLayout`."""
_FIELDS = tuple(field.name for field in fields(TaskLayout))
_OF_MODULE = _FIELDS.index("frame_stack")
"""How many offsets the module's own table has."""
_LARGEST_SMALL_OFFSET = 1 << 10
_LARGE = {"interpreter_size", "interpreter_tasks", "thread_size", "thread_loop", "thread_task", "thread_tasks"}


def read_task_layout(runtime: int, table: int, build: Build, memory: TargetMemory, order: str) -> TaskLayout:
    """By the tables of the runtime and of the module, which are at these addresses."""
    head = memory.read(runtime, DEBUG_OFFSETS_SIZE)
    own = memory.read(table, 8 * _OF_MODULE)
    places = _PLACES[build.version]
    if len(head) < max(places) + 8 or len(own) < 8 * _OF_MODULE:
        raise UnreadableError("where this Python keeps asyncio's tasks cannot be read")
    values = [*struct.unpack(f"{order}{_OF_MODULE}Q", own)]
    values += [struct.unpack_from(f"{order}Q", head, place)[0] for place in places]
    for name, value in zip(_FIELDS, values, strict=True):
        if value >= (LARGEST_OFFSET if name in _LARGE else _LARGEST_SMALL_OFFSET):
            raise UnreadableError("what this Python says of asyncio's tasks is damaged")
    return TaskLayout(*values)
