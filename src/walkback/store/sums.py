"""Samples of a store summed up: one tree over all blocks, and what was seen at each of its nodes.

DuckDB reads the samples, drops those that are not wanted and sums up the others by stack, so what comes here are
distinct stacks, however many samples there are. Each block has numbers of its own for stacks and frames; here they get
common ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from walkback.base.arrays import I64, U8, U64, numbered
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.oneline import OneLine
from walkback.base.text import spelled_out, sql_text
from walkback.segments.database import connect, readable
from walkback.stacks.distinct import Distinct
from walkback.store.builder import sum_of
from walkback.store.layout import LAST_NS, MOST_WEIGHT
from walkback.store.names import NOTHING, KeptNames, read_names
from walkback.store.parts import Summed
from walkback.store.reading import MISSING, BlockColumns, BlockTables
from walkback.store.tree import GrowingTree, StackTree, from_preorder


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which samples: those that meet all of this."""

    since: int | None = None
    """In nanoseconds since 1970."""
    until: int | None = None
    """Before this."""
    host: Sequence[str] = ()
    """Any of these; of any host if there is none. So do the others."""
    process: Sequence[str] = ()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def of_sources(self) -> str:
        """What is asked of sources, as a condition of SQL; nothing if all are wanted."""
        asked = [("host", self.host), ("process", self.process)]
        asked += [(_label(label), values) for label, values in self.labels.items()]
        parts = [f"{what} IN ({', '.join(map(_quoted, values))})" for what, values in asked if values]
        return " AND ".join(parts)

    @property
    def of_times(self) -> str:
        """What is asked of times, as a condition of SQL; nothing if all are wanted."""
        parts = [
            f'"time" {sign} make_timestamp_ns({min(max(value, 0), LAST_NS)})'
            for sign, value in ((">=", self.since), ("<", self.until))
            if value is not None
        ]
        return " AND ".join(parts)


@dataclass(frozen=True, slots=True)
class StoredFrames:
    """Distinct frames of several blocks."""

    modules: Sequence[tuple[str | None, str | None]]
    """Build ID, in hexadecimal digits, and path."""
    module: I64
    """`MISSING` for code in no file."""
    address: U64
    names: Sequence[str]
    name: I64
    """Of each frame the number of the name that is stored, or `MISSING`."""
    kept: KeptNames = NOTHING
    """What the store knows of the code in these modules."""

    def __len__(self) -> int:
        return len(self.module)


@dataclass(frozen=True, slots=True, repr=False)
class Sums(OneLine):
    """Weights and numbers of samples: a row for each stack, process and end."""

    tree: StackTree
    frames: StoredFrames
    processes: Sequence[str]
    events: Sequence[str]
    """Of all sources that were picked."""
    node: I64
    """`MISSING` for a stack without frames."""
    process: I64
    end: U8
    weight: U64
    count: U64
    first: int
    """The time of the first sample, in nanoseconds since 1970; 0 without any."""
    last: int


@dataclass(frozen=True, slots=True)
class Forest:
    """The trees of several blocks as one."""

    tree: StackTree
    frames: StoredFrames
    nodes: BlockColumns
    """For each node of each block its number in the tree."""

    def find(self, block: I64, stack: I64) -> I64:
        """The nodes of stacks of blocks; `MISSING` for a stack without frames."""
        place = self.nodes.places(block, stack)
        here = self.nodes.columns[0]
        return np.where(place >= 0, here[place], MISSING).astype(np.int64) if len(here) else place


def forest(tables: BlockTables, names: Sequence[Path]) -> Forest:
    """The trees of all blocks, with numbers of frames that are the same in all, and what tables of names know."""
    frames, number = frames_of(tables, names)
    nodes = tables.read("nodes", "depth", "frame")
    tree = GrowingTree()
    here = np.empty(int(nodes.first[-1]), np.int32)
    for block in range(len(tables.blocks)):
        its, its_frames = nodes.slice(block), number.slice(block)
        depth, frame = (column[its] for column in nodes.columns)
        try:
            part = from_preorder(depth, frame, its_frames.stop - its_frames.start)
        except UnreadableError as error:
            raise error.within(file=nodes.files[block]) from None
        here[its] = tree.add_tree(part, number.columns[0][its_frames])
    return Forest(tree.tree(), frames, BlockColumns(nodes.first, [here], nodes.files))


