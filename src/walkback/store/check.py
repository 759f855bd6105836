"""Whether a store is whole: every block is read, and compared with what its segment says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.segments.database import Reopened
from walkback.store import layout
from walkback.store.builder import counted, sum_of
from walkback.store.folder import StoreFolder
from walkback.store.names import read_names
from walkback.store.parts import Block, BlockCounts, Name, Rollup, Segment, Summed, live, live_names, live_rollups
from walkback.store.sharing import refuse_cluster, shared_out
from walkback.store.tables import Contents, read_block, read_rollup

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from walkback.workers.executors import LocalWorkers


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a file of a store."""

    file: str
    """The file."""
    message: str
    """What is wrong."""


def check(folder: StoreFolder, workers: LocalWorkers | None = None) -> Iterator[Problem]:
    """All that is wrong; nothing if every sample can be read. With `workers` several blocks are read at a time."""
    refuse_cluster(workers)
    with folder.reading():
        wrong: list[UnreadableError] = []
        segments = folder.segments(wrong)
        blocks = live(segments)
        for error in wrong:
            yield Problem(error.file or folder.name, error.message)
        for file in folder.missing(segments):
            yield Problem(file, "this file is missing, or not as large as its segment says")
        yield from _check_parts(blocks, live_rollups(segments), workers)
        with Reopened() as database:
            for segment in live_names(segments):
                yield from _check_names(database, segment)


def _check_parts(blocks: Sequence[Block], rollups: Sequence[Rollup], workers: LocalWorkers | None) -> Iterator[Problem]:
    counts = {block.name: block.counts for block in blocks}
    work = partial(_check_part, sums={rollup.path: _sums(rollup, counts) for rollup in rollups})
    parts = {block.path: Summed((), (block,)) for block in blocks} | {one.path: Summed((one,)) for one in rollups}
    found = dict(shared_out(work, parts, max, None, workers))
    for path in parts:
        problems = found[path]
        if isinstance(problems, WalkbackError):
            yield Problem(problems.file or str(path), problems.message)
        else:
            yield from problems


def _sums(rollup: Rollup, counts: Mapping[Name, BlockCounts]) -> dict[str, int]:
    """What the blocks of a rollup come to."""
    its = [counts[name] for name in rollup.of]
    return {
        "samples": sum(block.samples for block in its),
        "weight": sum(block.weight for block in its),
        "first": min(block.first for block in its),
        "last": max(block.last for block in its),
        "sums": rollup.sums,
    }


def _check_part(
    db: DuckDBPyConnection, part: Summed, path: Path, *, sums: Mapping[Path, Mapping[str, int]]
) -> list[Problem]:
    """What is wrong with one block or rollup."""
    for its in part.all:
        its.check_there()
    if part.rollups:
        return list(_check_rollup(db, part.rollups[0], sums[path]))
    return list(_check_block(db, part.blocks[0]))


def _check_rollup(db: DuckDBPyConnection, rollup: Rollup, expected: Mapping[str, int]) -> Iterator[Problem]:
    found = read_rollup(db, rollup)
    here = {
        "samples": int(found.count.sum()),
        "weight": sum_of(found.weight),
        "first": int(found.first.min(initial=layout.LAST_NS)),
        "last": int(found.last.max(initial=0)),
        "sums": len(found.stack),
    }
    for name, count in here.items():
        if count != expected[name]:
            yield Problem(
                str(rollup.path), f"its blocks come to {expected[name]} as its {name}, and here it is {count}"
            )


def _check_names(database: Reopened, segment: Segment) -> Iterator[Problem]:
    try:
        with database.use() as db:
            found = len(read_names(db, [segment.names_file]))
        if found != segment.names:
            message = f"the segment gives {segment.names} as its names, and here it is {found}"
            yield Problem(str(segment.names_file), message)
    except WalkbackError as error:
        yield Problem(error.file or str(segment.names_file), error.message)


def _check_block(db: DuckDBPyConnection, block: Block) -> Iterator[Problem]:
    found = read_block(db, block)
    tree = found.referred.tree
    counts = counted(found.time, found.stack, found.weight, len(tree), len(found.referred.address))
    yield from contradictions(block, found, asdict(counts))
    if (np.diff(found.time) < 0).any():
        yield Problem(str(block.file("samples")), "samples are not in the order of their times")
    order = np.lexsort((tree.frame, tree.parent))
    same = (np.diff(tree.parent[order]) == 0) & (np.diff(tree.frame[order]) == 0)
    if same.any():
        node = int(order[1:][same].min())
        yield Problem(str(block.file("nodes")), f"node {node} is there twice")


def checked_block(db: DuckDBPyConnection, block: Block) -> Contents:
    """All that a block has; if that is not what its segment says, it is not made to look as if it were."""
    found = read_block(db, block)
    for problem in contradictions(block, found, {"samples": len(found.time), "weight": sum_of(found.weight)}):
        raise UnreadableError(problem.message, file=problem.file)
    return found


def contradictions(block: Block, found: Contents, has: Mapping[str, int]) -> Iterator[Problem]:
    """Where a block is not what its segment says of it, by these counts and by its hour."""
    for name, count in has.items():
        if (expected := getattr(block.counts, name)) != count:
            yield Problem(str(block.path), f"the segment gives {expected} as its {name}, and here it is {count}")
    if (found.time // layout.HOUR_NS != layout.hour_number(block.hour)).any():
        yield Problem(str(block.file("samples")), f"there are samples that are not of the hour {block.hour}")
