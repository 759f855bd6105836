"""Pieces of work whose answers are not merged: processes do them, and the calling process what they cannot.

for piece, found in spread(workers, counted, pieces, size=len, room=1000):
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import chain, islice
from typing import TYPE_CHECKING, Generic, TypeVar

from walkback.base.interrupts import first_done, uninterrupted
from walkback.workers.executors import StartError

if TYPE_CHECKING:
    from walkback.workers.executors import LocalWorkers

T = TypeVar("T")
Piece = TypeVar("Piece")


def portions(things: Iterable[Piece], size: Callable[[Piece], int], least: int) -> Iterator[list[Piece]]:
    """One thing after the other, as many together as have at least this size."""
    found: list[Piece] = []
    so_far = 0
    for thing in things:
        found.append(thing)
        so_far += size(thing)
        if so_far >= least:
            yield found
            found, so_far = [], 0
    if found:
        yield found


def spread(
    workers: LocalWorkers | None,
    work: Callable[[Piece], T],
    pieces: Iterable[Piece],
    *,
    size: Callable[[Piece], int],
    room: int,
) -> Iterator[tuple[Piece, T]]:
    """What is found in each piece, in no particular order. A single piece is done here.

    A piece is asked for when there is somebody to do it, and begun when there is room for it beside the others, or none
    is at work. What a process was lost with is done here at the end; after any other error all processes have ended.
    """
    waiting = iter(pieces)
    first: list[Piece] = []
    if workers is not None and workers.count() > 1:
        first = list(islice(waiting, 2))
    waiting = chain(first, waiting)
    if workers is not None and len(first) > 1:
        spreading = _Spreading(workers, work, waiting, size, room)
        try:
            yield from spreading.run()
        except BaseException:
            workers.close()
            raise
        waiting = chain(spreading.lost, waiting)
    yield from ((piece, work(piece)) for piece in waiting)


class _Spreading(Generic[Piece, T]):
    """Goes on as long as processes can be started; what is waiting then is left."""

    def __init__(
        self,
        workers: LocalWorkers,
        work: Callable[[Piece], T],
        waiting: Iterator[Piece],
        size: Callable[[Piece], int],
        room: int,
    ) -> None:
        self._workers, self._work, self._waiting, self._size, self._room = workers, work, waiting, size, room
        self._next: list[Piece] = []
        """The piece that waits for room."""
        self._running: dict[Future[T], Piece] = {}
        self._is_broken = self._is_over = False
        self.lost: list[Piece] = []

    def run(self) -> Iterator[tuple[Piece, T]]:
        while True:
            while self._has_room():
                self._begin(self._next.pop())
            if not self._running:
                return
            for future in first_done(self._running):
                yield from self._taken(self._running.pop(future), future)
            # When a process is lost, all that its pool had to do ends, and only then another pool begins.
            self._is_broken = self._is_broken and bool(self._running)

    def _has_room(self) -> bool:
        if self._is_broken or self._is_over or len(self._running) >= self._workers.count():
            return False
        self._next = self._next or list(islice(self._waiting, 1))
        if not self._next or not self._running:
            return bool(self._next)
        return sum(map(self._size, (*self._running.values(), *self._next))) <= self._room

    def _begin(self, piece: Piece) -> None:
        try:
            with uninterrupted():
                self._running[self._workers.submit(self._work, piece)] = piece
        except StartError:
            self.lost.append(piece)
            self._is_over = True
        except Exception as error:
            self._lose(piece, error)
            self._is_broken = bool(self._running)

    def _taken(self, piece: Piece, future: Future[T]) -> Iterator[tuple[Piece, T]]:
        try:
            found = future.result()
        except Exception as error:
            self._lose(piece, error)
            self._is_broken = True
        else:
            yield piece, found

    def _lose(self, piece: Piece, error: Exception) -> None:
        if self._workers.loss(error) is None:
            raise error
        self.lost.append(piece)
