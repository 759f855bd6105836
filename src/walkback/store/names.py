"""The names that a store keeps, by build ID: they are known when the files are gone.

A row says what a function is called, from where it begins to behind the last of its addresses that was met, or which
calls are inlined at an address. Every name is there once, however many hours have frames of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walkback.base.arrays import I64, U64, Bools, Numbers, changes, distinct, numbered
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.oneline import OneLine
from walkback.base.text import spelled_out, sql_text
from walkback.naming.borders import function_at
from walkback.segments.database import cast_columns, object_column, plain_path, readable, sql_path, writable
from walkback.stacks.profile import NamedFrames
from walkback.store import layout
from walkback.symbols.holders import LastAbove
from walkback.symbols.sourceline import SourceLine

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COLUMNS = layout.COLUMNS_OF_NAMES
_MOST_CALLS = 1 << 16
"""Deeper ones are of no compiler."""
_CALL, _LINE = "\t", "\n"
_SPELLED = str.maketrans({_CALL: "\\t", _LINE: "\\n"})
_ROUND = (1, 2, 3)
"""Bits of a distance that is round."""
_FARTHEST = np.uint64(2**32 - 1)

Calls = tuple[str, ...]
"""What is inlined at an address, innermost first, and the function; none where the function has no name."""


@dataclass(frozen=True, slots=True, repr=False)
class KeptNames(OneLine):
    """Names in columns: by build ID and place, a function before what is inlined where it begins."""

    build_ids: Sequence[str]
    module: I64
    """The number of each row's build ID."""
    start: U64
    reach: U64
    """How many bytes behind it the last address is."""
    calls: Sequence[Calls]

    def __len__(self) -> int:
        return len(self.module)

    def find(self, build_ids: Sequence[str | None], module: Numbers, address: U64) -> KeptAnswers:
        """What is known of addresses in files with these build IDs, each by its number there."""
        numbers = {build_id: number for number, build_id in enumerate(self.build_ids)}
        of_each = np.array([*(numbers.get(one or "", -1) for one in build_ids), -1], np.int64)
        here = of_each[np.asarray(module, np.int64)]
        first = np.searchsorted(self.module, np.arange(len(self.build_ids) + 1))
        function, exact = np.full(len(address), -1, np.int64), np.full(len(address), -1, np.int64)
        for number in distinct(here[here >= 0]).tolist():
            asked = np.flatnonzero(here == number)
            begin, end = int(first[number]), int(first[number + 1])
            inlined = np.fromiter((len(calls) > 1 for calls in self.calls[begin:end]), np.bool_, end - begin)
            ours = begin + np.flatnonzero(~inlined)
            if len(ours):
                start = self.start[ours]
                last = LastAbove(start + self.reach[ours] + np.uint64(1))
                place = last.find(np.searchsorted(start, address[asked], "right") - 1, address[asked])
                function[asked] = np.where(place >= 0, ours[place], -1)
            ours = begin + np.flatnonzero(inlined)
            if len(ours):
                place = np.minimum(np.searchsorted(self.start[ours], address[asked]), len(ours) - 1)
                exact[asked] = np.where(self.start[ours[place]] == address[asked], ours[place], -1)
        return KeptAnswers(self, function, np.where(function >= 0, exact, -1))

    def rows(self) -> Iterator[tuple[int, int, int, Calls]]:
        """One after the other."""
        return zip(self.module.tolist(), self.start.tolist(), self.reach.tolist(), self.calls, strict=True)


@dataclass(frozen=True, slots=True)
class KeptAnswers:
    """What is known of some addresses; rows are -1 where nothing is."""

    names: KeptNames
    function: I64
    exact: I64
    """Of the calls that are inlined there."""

    def symbol(self, number: int) -> str | None:
        """The name of the function around an address; None if it has none."""
        calls = self.names.calls[int(self.function[number])]
        return calls[-1] if calls else None

    def start(self, number: int) -> int:
        """Where the function around an address begins."""
        return int(self.names.start[int(self.function[number])])

    def inlined(self, number: int) -> Calls:
        """The calls that are inlined at an address, innermost first."""
        row = int(self.exact[number])
        return self.names.calls[row][:-1] if row >= 0 else ()


NOTHING = KeptNames([], np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint64), [])


