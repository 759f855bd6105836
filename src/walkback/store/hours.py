"""The blocks of each hour made one, by this process or by several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.segments.database import Reopened, settings_of_one
from walkback.store import layout, sharing
from walkback.store.builder import Builder
from walkback.store.check import checked_block
from walkback.store.parts import Block, BlockCounts, brought
from walkback.workers.spreading import portions, spread

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from walkback.workers.executors import LocalWorkers

Merged = dict[str, BlockCounts] | WalkbackError
"""The new block of an hour, or why there is none."""


@dataclass(frozen=True, slots=True)
class _Hours:
    """Some hours, by their numbers, and where their new blocks go."""

    blocks: Mapping[int, Sequence[Block]]
    folder: Path
    level: int
    processes: int


def merged_hours(
    hours: Sequence[Sequence[Block]], folder: Path, level: int, workers: LocalWorkers | None
) -> Iterator[tuple[Sequence[Block], Merged]]:
    """Write the samples of each hour's blocks as one block into the folder of a segment."""
    costs = [sum(map(sharing.cost, blocks)) for blocks in hours]
    most = sharing.at_once(max(costs, default=0))
    failed: list[tuple[Sequence[Block], Merged]] = []

    def here() -> Iterator[_Hours]:
        """The hours in portions, with all their files on this machine."""
        for numbers in portions(range(len(hours)), costs.__getitem__, sharing.PORTION):
            found = {}
            for number in numbers:
                try:
                    for table in layout.TABLES:
                        brought(hours[number], table)
                except WalkbackError as error:
                    failed.append((hours[number], error))
                    continue
                found[number] = [replace(block, source=None) for block in hours[number]]
            yield _Hours(found, folder, level, min(most, workers.count() if workers is not None else 1))

    for _, made in spread(workers, _merge, here(), most):
        yield from ((hours[number], found) for number, found in made.items())
    yield from failed


def _merge(portion: _Hours) -> dict[int, Merged]:
    """Write the blocks of a portion."""
    made: dict[int, Merged] = {}
    with Reopened(**settings_of_one(portion.processes)) as database:
        for number, blocks in portion.blocks.items():
            try:
                with database.use() as db:
                    builder = _read(db, blocks)
            except WalkbackError as error:
                made[number] = error
                continue
            sharing.clear(portion.folder / f"{layout.HOUR}{blocks[0].hour}")
            with database.use() as db:
                made[number] = builder.write(db, portion.folder, portion.level)
    return made


def _read(db: DuckDBPyConnection, blocks: Sequence[Block]) -> Builder:
    """The samples of several blocks."""
    builder = Builder()
    for block in blocks:
        found = checked_block(db, block)
        nodes, sources = builder.take_over(found.referred)
        builder.add(found.time, nodes[found.stack], found.weight, sources[found.source], found.end)
    return builder
