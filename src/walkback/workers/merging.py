"""A question in pieces: workers answer each, and the answers are merged in pairs until one is left.

answer = merged_answers(LocalWorkers(), counted, pieces, operator.add)
"""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Generic, TypeVar

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.workers.executors import Loss, Workers, uninterrupted
from walkback.workers.versions import check_version, own_version

T = TypeVar("T")
Piece = TypeVar("Piece")
_DEATHS = 3
"""A question is given up when workers ended so often during one piece of it; after the first time it is alone."""
_GLANCE = 1.0
"""Seconds between questions how many workers there are."""


@dataclass(frozen=True, slots=True)
class _Task(Generic[T]):
    """Something to be done by a worker."""

    work: Callable[..., T]
    arguments: tuple[Any, ...]
    deaths: int = 0


def merged_answers(
    workers: Workers, work: Callable[[Piece], T], pieces: Sequence[Piece], merge: Callable[[T, T], T]
) -> T:
    """What workers find in one or more pieces; the order of merging is not known.

    The two functions, what they take and what they return must be such that they can be sent.
    """
    return _Merging(workers, merge).run(_Task(work, (piece,)) for piece in pieces)


class _Merging(Generic[T]):
    def __init__(self, workers: Workers, merge: Callable[[T, T], T]) -> None:
        self._workers = workers
        self._merge = merge
        self._waiting: list[_Task[T]] = []
        self._running: dict[Future[T], _Task[T]] = {}
        self._answers: list[T] = []

    def run(self, tasks: Iterable[_Task[T]]) -> T:
        """The answer of all tasks."""
        self._waiting += tasks
        try:
            while self._waiting or self._running:
                self._begin()
                self._workers.count()  # some say it when there are none
                done, _ = wait(self._running, timeout=_GLANCE, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(self._running.pop(future), future)
                while len(self._answers) > 1:
                    pair = self._answers.pop(), self._answers.pop()
                    if self._workers.are_here:
                        self._waiting.append(_Task(self._merge, pair))
                    else:
                        self._answers.append(self._merge(*pair))
        finally:
            for future in self._running:
                future.cancel()
        [answer] = self._answers
        return answer

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
                    sent, far = pickle.dumps((task.work, task.arguments)), not self._workers.are_here
                    future = self._workers.executor().submit(_done, own_version(), sent, far=far)
            except Exception as error:
                self._waiting += begin
                self._failed(task, error)
                return
            self._running[future] = task

    def _take(self, task: _Task[T], future: Future[T]) -> None:
        """What a task gave."""
        try:
            self._answers.append(future.result())
        except Exception as error:
            self._failed(task, error)

    def _failed(self, task: _Task[T], error: Exception) -> None:
        """Have it done again if a worker was lost, and not too many were; otherwise the error is raised."""
        loss = self._workers.loss(error)
        if loss is Loss.ALL:
            raise UnreadableError("there are no workers any more: the scheduler has ended") from None
        if loss is None:
            raise error
        if task.deaths + 1 == _DEATHS:
            message = "workers ended again and again during one part of the work, at last with no other at hand"
            raise UnreadableError(message) from None
        self._waiting.append(_Task(task.work, task.arguments, task.deaths + 1))


def _done(asked: str, sent: bytes, *, far: bool) -> Any:
    """In a worker: what it was asked for."""
    check_version(asked)
    work, arguments = pickle.loads(sent)  # noqa: S301 - of whoever gives this worker its work
    try:
        return work(*arguments)
    except WalkbackError as error:
        if far:
            error.message += f", on the worker {platform.node()}"
        raise
