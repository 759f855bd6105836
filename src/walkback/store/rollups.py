"""Sums of the samples of days and months, by stack and source: questions about long times read these.

A rollup has the sums of some blocks, and counts as long as all of them do. It knows no times of single samples, and
processes and threads by their names only. Compaction makes those of days and months that are over.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import I32, I64, Numbers, distinct
from walkback.base.errors import WalkbackError
from walkback.stacks.distinct import Distinct
from walkback.store import layout
from walkback.store.builder import Builder
from walkback.store.check import checked_block
from walkback.store.parts import Block, Rollup, Summed, summed
from walkback.store.sharing import shared_out
from walkback.store.tables import Columns, Referred, read_rollup, write_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from walkback.store.staging import Staging
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


def write_rollups(
    staging: Staging,
    wanted: Mapping[str, Sequence[Block]],
    known: Sequence[Rollup],
    level: int,
    workers: LocalWorkers | None,
) -> list[Rollup | WalkbackError]:
    """Sum up the blocks of spans, by the rollups that are known of some; what one of these has alone gets no other."""
    folder = staging.path / layout.SUMS
    parts = {folder / span: summed(blocks, known, None, None) for span, blocks in wanted.items()}
    several = {place: its for place, its in parts.items() if len(its.all) > 1}
    made = dict(shared_out(partial(_write_sums, level=level), several, max, staging.spilled, workers))
    found: list[Rollup | WalkbackError] = []
    for place, count in sorted(made.items()):
        if isinstance(count, int):
            blocks = wanted[place.name]
            found.append(Rollup(place, staging.id, place.name, count, frozenset(block.name for block in blocks)))
        else:
            found.append(count)
    return found


def _write_sums(db: DuckDBPyConnection, parts: Summed, place: Path, *, level: int) -> int:
    """Write the sums of these parts; returns how many there are."""
    shutil.rmtree(place, ignore_errors=True)  # a process that was lost may have begun
    sums = _Sums()
    for rollup in parts.rollups:
        sums.add_rollup(db, rollup)
    for block in parts.blocks:
        sums.add_block(db, block)
    return sums.write(db, place, level)
