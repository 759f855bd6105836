"""A question in pieces: workers answer each, and the answers are merged in pairs until one is left.

answer = merged_answers(LocalWorkers(), counted, pieces, operator.add)
"""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.base.interrupts import first_done, uninterrupted
from walkback.workers.executors import Loss, SharingWorkers
from walkback.workers.versions import check_version, own_version

T = TypeVar("T")
Piece = TypeVar("Piece")
_DEATHS = 3
"""A question is given up when workers ended so often during one piece of it; after the first time it is alone."""
_GLANCE = 1.0
"""Seconds between questions how many workers there are."""


@dataclass(frozen=True, slots=True)
class _Task:
    """Something to be done by a worker."""

    work: bytes
    """A function and its first arguments, as they are sent."""
    found: tuple[Any, ...] = ()
    """What workers found, which is added to the arguments."""
    deaths: int = 0


def merged_answers(
    workers: SharingWorkers, work: Callable[[Piece], T], pieces: Sequence[Piece], merge: Callable[[T, T], T]
) -> T:
    """What workers find in one or more pieces; the order of merging is not known.

    The two functions, what they take and what they return must be such that they can be sent.
    """
    tasks = (_Task(pickle.dumps((work, (piece,)))) for piece in pieces)
    answer: T = _Merging(workers, pickle.dumps((merge, ()))).run(tasks)
    return answer


class _Merging:
    def __init__(self, workers: SharingWorkers, merge: bytes) -> None:
        self._workers = workers
        self._merge = merge
        self._waiting: list[_Task] = []
        self._running: dict[Future[Any], _Task] = {}
        self._found: list[Any] = []

    def run(self, tasks: Iterable[_Task]) -> Any:
        """The answer of all tasks."""
        self._waiting += tasks
        try:
            while self._waiting or self._running:
                self._begin()
                self._workers.count()  # some say it when there are none
                for future in first_done(self._running, _GLANCE):
                    self._take(self._running.pop(future), future)
                while len(self._found) > 1:
                    self._waiting.append(_Task(self._merge, (self._found.pop(), self._found.pop())))
            [found] = self._found
            return self._workers.value(found)
        except Exception as error:
            if self._workers.loss(error) is not None:
                raise UnreadableError("there are no workers any more: the scheduler has ended") from None
            raise
        finally:
            for future in self._running:
                future.cancel()

    def _begin(self) -> None:
        """Let workers have what waits; what a worker was lost with is done alone."""
        if any(task.deaths for task in self._running.values()):
            return
        suspects = [task for task in self._waiting if task.deaths]
        if suspects and self._running:
            return
        begin = suspects[:1] or self._waiting
        self._waiting = [task for task in self._waiting if not any(task is one for one in begin)]
        while begin:
            task = begin.pop()
            try:
                with uninterrupted():
                    words = own_version(), not self._workers.are_here, task.work
                    future = self._workers.submit(_done, *words, *task.found)
            except Exception as error:
                self._waiting += begin
                self._failed(task, error)
                return
            self._running[future] = task

    def _take(self, task: _Task, future: Future[Any]) -> None:
        """What a task gave."""
        try:
            self._found.append(future.result())
        except Exception as error:
            self._failed(task, error)

    def _failed(self, task: _Task, error: Exception) -> None:
        """Have it done again if a worker was lost, and not too many were; otherwise the error is raised."""
        if self._workers.loss(error) is not Loss.WORKER:
            raise error
        if task.deaths + 1 == _DEATHS:
            message = "workers ended again and again during one part of the work, at last with no other at hand"
            raise UnreadableError(message) from None
        self._waiting.append(replace(task, deaths=task.deaths + 1))


def _done(asked: str, far: bool, sent: bytes, *found: Any) -> Any:
    """In a worker: what it was asked for."""
    check_version(asked)
    work, arguments = pickle.loads(sent)  # noqa: S301 - of whoever gives this worker its work
    try:
        return work(*arguments, *found)
    except WalkbackError as error:
        if far:
            error.message += f", on the worker {platform.node()}"
        raise