def names_of(
    build_ids: Sequence[str | None],
    module: I64,
    frames: NamedFrames,
    inlined: Sequence[tuple[SourceLine, ...]],
) -> KeptNames:
    """The rows that say what these frames are called, each in the file with the build ID of that number."""
    texts = [one or "" for one in build_ids]
    symbols, address, offset = frames.symbol, frames.address, frames.offset
    assert offset is not None
    has_id = np.array([*map(bool, texts), False], np.bool_)[module]
    named = np.array([symbol is not None for symbol in symbols], np.bool_)
    found = np.flatnonzero(has_id & named & (offset <= address))
    starts = (address - offset).tolist()
    bare = [symbols[row] == function_at(frames.module[row], starts[row]) for row in found.tolist()]
    chosen = [() if is_bare else (symbols[row],) for row, is_bare in zip(found.tolist(), bare, strict=True)]
    # Calls that have no names, as where a file with debug information is missing, say nothing.
    deep = np.array([row for row in found.tolist() if any(line.function for line in inlined[row])], np.int64)
    calls = [(*(line.function for line in inlined[row]), symbols[row]) for row in deep.tolist()]
    rows = np.concatenate((found, deep))
    return _sorted(
        texts,
        module[rows],
        np.concatenate((address[found] - offset[found], address[deep])),
        np.concatenate((offset[found], np.zeros(len(deep), np.uint64))),
        [tuple(spelled_out(name).translate(_SPELLED) for name in one if name) for one in (*chosen, *calls)],
    )


def names_to_ends(
    build_ids: Sequence[str | None],
    module: I64,
    frames: NamedFrames,
    inlined: Sequence[tuple[SourceLine, ...]],
    find: Callable[[I64, U64], NamedFrames],
) -> KeptNames:
    """The same, with functions that reach to a round distance where they go on so far, as that takes less room.

    `find` names addresses in the files of these numbers.
    """
    assert frames.offset is not None
    has_id = np.array([*map(bool, build_ids), False], np.bool_)[module]
    rows, address = _round_ends(module, frames, has_id)
    ends = find(module[rows], address)
    assert ends.offset is not None
    same = address - ends.offset == (frames.address - frames.offset)[rows]
    symbols = [symbol if here else None for symbol, here in zip(ends.symbol, same.tolist(), strict=True)]
    others = names_of(build_ids, module[rows], replace(ends, symbol=symbols), [()] * len(rows))
    return joined([others, names_of(build_ids, module, frames, inlined)])