def sums(
    chosen: Summed, wanted: Wanted, names: Sequence[Path] = (), settings: Mapping[str, str] = MappingProxyType({})
) -> Sums:
    """The samples of these blocks that are wanted, summed up; all those of the rollups are of the times wanted.

    `settings` are of DuckDB.
    """
    if not chosen:
        none = np.zeros(0, np.int64)
        frames = StoredFrames([], none, none.astype(np.uint64), [], none)
        weights = none.astype(np.uint64)
        return Sums(GrowingTree().tree(), frames, [], [], none, none, none.astype(np.uint8), weights, weights, 0, 0)
    with connect(**settings) as connection:
        tables = BlockTables(connection, [*chosen.rollups, *chosen.blocks])
        sources = _Sources(tables, wanted)
        found = _summed(tables, len(chosen.rollups), wanted, sources)
        times = list(_times(tables, len(chosen.rollups), wanted, sources))
        trees = forest(tables, names)
    rows = together(
        trees.find(found["block"], found["stack"]), *(found[name] for name in ("process", "end", "weight", "count"))
    )
    first, last = min((one for one, _ in times), default=0), max((one for _, one in times), default=0)
    return Sums(trees.tree, trees.frames, sources.processes, sources.events, *rows, first, last)


def together(node: I64, process: I64, end: U8, weight: U64, count: U64) -> tuple[I64, I64, U8, U64, U64]:
    """One row for all that have the same node, process and end."""
    distinct = Distinct()
    rows = distinct.add_records(np.stack((node + 1, process, end), axis=1))
    table = distinct.table.astype(np.int64).reshape(-1, 3)
    weights, counts = np.zeros((2, len(table)), np.uint64)
    np.add.at(weights, rows, weight)
    np.add.at(counts, rows, count)
    return table[:, 0] - 1, table[:, 1].copy(), table[:, 2].astype(np.uint8), weights, counts


def check_weight(weight: U64) -> None:
    """Raise an error for samples that weigh more than can be summed up."""
    if sum_of(weight) > MOST_WEIGHT:
        raise UnreadableError(
            f"together these samples weigh more than {MOST_WEIGHT}, which is the most that is summed up"
        )


class _Sources:
    """Which sources are wanted, and the process of each."""

    def __init__(self, tables: BlockTables, wanted: Wanted) -> None:
        condition = wanted.of_sources
        where = f"WHERE {condition}" if condition else ""
        query = f"SELECT block, row, process, event FROM {tables.scan('sources')} {where} ORDER BY block, row"
        found = tables.ask(query)
        processes, self.process = numbered(found["process"].tolist())
        self.processes = [str(name or "") for name in processes]
        self.events = [str(name) for name in dict.fromkeys(found["event"].tolist()) if name]
        self.all = not condition
        picked = {"block": found["block"], "source": found["row"], "process": self.process}
        tables.connection.register("picked", picked)


def _summed(tables: BlockTables, rollups: int, wanted: Wanted, sources: _Sources) -> dict[str, Any]:
    """A row for each stack of a block, process and end."""
    samples = tables.counted_samples(rollups, wanted.of_times)
    # A sample whose source is missing is not left out, but an error.
    rows = f"{samples} {'LEFT' if sources.all else 'INNER'} JOIN picked USING (block, source)"
    query = f"""
        SELECT block, coalesce(stack, {MISSING}) AS stack, coalesce(process, {MISSING}) AS process, "end",
            CAST(least(sum(weight), {2**64 - 1}) AS UBIGINT) AS weight, CAST(sum(count) AS UBIGINT) AS count
        FROM {rows} GROUP BY ALL
        """
    found = tables.ask(query)
    if (found["process"] == MISSING).any():
        raise UnreadableError("samples name a source that does not exist")
    check_weight(found["weight"])
    return found


def _times(tables: BlockTables, rollups: int, wanted: Wanted, sources: _Sources) -> Iterator[tuple[int, int]]:
    """The times of the first and the last sample, of rollups and of blocks."""
    summed, blocks = (
        BlockTables(tables.connection, part, number)
        for part, number in ((tables.blocks[:rollups], 0), (tables.blocks[rollups:], rollups))
    )
    # Asked with the sums this would take as long as these; alone, and of all sources, it is mostly in the footers.
    picked = "" if sources.all else "JOIN picked USING (block, source)"
    asked = []
    if summed.blocks:
        asked.append(("first", "last", f"(SELECT *, row AS source FROM {summed.scan('times')})"))
    if blocks.blocks:
        asked.append(("time", "time", f"(SELECT * FROM {blocks.scan('samples')} WHERE {wanted.of_times or 'true'})"))
    for first, last, rows in asked:
        ends = f'min("{first}") AS first, max("{last}") AS last FROM {rows} {picked}'
        found = tables.ask(
            f"SELECT epoch_ns(first) AS first, epoch_ns(last) AS last FROM (SELECT {ends}) WHERE first NOTNULL"
        )
        yield from zip(found["first"].tolist(), found["last"].tolist(), strict=True)


