"""The tables of a block, as Parquet: columns of NumPy in, and out again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walkback.base.arrays import I32, I64, U8, U64, Numbers
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.text import sql_text
from walkback.segments.database import plain_column, plain_path, readable, sql_path, writable
from walkback.store import layout
from walkback.store.parts import Block, HasTables, Rollup
from walkback.store.tree import StackTree, from_preorder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Columns = Mapping[str, np.ndarray[Any, Any]]

_WRITTEN = {
    "samples": 'time, nullif(stack, -1)::INTEGER AS stack, weight, source, "end"',
    "sources": (
        "host::VARCHAR AS host, process::VARCHAR AS process, nullif(pid, -1)::BIGINT AS pid,"
        " nullif(tid, -1)::BIGINT AS tid, event::VARCHAR AS event,"
        " map(keys::VARCHAR[], values::VARCHAR[]) AS labels"
    ),
    "nodes": "depth, frame",
    "frames": "nullif(module, -1)::INTEGER AS module, address, name::VARCHAR AS name",
    "modules": "build_id::VARCHAR AS build_id, path::VARCHAR AS path",
    "sums": 'nullif(stack, -1)::INTEGER AS stack, source, "end", weight, count',
    "times": "first, last",
}
_READ = {
    "samples": 'epoch_ns(time) AS time, coalesce(stack, -1)::INTEGER AS stack, weight, source, "end"',
    "sources": (
        "host, process, coalesce(pid, -1)::BIGINT AS pid, coalesce(tid, -1)::BIGINT AS tid, event,"
        " map_keys(labels) AS keys, map_values(labels) AS values"
    ),
    "nodes": "depth, frame",
    "frames": "coalesce(module, -1)::INTEGER AS module, address, name",
    "modules": "build_id, path",
    "sums": 'coalesce(stack, -1)::INTEGER AS stack, source, "end", weight, count',
    "times": "epoch_ns(first) AS first, epoch_ns(last) AS last",
}
# Version 2 of Parquet has differences of numbers: good where they rise, bad for the frames of nodes.
_SORTED = "PARQUET_VERSION V2, "
_WHOLE = "ROW_GROUP_SIZE 1048576, "
# A tenth smaller than groups of the usual size; those of a million rows would take twice as much memory more.
_LARGE = "ROW_GROUP_SIZE 491520, "
# Otherwise up to a fifth of the rows. From a tenth on differences are smaller: of times that hosts have in common, and
# of stacks. Only weights of as many values take more.
_FEW_VALUES = "DICTIONARY_SIZE_LIMIT 45000, "
_OPTIONS = {
    "samples": _SORTED + _LARGE + _FEW_VALUES,
    "nodes": _WHOLE,
    "frames": _SORTED + _WHOLE,
    "sums": _SORTED + _LARGE,
}

QUICK, SMALL = 6, 19
"""Levels of compression: for what is appended, and for what is compacted."""
_SAMPLES_LEVEL = 6
"""More makes columns of rising and repeated numbers hardly smaller."""


def write_tables(db: DuckDBPyConnection, folder: Path, tables: Mapping[str, Columns], level: int) -> None:
    """Write the tables of a block into its folder."""
    for table, columns in tables.items():
        file = sql_text(plain_path(folder / f"{table}.parquet"))
        most = min(level, _SAMPLES_LEVEL) if table == "samples" else level
        options = f"FORMAT parquet, {_OPTIONS.get(table, '')}COMPRESSION zstd, COMPRESSION_LEVEL {most}"
        db.register("written", dict(columns))
        try:
            with writable(folder):
                db.execute(f"COPY (SELECT {_WRITTEN[table]} FROM written) TO {file} ({options})")
        finally:
            db.unregister("written")


def read_table(db: DuckDBPyConnection, block: HasTables, table: str) -> dict[str, Any]:
    """The columns of a table of a block, in the order of its rows; -1 where a number is not there."""
    file = block.file(table)
    query = f"SELECT {_READ[table]} FROM read_parquet({sql_path(file)}, hive_partitioning=false)"
    try:
        with readable():
            found = db.execute(query).fetchnumpy()
        return {name: plain_column(column, f"{name} is not there in every row") for name, column in found.items()}
    except UnreadableError as error:
        raise error.within(file=str(file)) from None


@dataclass(frozen=True, slots=True)
class Referred:
    """What samples, or their sums, refer to; every number that refers to a row is a number of one."""

    sources: dict[str, Any]
    tree: StackTree
    module: I32
    address: U64
    name: Numbers
    build_id: Numbers
    path: Numbers


@dataclass(frozen=True, slots=True)
class Contents:
    """All that a block has."""

    time: I64
    stack: I32
    weight: I64
    source: I32
    end: U8
    referred: Referred


@dataclass(frozen=True, slots=True)
class SummedContents:
    """All that a rollup has."""

    stack: I32
    source: I32
    end: U8
    weight: I64
    count: I64
    first: I64
    """The time of the first sample of each source."""
    last: I64
    referred: Referred


def read_block(db: DuckDBPyConnection, block: Block) -> Contents:
    """Everything, checked."""
    referred, samples = _read_referred(db, block), read_table(db, block, "samples")
    _check_references(samples, referred, block.file("samples"))
    return Contents(**samples, referred=referred)


def read_rollup(db: DuckDBPyConnection, rollup: Rollup) -> SummedContents:
    """Everything, checked."""
    referred, sums, times = _read_referred(db, rollup), read_table(db, rollup, "sums"), read_table(db, rollup, "times")
    _check_references(sums, referred, rollup.file("sums"))
    if len(times["first"]) != len(referred.sources["pid"]):
        raise UnreadableError("there is not a row for each source", file=str(rollup.file("times")))
    return SummedContents(**sums, **times, referred=referred)


def _read_referred(db: DuckDBPyConnection, block: HasTables) -> Referred:
    sources, nodes, frames, modules = (read_table(db, block, table) for table in layout.TABLES[1:])
    try:
        tree = from_preorder(nodes["depth"], nodes["frame"], len(frames["address"]))
    except UnreadableError as error:
        raise error.within(file=str(block.file("nodes"))) from None
    _refer(frames["module"], -1, len(modules["path"]), "module", block.file("frames"))
    return Referred(sources, tree, **frames, **modules)


def _check_references(rows: Columns, referred: Referred, file: Path) -> None:
    _refer(rows["stack"], -1, len(referred.tree), "stack", file)
    _refer(rows["source"], 0, len(referred.sources["pid"]), "source", file)


def _refer(column: Numbers, least: int, count: int, what: str, file: Path) -> None:
    wrong = np.flatnonzero((column < least) | (column >= count))
    if len(wrong):
        row = int(wrong[0])
        raise UnreadableError(f"row {row} has the {what} {column[row]}, and there are {count}", file=str(file))
