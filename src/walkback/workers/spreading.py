"""Pieces of work whose answers are not merged: processes on this machine do them, and this one does what they cannot.

for piece, found in spread(workers, counted, pieces, most=4):
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from walkback.workers.executors import StartError, uninterrupted

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
    workers: LocalWorkers | None, work: Callable[[Piece], T], pieces: Iterable[Piece], most: int
) -> Iterator[tuple[Piece, T]]:
    """What is found in each piece, in no certain order; no more than `most` pieces are at work at once.

    A piece is asked for when there is somebody to do it. What a process was lost with is done here at the end, and
    after any other error nobody is at work any more.
    """
    waiting = iter(pieces)
    first = list(islice(waiting, 2))
    waiting = chain(first, waiting)
    most = min(most, workers.count() if workers is not None else 1)
    if workers is None or most < 2 or len(first) < 2:
        yield from ((piece, work(piece)) for piece in waiting)
        return
    lost: list[Piece] = []
    try:
        yield from _by_workers(workers, work, waiting, most, lost)
    except BaseException:
        workers.close()
        raise
    yield from ((piece, work(piece)) for piece in chain(lost, waiting))


def _by_workers(
    workers: LocalWorkers, work: Callable[[Piece], T], waiting: Iterator[Piece], most: int, lost: list[Piece]
) -> Iterator[tuple[Piece, T]]:
    running: dict[Future[T], Piece] = {}
    may_start = True
    while True:
        for piece in islice(waiting, most - len(running) if may_start else 0):
            try:
                with uninterrupted():
                    running[workers.submit(work, piece)] = piece
            except Exception as error:
                may_start = not isinstance(error, StartError)
                if may_start and workers.loss(error) is None:
                    raise
                lost.append(piece)
                break
        if not running:
            return
        for future in _first_done(running):
            piece = running.pop(future)
            try:
                found = future.result()
            except Exception as error:
                if workers.loss(error) is None:
                    raise
                lost.append(piece)
                continue
            yield piece, found


def _first_done(running: dict[Future[T], Piece]) -> Sequence[Future[T]]:
    return list(wait(running, return_when=FIRST_COMPLETED).done)