def frames_of(tables: BlockTables, names: Sequence[Path]) -> tuple[StoredFrames, BlockColumns]:
    """The frames of all blocks, and what number each row of their tables has among them."""
    if not tables.blocks:
        nothing = np.zeros(0, np.int64)
        frames = StoredFrames([], nothing, nothing.astype(np.uint64), [], nothing)
        return frames, BlockColumns(np.zeros(1, np.int64), [nothing], [])
    modules = tables.read("modules", "build_id", "path")
    build_ids, paths = (column.tolist() for column in modules.columns)
    texts, rows = _read_frames(tables)
    module, address, name = rows.columns
    frames, numbers = distinct_frames(
        list(zip(build_ids, paths, strict=True)),
        modules.places(rows.block(), module),
        np.asarray(address, np.uint64),
        texts,
        np.asarray(name, np.int64),
    )
    kept = read_names(tables.connection, names, (build_id for build_id, _ in frames.modules))
    return replace(frames, kept=kept), BlockColumns(rows.first, [numbers], rows.files)


def _read_frames(tables: BlockTables) -> tuple[list[str], BlockColumns]:
    """The names that frames have, and module, address and number of the name of each frame."""
    scan = tables.scan("frames")
    texts = tables.ask(f"SELECT DISTINCT name FROM {scan} WHERE name NOTNULL ORDER BY name")["name"]
    if not len(texts):
        return [], tables.read("frames", f"coalesce(module, {MISSING})", "address", str(MISSING))
    # The same few names come again in each block, and as texts of Python they would take longest.
    with readable():
        tables.connection.register("names_of_frames", {"name": texts})
        tables.connection.execute("CREATE TYPE name_of_frame AS ENUM (SELECT name FROM names_of_frames)")
    number = f"coalesce(CAST(enum_code(CAST(name AS name_of_frame)) AS BIGINT), {MISSING})"
    rows = tables.read("frames", f"coalesce(module, {MISSING})", "address", number)
    with readable():
        tables.connection.execute("DROP TYPE name_of_frame")
        tables.connection.unregister("names_of_frames")
    return texts.tolist(), rows


def distinct_frames(
    modules: Sequence[tuple[str | None, str | None]], module: I64, address: U64, names: Sequence[str], name: I64
) -> tuple[StoredFrames, I64]:
    """Frames without repetition, and the number of each row among them; modules may repeat as well, names may not."""
    # A file with a build ID is the same wherever it lies, as it is within a block.
    keys, module_here = numbered([(build_id, None if build_id else path) for build_id, path in modules])
    # Which path it gets does not depend on the order in which blocks are read.
    paths: dict[tuple[str | None, str | None], str] = {}
    for key, (_, path) in zip(map(keys.__getitem__, module_here.tolist()), modules, strict=True):
        if path is not None:
            paths[key] = min(path, paths.get(key, path))
    if len(module_here):
        module = np.where(module >= 0, module_here[module], MISSING)
    distinct = Distinct()
    numbers = distinct.add_records(np.stack((module + 1, address.view(np.int64), name + 1), axis=1))
    table = distinct.table.reshape(-1, 3)
    frames = StoredFrames(
        [(key[0], paths.get(key)) for key in keys],
        table[:, 0].astype(np.int64) - 1,
        table[:, 1].copy(),
        names,
        table[:, 2].astype(np.int64) - 1,
    )
    return frames, numbers


def column_of(name: str) -> str:
    """The host or the process of a source, or a label, as SQL; `label:host` is the label of that name."""
    return name if name in {"host", "process"} else _label(name.removeprefix("label:"))


def _label(name: str) -> str:
    return f"map_extract_value(labels, {_quoted(name)})"


def _quoted(text: str) -> str:
    """A text of SQL; bytes that are no text are spelled out, as they are in the store."""
    return sql_text(spelled_out(text))
