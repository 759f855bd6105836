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
from walkback.store.folder import Block
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
}
# Version 2 of Parquet has differences of numbers: good where they rise, bad for the frames of nodes.
_SORTED = "PARQUET_VERSION V2, "
_WHOLE = "ROW_GROUP_SIZE 1048576, "
_OPTIONS = {"samples": _SORTED, "sources": "", "nodes": _WHOLE, "frames": _SORTED + _WHOLE, "modules": ""}

QUICK, SMALL = 6, 19
"""Levels of compression: for what is appended, and for what is compacted."""
_SAMPLES_LEVEL = 3
"""More makes columns of rising and repeated numbers no smaller."""


def write_tables(db: DuckDBPyConnection, folder: Path, tables: Mapping[str, Columns], level: int) -> None:
    """Write the tables of a block into its folder."""
    for table, columns in tables.items():
        file = sql_text(plain_path(folder / f"{table}.parquet"))
        most = min(level, _SAMPLES_LEVEL) if table == "samples" else level
        options = f"FORMAT parquet, {_OPTIONS[table]}COMPRESSION zstd, COMPRESSION_LEVEL {most}"
        db.register("written", dict(columns))
        try:
            with writable(folder):
                db.execute(f"COPY (SELECT {_WRITTEN[table]} FROM written) TO {file} ({options})")
        finally:
            db.unregister("written")


def read_table(db: DuckDBPyConnection, block: Block, table: str) -> dict[str, Any]:
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
class Contents:
    """All that a block has; every number that refers to a row is a number of one."""

    time: I64
    stack: I32
    weight: I64
    source: I32
    end: U8
    sources: dict[str, Any]
    tree: StackTree
    module: I32
    address: U64
    name: Numbers
    build_id: Numbers
    path: Numbers


def read_block(db: DuckDBPyConnection, block: Block) -> Contents:
    """Everything, checked."""
    found = {table: read_table(db, block, table) for table in layout.TABLES}
    samples, sources, frames, modules = (found[table] for table in ("samples", "sources", "frames", "modules"))
    nodes = found["nodes"]
    try:
        tree = from_preorder(nodes["depth"], nodes["frame"], len(frames["address"]))
    except UnreadableError as error:
        raise error.within(file=str(block.file("nodes"))) from None
    _refer(samples["stack"], -1, len(tree), "stack", block.file("samples"))
    _refer(samples["source"], 0, len(sources["pid"]), "source", block.file("samples"))
    _refer(frames["module"], -1, len(modules["path"]), "module", block.file("frames"))
    return Contents(**samples, sources=sources, tree=tree, **frames, **modules)


def _refer(column: Numbers, least: int, count: int, what: str, file: Path) -> None:
    wrong = np.flatnonzero((column < least) | (column >= count))
    if len(wrong):
        row = int(wrong[0])
        raise UnreadableError(f"row {row} has the {what} {column[row]}, and there are {count}", file=str(file))
