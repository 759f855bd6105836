"""What is known of the tasks of a process: functions that wait for each other; a thread runs one at a time."""

from __future__ import annotations

from enum import Enum

from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.runtimes.chains import RuntimeFrame
from walkback.stacks.stacks import End


class TaskState(Enum):
    """How far a task is."""

    NEW = "new"
    """It has not begun."""
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    """It has ended, and others still know it."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, repr=False)
class AsyncioTask(OneLine):
    """A task of asyncio."""

    address: int
    """Of its object, by which others refer to it."""
    name: str
    thread: int | None
    """The thread that has made it; None if that has ended."""
    state: TaskState
    frames: tuple[RuntimeFrame, ...]
    """Its own stack, innermost first: of a task that waits the functions that await each other."""
    awaited_by: tuple[int, ...]
    """The tasks that await it."""
    end: End
    """Whether the frames are all of them."""
    at: int
    """The address where there were no more."""
