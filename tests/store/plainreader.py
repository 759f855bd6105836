"""A second reader of stores: straight from the documented layout, with pyarrow and plain Python.

It knows nothing of walkback, as somebody's own tools do not.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

TABLES = ("samples", "sources", "nodes", "frames", "modules")


def live_blocks(store: Path) -> list[Path]:
    """The folders of the blocks that count."""
    assert json.loads((store / "walkback-store.json").read_text()) == {"version": 1}
    told = {path: json.loads((path / "segment.json").read_text()) for path in sorted(store.glob("segment=*"))}
    dead = {(segment, hour) for one in told.values() for segment, hour in one["replaces"]}
    return [
        path / f"hour={hour}"
        for path, one in told.items()
        for hour in one["blocks"]
        if (path.name.removeprefix("segment="), hour) not in dead
    ]


def table(block: Path, name: str) -> list[dict[str, Any]]:
    # One file alone: the names of its folders say nothing that is not in it.
    rows = pq.ParquetFile(block / f"{name}.parquet").read()
    if name == "samples":
        rows = rows.set_column(0, "time", rows["time"].cast("int64"))
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def stacks_of(nodes: list[dict[str, Any]], frames: list[Any]) -> list[tuple[Any, ...]]:
    """The stack of each node, innermost frame first."""
    path: list[Any] = []
    found = []
    for node in nodes:
        assert 0 <= node["depth"] <= len(path)
        del path[node["depth"] :]
        path.append(frames[node["frame"]])
        found.append(tuple(reversed(path)))
    return found


def block_samples(block: Path) -> list[tuple[Any, ...]]:
    """Each sample as (time, stack, weight, end, host, process, pid, tid, event, labels).

    A frame is (build ID or path, address, name).
    """
    samples, sources, nodes, frames, modules = (table(block, name) for name in TABLES)
    files = [one["build_id"] or one["path"] for one in modules]
    named = [(None if one["module"] is None else files[one["module"]], one["address"], one["name"]) for one in frames]
    stacks = stacks_of(nodes, named)
    return [
        (
            one["time"],
            () if one["stack"] is None else stacks[one["stack"]],
            one["weight"],
            one["end"],
            *(sources[one["source"]][key] for key in ("host", "process", "pid", "tid", "event")),
            tuple(sources[one["source"]]["labels"]),
        )
        for one in samples
    ]


def samples(store: Path) -> Counter[Any]:
    """All samples of a store, and how often each is there."""
    return Counter(sample for block in live_blocks(Path(store)) for sample in block_samples(block))