def _round_ends(module: I64, frames: NamedFrames, chosen: Bools) -> tuple[I64, U64]:
    """The frames that were met last in their functions, and addresses at round distances behind the begins of these."""
    assert frames.offset is not None
    found = np.flatnonzero(chosen & np.array([symbol is not None for symbol in frames.symbol], np.bool_))
    start = frames.address - frames.offset
    found = found[np.lexsort((frames.offset[found], start[found], module[found]))]
    last = np.roll(changes(module[found], start[found]), -1)
    rows = found[last]
    size = frames.offset[rows] + np.uint64(1)
    width = np.ceil(np.log2(size.astype(np.float64) + 1)).astype(np.int64)
    ends = []
    for bits in _ROUND:
        unit = np.uint64(1) << (width - bits).clip(min=0).astype(np.uint64)
        ends.append(start[rows] + ((size + unit - np.uint64(1)) // unit * unit - np.uint64(1)))
    return np.tile(rows, len(_ROUND)), np.concatenate(ends)


def joined(tables: Sequence[KeptNames]) -> KeptNames:
    """All names of several tables, the oldest first."""
    if not tables:
        return NOTHING
    every = [build_id for table in tables for build_id in table.build_ids]
    build_ids, here = numbered(every)
    first = np.cumsum([0, *(len(table.build_ids) for table in tables)])
    module = [np.asarray(here)[begin + table.module] for begin, table in zip(first[:-1].tolist(), tables, strict=True)]
    return _sorted(
        [str(one) for one in build_ids],
        np.concatenate(module).astype(np.int64),
        np.concatenate([table.start for table in tables]),
        np.concatenate([table.reach for table in tables]),
        [one for table in tables for one in table.calls],
    )


def _sorted(build_ids: Sequence[str], module: I64, start: U64, reach: U64, calls: list[Calls]) -> KeptNames:
    """Each row once: the newest that has a name, which reaches as far as any."""
    names = sorted(set(build_ids))
    rank = {name: number for number, name in enumerate(names)}
    module = np.array([*(rank[name] for name in build_ids), -1], np.int64)[module]
    depth = np.fromiter((len(one) for one in calls), np.int64, len(calls))
    order = np.lexsort((depth > 0, depth > 1, start, module))
    module, start, reach, inlined = module[order], start[order], reach[order], depth[order] > 1
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(module) != 0) | (start[1:] != start[:-1]) | (inlined[1:] != inlined[:-1])
    first = np.flatnonzero(begins)
    if not len(first):
        return NOTHING
    last = np.append(first[1:], len(order)) - 1
    kept = [calls[place] for place in order[last].tolist()]
    return KeptNames(names, module[first], start[first], np.maximum.reduceat(reach, first), kept)


def write_names(db: DuckDBPyConnection, folder: Path, names: KeptNames, level: int) -> None:
    """Write them into the folder of a segment."""
    begins = changes(names.module)
    columns = {
        "row": np.arange(len(names)),
        "build_id": object_column([names.build_ids[number] for number in names.module.tolist()]),
        "step": np.where(begins, names.start, np.diff(names.start, prepend=np.uint64(0))),
        "reach": np.minimum(names.reach, _FARTHEST),
        "line": object_column([_CALL.join(one) for one in names.calls]),
    }
    db.register("written", columns)
    together = {"steps": "list(step ORDER BY row)", "reaches": "list(reach ORDER BY row)"}
    together |= {"build_id": "build_id", "calls": "string_agg(line, chr(10) ORDER BY row)"}
    chosen = ", ".join(f"({together[name]})::{kind} AS {name}" for name, kind in _COLUMNS.items())
    file = sql_text(plain_path(folder / layout.NAMES_FILE))
    options = f"FORMAT parquet, ROW_GROUP_SIZE 1048576, COMPRESSION zstd, COMPRESSION_LEVEL {level}"
    try:
        with writable(folder):
            db.execute(f"COPY (SELECT {chosen} FROM written GROUP BY build_id ORDER BY min(row)) TO {file} ({options})")
    finally:
        db.unregister("written")


def read_names(
    db: DuckDBPyConnection, files: Sequence[Path], build_ids: Iterable[str | None] | None = None
) -> KeptNames:
    """The names in some files, the oldest first; if `build_ids` are given only those of these."""
    wanted = None if build_ids is None else sorted({one for one in build_ids if one})
    return joined([_read(db, file, wanted) for file in files if wanted is None or wanted])


def _read(db: DuckDBPyConnection, file: Path, wanted: list[str] | None) -> KeptNames:
    query = f"SELECT {cast_columns(_COLUMNS)} FROM read_parquet({sql_path(file)}, hive_partitioning = false)"
    try:
        with readable():
            if wanted is None:
                found = db.execute(query).fetchnumpy()
            else:
                found = db.execute(f"{query} WHERE build_id IN (SELECT unnest(?))", [wanted]).fetchnumpy()
        return _checked(found)
    except UnreadableError as error:
        raise error.within(file=str(file)) from None


def _checked(found: dict[str, Any]) -> KeptNames:
    if any(np.ma.is_masked(column) for column in found.values()):
        raise UnreadableError("a row lacks a value")
    build_ids, *columns = (np.ma.getdata(found[name]).tolist() for name in _COLUMNS)
    starts, reaches, calls = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)], []
    for steps, reach, text in zip(*columns, strict=True):
        if np.ma.is_masked(steps) or np.ma.is_masked(reach):
            raise UnreadableError("a row lacks a value")
        start = np.cumsum(np.asarray(steps, np.uint64), dtype=np.uint64)
        starts.append(start)
        reaches.append(np.asarray(reach, np.uint64))
        lines = [tuple(line.split(_CALL)) if line else () for line in text.split(_LINE)]
        if not len(start) == len(reach) == len(lines):
            raise UnreadableError(f"a row has {len(start)} steps, {len(reach)} reaches and {len(lines)} lines")
        if (start[1:] < start[:-1]).any() or (reaches[-1] >= ~start).any():
            raise UnreadableError("a function reaches beyond all addresses")
        calls += lines
    if any(len(one) > _MOST_CALLS or not all(one) for one in calls):
        raise UnreadableError("a row has names that are none")
    module = np.repeat(np.arange(len(build_ids)), [len(start) for start in starts[1:]])
    return _sorted(build_ids, module, np.concatenate(starts), np.concatenate(reaches), calls)
