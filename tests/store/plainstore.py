"""A second writer of stores: straight from the documented layout, in plain Python and pyarrow.

It knows nothing of walkback's own writer, so what the questions answer does not depend on that.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HOUR = 3600 * 10**9
NOON = 490_000 * HOUR
"""2025-11-24T16:00:00Z, a whole hour."""

Frame = tuple[str | None, str | None, int, str | None]
"""Build ID, path, address, name."""

_Tables = dict[str, dict[str, Any]]
"""Columns by their names, by the names of tables."""


def named(name: str) -> Frame:
    """A frame that has a name and no file."""
    return None, None, 0, name


KERNEL = (None, "[kernel.kallsyms]", 0x40, "do_syscall")
STRANGER = ("ab" * 20, "/nowhere/libstrange.so", 0x1234, None)
FRAMES: list[Frame] = [*map(named, "abcdef"), KERNEL, STRANGER]
"""What stacks of samples are made of."""


@dataclass(frozen=True)
class Sample:
    """One sample, as a test says it."""

    frames: tuple[Frame, ...]
    """Innermost first."""
    time: int = NOON
    weight: int = 1
    process: str = "server"
    host: str = "web1"
    pid: int = 10
    tid: int = 11
    event: str = "cpu-clock"
    labels: tuple[tuple[str, str], ...] = ()
    end: int = 0

    @property
    def source(self) -> tuple[str, str, int, int, str, tuple[tuple[str, str], ...]]:
        return self.host, self.process, self.pid, self.tid, self.event, self.labels


@dataclass
class _Node:
    """A frame that was called from another, and what it called."""

    frame: int = -1
    depth: int = -1
    number: int | None = None
    children: dict[int, _Node] = field(default_factory=dict)

    def below(self) -> Iterator[_Node]:
        """What it called, each before its own."""
        for frame in sorted(self.children):
            yield self.children[frame]
            yield from self.children[frame].below()


def write_segment(store: Path, samples: Iterable[Sample], *, replaces: Sequence[tuple[str, str]] = ()) -> str:
    """Put samples into a store as one segment, a block an hour; returns its id."""
    store.mkdir(exist_ok=True)
    (store / "staging").mkdir(exist_ok=True)
    (store / "walkback-store.json").write_text('{"version": 1}\n')
    for lock in ("lock", "compact.lock"):
        (store / lock).touch()
    made = len(list(store.glob("segment=*")))
    number = f"{made:08x}{random.randrange(16**16):016x}"
    folder = store / f"segment={number}"
    folder.mkdir()
    hours: dict[str, list[Sample]] = {}
    for sample in sorted(samples, key=lambda one: one.time):
        name = datetime.fromtimestamp(sample.time // HOUR * 3600, UTC).strftime("%Y-%m-%dT%H")
        hours.setdefault(name, []).append(sample)
    blocks = {hour: _write_block(folder / f"hour={hour}", its) for hour, its in hours.items()}
    manifest = {"version": 1, "replaces": [list(one) for one in replaces], "blocks": blocks}
    (folder / "segment.json").write_text(json.dumps(manifest))
    return number


def _write_block(folder: Path, samples: Sequence[Sample]) -> dict[str, int]:
    folder.mkdir()
    frames = sorted(
        {frame for sample in samples for frame in sample.frames}, key=lambda one: [x or "" for x in map(str, one)]
    )
    nodes, last = _nodes(samples, frames)
    tables = {
        **_samples_and_sources(samples, [one.number for one in last]),
        "nodes": {
            "depth": pa.array([one.depth for one in nodes], pa.int32()),
            "frame": pa.array([one.frame for one in nodes], pa.int32()),
        },
        **_frames_and_modules(frames),
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", compression="zstd")
    return {
        "samples": len(samples),
        "stacks": len(set(map(id, last))),
        "nodes": len(nodes),
        "frames": len(frames),
        "first": min(one.time for one in samples),
        "last": max(one.time for one in samples),
        "weight": sum(one.weight for one in samples),
    }


def _nodes(samples: Sequence[Sample], frames: list[Frame]) -> tuple[list[_Node], list[_Node]]:
    """The nodes of all stacks, numbered; and the one at which the stack of each sample ends."""
    root = _Node()
    last = []
    for sample in samples:
        node = root
        for frame in map(frames.index, reversed(sample.frames)):
            node = node.children.setdefault(frame, _Node(frame, node.depth + 1))
        last.append(node)
    nodes = list(root.below())
    for number, node in enumerate(nodes):
        node.number = number
    return nodes, last


def _samples_and_sources(samples: Sequence[Sample], stacks: list[int | None]) -> _Tables:
    sources = list(dict.fromkeys(sample.source for sample in samples))
    return {
        "samples": {
            "time": pa.array([one.time for one in samples], pa.timestamp("ns")),
            "stack": pa.array(stacks, pa.int32()),
            "weight": pa.array([one.weight for one in samples], pa.int64()),
            "source": pa.array([sources.index(one.source) for one in samples], pa.int32()),
            "end": pa.array([one.end for one in samples], pa.uint8()),
        },
        "sources": {
            "host": pa.array([one[0] for one in sources], pa.string()),
            "process": pa.array([one[1] for one in sources], pa.string()),
            "pid": pa.array([one[2] for one in sources], pa.int64()),
            "tid": pa.array([one[3] for one in sources], pa.int64()),
            "event": pa.array([one[4] for one in sources], pa.string()),
            "labels": pa.array([list(one[5]) for one in sources], pa.map_(pa.string(), pa.string())),
        },
    }


def _frames_and_modules(frames: list[Frame]) -> _Tables:
    modules = sorted({frame[:2] for frame in frames if frame[0] or frame[1]}, key=str)
    return {
        "frames": {
            "module": pa.array([modules.index(one[:2]) if one[0] or one[1] else None for one in frames], pa.int32()),
            "address": pa.array([one[2] for one in frames], pa.uint64()),
            "name": pa.array([one[3] for one in frames], pa.string()),
        },
        "modules": {
            "build_id": pa.array([one[0] for one in modules], pa.string()),
            "path": pa.array([one[1] for one in modules], pa.string()),
        },
    }
