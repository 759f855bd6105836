"""Makes the blocks of one segment: takes samples in any order, numbers what they refer to, and writes hour by hour."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import I32, I64, Numbers, marked
from walkback.base.arrays import distinct as distinct_values
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, UnreadableError
from walkback.base.text import spelled_out
from walkback.segments.database import object_column
from walkback.stacks.distinct import Distinct
from walkback.store import layout
from walkback.store.parts import BlockCounts, Name, Rollup
from walkback.store.tables import QUICK, Columns, Referred, write_tables
from walkback.store.tree import GrowingTree, in_preorder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOST_HOURS = 24 * 366
"""In one segment: more are rather times that are wrong."""
_NO_NAME = 0


@dataclass(frozen=True, slots=True)
class SampleOrigin:
    """What many samples have in common; -1 is a process or thread that is not known."""

    host: str | None = None
    process: str | None = None
    pid: int = -1
    tid: int = -1
    event: str | None = None
    labels: tuple[tuple[str, str], ...] = ()


class Builder:
    """What becomes a segment."""

    def __init__(self) -> None:
        self.stacks = GrowingTree()
        """Of all samples, with frames as `frames` numbers them."""
        self._frames = Distinct()
        self._modules: list[tuple[str | None, str | None]] = []
        self._module_numbers: dict[str, int] = {}
        self._names: list[str] = [""]
        self._name_numbers: dict[str, int] = {}
        self._sources: dict[SampleOrigin, int] = {}
        self._samples: dict[str, list[Numbers]] = {name: [] for name in layout.COLUMNS["samples"]}
        """Columns, in pieces."""
        self._closed = False

    def close(self) -> None:
        """Take no more: it would be lost."""
        self._closed = True

    def check_open(self) -> None:
        """Refuse what would be lost."""
        if self._closed:
            raise ArgumentError("this is finished, and cannot be added to")

    def module(self, build_id: str | None, path: str | None) -> int:
        """The number of a file; one with a build ID is the same wherever it lies."""
        key = f"id {build_id}" if build_id else f"at {path}"
        if key not in self._module_numbers:
            self._module_numbers[key] = len(self._modules)
            self._modules.append((build_id or None, path or None))
        return self._module_numbers[key]

    def frames(self, module: Numbers, address: Numbers, names: Sequence[str | None] | None = None) -> I64:
        """The numbers of frames; a module is -1 where there is none."""
        records = np.empty((len(address), 3), np.uint64)
        records[:, 0] = (np.asarray(module, np.int64) + 1).astype(np.uint64)
        records[:, 1] = address
        records[:, 2] = _NO_NAME if names is None else [self._name(name) for name in names]
        return self._frames.add_records(records)

    def _name(self, name: str | None) -> int:
        if not name:
            return _NO_NAME
        number = self._name_numbers.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number

    def sources(self, origins: Iterable[SampleOrigin]) -> I32:
        """The numbers of sources."""
        return np.array([self._sources.setdefault(origin, len(self._sources)) for origin in origins], np.int32)

    def sources_of(self, columns: Sequence[Numbers], origin: Callable[..., SampleOrigin]) -> I32:
        """The number of the source of each row of some columns; `origin` makes it of the row's values."""
        distinct = Distinct()
        numbers = distinct.add_records(np.stack([column.astype(np.int64) for column in columns], axis=1))
        rows = distinct.table.astype(np.int64).reshape(-1, len(columns)).tolist()
        return self.sources(origin(*row) for row in rows)[numbers]

    def add(self, time: Numbers, stack: I32, weight: Numbers, source: Numbers, end: Numbers, *, since: int = 0) -> None:
        """Add samples; a stack is the number of a node of `stacks`, times are nanoseconds, from `since` after 1970."""
        self.check_open()
        first, last = (int(time.min()), int(time.max())) if len(time) else (0, 0)
        if len(time) and not 0 <= first + since <= last + since <= layout.LAST_NS:
            raise UnreadableError("samples are from the years 1970 to 2262")
        columns = {
            # In this order no number is too large on the way, whatever clock the times are of.
            "time": (time - time.dtype.type(first)).astype(np.int64) + (first + since),
            "stack": np.ascontiguousarray(stack, np.int32),
            "weight": np.minimum(weight, np.array(layout.MOST_WEIGHT, np.asarray(weight).dtype)).astype(np.int64),
            "source": np.ascontiguousarray(source, np.int32),
            "end": np.ascontiguousarray(end, np.uint8),
        }
        for name, pieces in self._samples.items():
            pieces.append(columns[name])

    def __len__(self) -> int:
        return sum(map(len, self._samples["time"]))

    def write(self, db: DuckDBPyConnection, folder: Path, level: int = QUICK) -> dict[str, BlockCounts]:
        """Write the blocks of a segment into its folder, and forget the samples; returns what each hour's block has."""
        found: dict[str, BlockCounts] = {}
        for hour, samples in self._hours():
            name = layout.hour_name(hour)
            place = folder / f"{layout.HOUR}{name}"
            place.mkdir()
            tables = self._tables(samples)
            write_tables(db, place, tables, level)
            sizes = len(tables["nodes"]["depth"]), len(tables["frames"]["address"])
            found[name] = counted(samples["time"], tables["samples"]["stack"], samples["weight"], *sizes)
        return found

    def _hours(self) -> Iterable[tuple[int, dict[str, Numbers]]]:
        """The samples of each hour, in the order of their times."""
        columns = {name: np.concatenate(pieces or [np.zeros(0, np.int64)]) for name, pieces in self._samples.items()}
        for pieces in self._samples.values():
            pieces.clear()
        time = columns["time"]
        if len(time) and (time[1:] < time[:-1]).any():
            order = np.argsort(time, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
            time = columns["time"]
        hours = distinct_values(time // layout.HOUR_NS)
        if len(hours) > _MOST_HOURS:
            message = f"the samples are of {len(hours)} different hours, and at most {_MOST_HOURS} are taken at once"
            raise UnreadableError(message)
        ends = np.searchsorted(time, (hours + 1) * layout.HOUR_NS).tolist()
        begin = 0
        for hour, end in zip(hours.tolist(), ends, strict=True):
            yield hour, {name: column[begin:end] for name, column in columns.items()}
            begin = end

    def _tables(self, samples: dict[str, Numbers]) -> dict[str, Columns]:
        """The tables of one block: its samples, and what they refer to."""
        stack, source, referred = self.referred(samples["stack"], samples["source"])
        time = samples["time"].view("datetime64[ns]")
        return {"samples": {**samples, "time": time, "stack": stack, "source": source}, **referred}

    def referred(self, stack: Numbers, source: Numbers) -> tuple[I32, I32, dict[str, Columns]]:
        """Columns of stacks and sources with rows counted from 0, and the tables that these rows are of."""
        whole = self.stacks.tree()
        wanted = whole.with_outer(stack)
        frames, modules, rank = self._frame_tables(_used(whole.frame[wanted], len(self._frames)))
        tree, depth, place = in_preorder(whole, rank, wanted)
        sources = _used(source, len(self._sources))
        tables = {
            "sources": _source_table(list(self._sources), sources),
            "nodes": {"depth": depth, "frame": tree.frame},
            "frames": frames,
            "modules": modules,
        }
        # The last place stands for -1: a stack without frames.
        return np.append(place, np.int32(-1))[stack], _places(sources, len(self._sources))[source], tables

    def take_over(self, found: Referred, *, alike: bool = False) -> tuple[I32, I32]:
        """The numbers here of stacks and sources of a block, which the stack -1 comes behind.

        Processes and threads of one name, with the same event and labels, are `alike` where their numbers do not count.
        """
        modules = [self.module(*module) for module in zip(found.build_id, found.path, strict=True)]
        frames = self.frames(np.array([*modules, -1], np.int64)[found.module], found.address, found.name.tolist())
        nodes = np.append(self.stacks.add_tree(found.tree, frames), np.int32(-1))
        columns = found.sources
        labels = [tuple(zip(*pair, strict=True)) for pair in zip(columns["keys"], columns["values"], strict=True)]
        host, process, pid, tid, event = (columns[name].tolist() for name in ("host", "process", "pid", "tid", "event"))
        if alike:
            pid = tid = [-1] * len(host)
        rows = zip(host, process, pid, tid, event, labels, strict=True)
        return nodes, self.sources(SampleOrigin(*row) for row in rows)

    def _frame_tables(self, used: I64) -> tuple[Columns, Columns, I32]:
        """The tables of frames and modules, and the row of each frame."""
        table = self._frames.table[used].reshape(-1, 3)
        module = table[:, 0].astype(np.int64) - 1
        files = _used(module[module >= 0], len(self._modules))
        files = np.array(sorted(files.tolist(), key=lambda one: _sortable(self._modules[one])), np.int64)
        row = np.append(_places(files, len(self._modules)), np.int32(-1))[module]
        names = _used(table[:, 2].astype(np.int64), len(self._names))
        names = np.array(sorted(names.tolist(), key=self._names.__getitem__), np.int64)
        order = np.lexsort((_places(names, len(self._names))[table[:, 2].astype(np.int64)], table[:, 1], row))
        frames = {
            "module": row[order],
            "address": table[order, 1],
            "name": _texts(self._names[number] or None for number in table[order, 2].tolist()),
        }
        modules = {
            "build_id": _texts(self._modules[number][0] for number in files.tolist()),
            "path": _texts(self._modules[number][1] for number in files.tolist()),
        }
        return frames, modules, _places(used[order], len(self._frames))


def write_manifest(
    folder: Path,
    blocks: Mapping[str, BlockCounts],
    replaces: Iterable[Name] = (),
    *,
    names: int = 0,
    rollups: Iterable[Rollup] = (),
) -> None:
    """Say what a segment has, and what it takes the place of; `names` is the number of names in its table of them."""
    sums = {one.span: {"sums": one.sums, "of": sorted(one.of)} for one in rollups}
    described = {
        "version": layout.VERSION,
        "replaces": sorted(replaces),
        "blocks": {hour: asdict(counts) for hour, counts in blocks.items()},
        **({"names": names} if names else {}),
        **({"sums": sums} if sums else {}),
    }
    (folder / layout.MANIFEST).write_text(json.dumps(described) + "\n")


def counted(time: Numbers, stack: Numbers, weight: Numbers, nodes: int, frames: int) -> BlockCounts:
    """What a block has, by the columns of its samples and the sizes of its other tables."""
    return BlockCounts(
        samples=len(time),
        stacks=len(_used(stack, nodes)),  # without that of no frames
        nodes=nodes,
        frames=frames,
        first=int(time.min(initial=layout.LAST_NS)),
        last=int(time.max(initial=0)),
        weight=sum_of(weight),
    )


def sum_of(weight: Numbers) -> int:
    """The sum, in halves: so it is right for great weights too."""
    return (int((weight >> 32).sum()) << 32) + int((weight & (2**32 - 1)).sum())


def _used(numbers: Numbers, count: int) -> I64:
    """Which numbers below `count` there are among these, rising; -1 is none."""
    return np.flatnonzero(marked(numbers, count + 1)[:count])


def _places(chosen: I64, count: int) -> I32:
    """For each number below `count` its place among the chosen; -1 if it is not."""
    places = np.full(count, -1, np.int32)
    places[chosen] = np.arange(len(chosen), dtype=np.int32)
    return places


def _texts(values: Iterable[str | None]) -> Numbers:
    """A column of text."""
    return object_column([None if value is None else spelled_out(value) for value in values])


def _sortable(module: tuple[str | None, str | None]) -> tuple[str, str]:
    build_id, path = module
    return path or "", build_id or ""


def _source_table(sources: list[SampleOrigin], used: I64) -> Columns:
    chosen = [sources[number] for number in used.tolist()]
    return {
        "host": _texts(one.host for one in chosen),
        "process": _texts(one.process for one in chosen),
        "pid": np.array([one.pid for one in chosen], np.int64),
        "tid": np.array([one.tid for one in chosen], np.int64),
        "event": _texts(one.event for one in chosen),
        "keys": object_column([[spelled_out(key) for key, _ in one.labels] for one in chosen]),
        "values": object_column([[spelled_out(value) for _, value in one.labels] for one in chosen]),
    }
