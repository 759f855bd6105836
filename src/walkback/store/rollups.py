"""Sums of the samples of days and months, by stack and source: questions about long times read these.

A rollup has the sums of some blocks, and counts as long as all of them do. It knows no times of single samples, and
processes and threads by their names only. Compaction makes those of days and months that are over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import I32, I64, Numbers, distinct
from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.segments.database import Reopened, settings_of_one
from walkback.stacks.distinct import Distinct
from walkback.store import layout, sharing
from walkback.store.builder import Builder
from walkback.store.check import checked_block
from walkback.store.parts import Block, Rollup, Summed, brought, summed
from walkback.store.tables import Columns, Referred, read_rollup, write_tables
from walkback.workers.spreading import portions, spread

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from walkback.workers.executors import LocalWorkers


class _Sums:
    """What becomes a rollup."""

    def __init__(self) -> None:
        self._builder = Builder()
        self._rows = Distinct()
        """Of a stack, counted from 1, a source and an end."""
        self._weight, self._count = (np.zeros(0, np.int64) for _ in range(2))
        self._first, self._last = (np.zeros(0, np.int64) for _ in range(2))

    def add_block(self, db: DuckDBPyConnection, block: Block) -> None:
        """Add the samples of a block."""
        found = checked_block(db, block)
        source = self._add(found.referred, found.stack, found.source, found.end, found.weight, np.int64(1))
        self._add_times(source[found.source], found.time, found.time)

    def add_rollup(self, db: DuckDBPyConnection, rollup: Rollup) -> None:
        """Add the sums of another rollup."""
        found = read_rollup(db, rollup)
        source = self._add(found.referred, found.stack, found.source, found.end, found.weight, found.count)
        self._add_times(source, found.first, found.last)

    def _add(
        self, referred: Referred, stack: I32, source: I32, end: Numbers, weight: I64, count: I64 | np.int64
    ) -> I32:
        nodes, sources = self._builder.take_over(referred, alike=True)
        columns = [nodes[stack].astype(np.int64) + 1, sources[source].astype(np.int64), end.astype(np.int64)]
        rows = self._rows.add_records(np.stack(columns, axis=1))
        new = len(self._rows.table) - len(self._weight)
        self._weight, self._count = (np.append(one, np.zeros(new, np.int64)) for one in (self._weight, self._count))
        np.add.at(self._weight, rows, weight)
        np.add.at(self._count, rows, count)
        return sources

    def _add_times(self, source: I32, first: I64, last: I64) -> None:
        most = int(source.max(initial=-1)) + 1
        new = max(most - len(self._first), 0)
        self._first = np.append(self._first, np.full(new, layout.LAST_NS))
        self._last = np.append(self._last, np.zeros(new, np.int64))
        np.minimum.at(self._first, source, first)
        np.maximum.at(self._last, source, last)

    def write(self, db: DuckDBPyConnection, folder: Path, level: int) -> int:
        """Write the tables; returns how many sums there are."""
        table = self._rows.table.astype(np.int64).reshape(-1, 3)
        used = distinct(table[:, 1])
        stack, source, referred = self._builder.referred(table[:, 0] - 1, table[:, 1])
        order = np.lexsort((table[:, 2], stack, source))
        sums: dict[str, Numbers] = {
            "stack": stack,
            "source": source,
            "end": table[:, 2].astype(np.uint8),
            "weight": self._weight,
            "count": self._count,
        }
        times = {"first": self._first[used], "last": self._last[used]}
        tables: dict[str, Columns] = {
            "sums": {name: column[order] for name, column in sums.items()},
            "times": {name: column.view("datetime64[ns]") for name, column in times.items()},
        }
        folder.mkdir(parents=True)
        write_tables(db, folder, tables | referred, level)
        return len(order)


def wanted_rollups(blocks: Sequence[Block], known: Iterable[Rollup]) -> Iterator[dict[str, list[Block]]]:
    """The days, and then the months, that are over, have several blocks, and are not as they are known."""
    have = {rollup.span: rollup.of for rollup in known}
    newest = layout.spans_of(max((block.hour for block in blocks), default=""))
    for which in range(len(newest)):
        spans: dict[str, list[Block]] = {}
        for block in blocks:
            span = layout.spans_of(block.hour)[which]
            if span not in newest:
                spans.setdefault(span, []).append(block)
        yield {
            span: its
            for span, its in spans.items()
            if len(its) > 1
            and have.get(span) != frozenset(block.name for block in its)
            and sum(block.counts.weight for block in its) <= layout.MOST_WEIGHT
        }


@dataclass(frozen=True, slots=True)
class _Spans:
    """What some days or months are summed up from, and where their sums go."""

    parts: Mapping[str, Summed]
    folder: Path
    level: int
    processes: int


def write_rollups(
    folder: Path,
    segment: str,
    wanted: Mapping[str, Sequence[Block]],
    known: Sequence[Rollup],
    level: int,
    workers: LocalWorkers | None,
) -> Iterator[tuple[str, Rollup | WalkbackError]]:
    """Sum up the blocks of spans, by the rollups that are known of some; what one of these has alone gets no other."""
    of_span = {span: summed(blocks, known, None, None) for span, blocks in wanted.items()}
    costs = {
        span: sum(map(sharing.cost, parts.rollups)) + sum(map(sharing.cost, parts.blocks))
        for span, parts in of_span.items()
        if len(parts.rollups) + len(parts.blocks) > 1
    }
    most = sharing.at_once(max(costs.values(), default=0))
    failed: list[tuple[str, WalkbackError]] = []

    def here() -> Iterator[_Spans]:
        """The spans in portions, with all their files on this machine."""
        for spans in portions(costs, costs.__getitem__, sharing.PORTION):
            found = {}
            for span in spans:
                try:
                    found[span] = _brought(of_span[span])
                except WalkbackError as error:
                    failed.append((span, error))
            yield _Spans(found, folder, level, min(most, workers.count() if workers is not None else 1))

    for _, made in spread(workers, _sum_up, here(), most):
        for span, count in made.items():
            if isinstance(count, int):
                names = frozenset(block.name for block in wanted[span])
                yield span, Rollup(folder / layout.SUMS / span, segment, span, count, names)
            else:
                yield span, count
    yield from failed


def _brought(parts: Summed) -> Summed:
    """The same, with all files on this machine."""
    for its in (parts.rollups, parts.blocks):
        for table in its[0].tables if its else ():
            brought(its, table)
    return Summed(
        tuple(replace(rollup, source=None, of=frozenset()) for rollup in parts.rollups),
        tuple(replace(block, source=None) for block in parts.blocks),
    )


def _sum_up(portion: _Spans) -> dict[str, int | WalkbackError]:
    """Write the sums of a portion; how many each span has, or why it has none."""
    made: dict[str, int | WalkbackError] = {}
    with Reopened(**settings_of_one(portion.processes)) as database:
        for span, parts in portion.parts.items():
            sums, place = _Sums(), portion.folder / layout.SUMS / span
            try:
                with database.use() as db:
                    for rollup in parts.rollups:
                        sums.add_rollup(db, rollup)
                    for block in parts.blocks:
                        sums.add_block(db, block)
                    sharing.clear(place)
                    made[span] = sums.write(db, place, portion.level)
            except WalkbackError as error:
                made[span] = error
    return made
