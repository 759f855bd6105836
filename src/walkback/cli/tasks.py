"""The tasks of asyncio as people and programs read them: each with its stack, below the task that awaits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

import click

from walkback.base.text import printable
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE
from walkback.cli.paths import opened
from walkback.cli.walking import complain_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from walkback.capture.snapshot import Snapshot
    from walkback.capture.stacks import Stopper
    from walkback.runtimes.tasks import AsyncioTask

_INDENT = "    "
_DEEPEST = 30
"""What stands further inside gets a tree of its own."""


def refuse_with_tasks(form: str | None, excluded: dict[str, bool]) -> None:
    """Refuse options that say nothing of tasks; each is there with whether it was given."""
    given = [option for option, is_given in excluded.items() if is_given]
    given += [f"--format {form}"] if form not in {None, "text", "json"} else []
    if given:
        message = f"--asyncio and {given[0]} cannot be combined"
        raise click.UsageError(message)


def print_tasks(stopper: Stopper, target: str, output: str | None, *, as_json: bool) -> int:
    """Print the tasks that there are now."""
    snapshot = stopper.take()
    troubles = list(dict.fromkeys([*snapshot.troubles, *stopper.troubles]))
    lines: Iterable[str] = _objects(snapshot) if as_json else _lines(snapshot)
    with opened(output) as out:
        # Where tasks cannot be read, "no tasks" would be false.
        if snapshot.tasks or not troubles:
            out.writelines(f"{line}\n".encode(errors="surrogateescape") for line in lines)
    complain_of(target, troubles)
    return EXIT_FINDINGS if troubles else EXIT_FINE


class TaskFrameObject(TypedDict):
    """A frame of a task, as JSON."""

    symbol: str
    """The function."""
    file: str | None
    """The source file."""
    line: int | None
    """The line."""


class TaskObject(TypedDict):
    """A task, as JSON."""

    pid: int
    """The process."""
    tid: int | None
    """The thread that has made the task; null if that has ended."""
    task: int
    """The address of the task, which distinguishes it."""
    name: str
    """Its name."""
    state: str
    """`new` (it has not begun), `waiting`, `running`, `ended` (only known because others refer to it), or `unknown`
    (its coroutine is not Python's own)."""
    frames: list[TaskFrameObject]
    """Its stack, innermost first."""
    end: str
    """`complete`, or `torn`, `loop` or `limit` if there are more frames."""
    awaited_by: Sequence[int]
    """The addresses of the tasks that await it."""


def _objects(snapshot: Snapshot) -> Iterator[str]:
    """An object for each task."""
    import json

    from walkback.stacks.stacks import END_WORDS

    for task in snapshot.tasks:
        found: TaskObject = {
            "pid": snapshot.pid,
            "tid": task.thread,
            "task": task.address,
            "name": task.name,
            "state": task.state.value,
            "frames": [
                {"symbol": frame.symbol, "file": frame.file, "line": frame.line or None} for frame in task.frames
            ],
            "end": END_WORDS[task.end],
            "awaited_by": task.awaited_by,
        }
        yield json.dumps(found)


def _lines(snapshot: Snapshot) -> Iterator[str]:
    """The tasks as trees; at the root of each is one that none awaits."""
    yield printable(f"process {snapshot.pid} {snapshot.arguments or snapshot.command}")
    if not snapshot.tasks:
        yield ""
        yield "no tasks of asyncio"
    yield from (printable(line) for line in Trees(snapshot.tasks).lines())


class _Place(NamedTuple):
    """A task to be printed, or the end of one."""

    task: AsyncioTask
    depth: int
    is_end: bool = False


class Trees:
    """The tasks, each below one that awaits it, and once."""

    def __init__(self, tasks: Iterable[AsyncioTask]) -> None:
        self._tasks = {task.address: task for task in tasks}
        self._awaited: dict[int, list[AsyncioTask]] = {}
        """What each task awaits."""
        for task in self._tasks.values():
            for waiter in task.awaited_by:
                self._awaited.setdefault(waiter, []).append(task)
        self._shown: set[int] = set()
        self._within: set[int] = set()
        """The tasks around the one that is printed."""
        self._later: list[AsyncioTask] = []

    def lines(self) -> Iterator[str]:
        """All trees, each behind an empty line."""
        roots = [task for task in self._tasks.values() if not task.awaited_by]
        # Of those that await each other in a circle, none is a root.
        for task in (*roots, *self._tasks.values()):
            self._later = [task]
            while self._later:
                following = self._later.pop()
                if following.address not in self._shown:
                    yield ""
                    yield from self._tree(following)

    def _tree(self, root: AsyncioTask) -> Iterator[str]:
        """A task, and below it what it awaits; not by recursion, which has an end."""
        places = [_Place(root, 0)]
        while places:
            task, depth, is_end = places.pop()
            if is_end:
                self._within.discard(task.address)
                continue
            about = _about(task)
            indent = _INDENT * depth
            head = f"{indent}{'awaits ' if depth else ''}{about}"
            if task.address in self._within:
                yield f"{head}: a circle, as it is itself awaited from here"
            elif task.address in self._shown:
                yield f"{head}: shown above"
            elif depth > _DEEPEST:
                yield f"{head}: shown below"
                self._later.append(task)
            else:
                yield head
                yield from _frames(task, f"{indent}{_INDENT}")
                self._shown.add(task.address)
                self._within.add(task.address)
                places.append(_Place(task, depth, is_end=True))
                awaited = self._awaited.get(task.address, ())
                places += [_Place(one, depth + 1) for one in reversed(awaited)]


def _about(task: AsyncioTask) -> str:
    """The name of a task, where it is, and how far."""
    from walkback.runtimes.tasks import TaskState

    words = {
        TaskState.RUNNING: "running",
        TaskState.NEW: "not begun",
        TaskState.ENDED: "ended",
        TaskState.UNKNOWN: "state unknown",
    }
    where = f"thread {task.thread}" if task.thread is not None else "no thread"
    return f"{task.name} ({', '.join([where, *([words[task.state]] if task.state in words else [])])})"


def _frames(task: AsyncioTask, indent: str) -> Iterator[str]:
    from walkback.stacks.stacks import END_WORDS, End

    for number, frame in enumerate(task.frames):
        source = f" at {frame.file}:{frame.line}" if frame.file else ""
        yield f"{indent}#{number:<4}{frame.symbol}{source}"
    if task.end != End.COMPLETE:
        yield f"{indent}     {END_WORDS[task.end]} at {task.at:#x}"
