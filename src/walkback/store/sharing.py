"""How the parts of a store are shared out between processes: each reads some hours, days or months, or writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, WalkbackError
from walkback.base.memory import memory
from walkback.segments.database import Reopened, done_apart, shared_settings
from walkback.store.parts import Block, Rollup, Summed, brought
from walkback.workers.spreading import portions, spread

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from walkback.workers.executors import LocalWorkers

Made = TypeVar("Made")

_PORTION = 1_000_000
"""The cost of what is worth sending to a process."""
_ROWS_OF_A_BLOCK = 10_000
"""A small block takes as long as this many rows of a large one."""
_MOST_ROWS = 1 << 40
"""A description may say anything."""
_BYTES_OF_A_PROCESS = 100_000_000
_BYTES_OF_A_ROW = 110
"""Of memory, also for each node of a tree."""


Work = Callable[["DuckDBPyConnection", Summed, Path], Made]
"""Makes something of some parts, which have this folder, or are to have it."""


@dataclass(frozen=True, slots=True)
class _Portion(Generic[Made]):
    """Some hours, days or months, by their folders, with all files on this machine."""

    parts: Mapping[Path, Summed]
    work: Work[Made]
    spilled: Path | None
    """Where DuckDB may put what is too large for memory."""
    processes: int
    size: int
    """The bytes of memory that it takes."""


def refuse_cluster(workers: LocalWorkers | None) -> None:
    """The files that are read and written are on this machine."""
    if workers is not None and not workers.are_here:
        raise ArgumentError("processes of this machine share this work, and not the workers of a cluster")


def cost(part: Block | Rollup) -> int:
    """Of reading it: its rows, and those that would take as long as opening it."""
    return _ROWS_OF_A_BLOCK + min(part.rows, _MOST_ROWS)


def shared_out(
    work: Work[Made],
    parts: Mapping[Path, Summed],
    held: Callable[[Iterable[int]], int],
    spilled: Path | None,
    workers: LocalWorkers | None,
) -> Iterator[tuple[Path, Made | WalkbackError]]:
    """What becomes of the parts of each folder, in no particular order; an error is of its folder alone.

    `held` is `sum` if all rows of these parts are in the memory at a time, and `max` if they become sums one by one.
    """
    failed: dict[Path, WalkbackError] = {}

    def brought_portions() -> Iterator[_Portion[Made]]:
        processes = 1 if workers is None else workers.count()
        for places in portions(parts, lambda place: sum(map(cost, parts[place].all)), _PORTION):
            found = {}
            for place in places:
                try:
                    found[place] = _brought(parts[place])
                except WalkbackError as error:
                    failed[place] = error
            rows = max((held(map(_rows, its.all)) for its in found.values()), default=0)
            size = _BYTES_OF_A_PROCESS + _BYTES_OF_A_ROW * rows
            yield _Portion(found, work, spilled, processes, size)

    for _, made in spread(workers, _worked, brought_portions(), size=lambda one: one.size, room=memory() // 2):
        yield from made.items()
    yield from failed.items()


def _brought(parts: Summed) -> Summed:
    """The same, with all files on this machine."""
    for its in (parts.rollups, parts.blocks):
        for table in its[0].tables if its else ():
            brought(its, table)
    return Summed(
        tuple(replace(rollup, source=None, of=frozenset()) for rollup in parts.rollups),
        tuple(replace(block, source=None) for block in parts.blocks),
    )


def _rows(part: Block | Rollup) -> int:
    """With the nodes of a block's tree."""
    return min(part.rows + (part.counts.nodes if isinstance(part, Block) else 0), _MOST_ROWS)


def _worked(portion: _Portion[Made]) -> dict[Path, Made | WalkbackError]:
    """In a process that was started for it, or in the one that asks, which has the machine alone."""
    from multiprocessing import parent_process

    is_worker = parent_process() is not None
    settings = shared_settings(portion.processes) if is_worker else {}
    made: dict[Path, Made | WalkbackError] = {}
    with Reopened(portion.spilled, **settings) as database:
        for place, parts in portion.parts.items():
            try:
                with database.use() as db:
                    work = partial(portion.work, db, parts, place)
                    made[place] = work() if is_worker else done_apart(db, work)
            except WalkbackError as error:
                made[place] = error
    return made
