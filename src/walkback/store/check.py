"""Whether a store is whole: every block is read, and compared with what its segment tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from walkback.database import connect
from walkback.errors import UnreadableError, WalkbackError
from walkback.store import layout
from walkback.store.builder import number_of_stacks, sum_of
from walkback.store.folder import Block, Folder, live, missing
from walkback.store.tables import Contents, read_block

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a file of a store."""

    file: str
    message: str


def check(folder: Folder) -> Iterator[Problem]:
    """All that is wrong; nothing if every sample can be read."""
    with folder.locked(layout.LOCK, shared=True):
        wrong: list[UnreadableError] = []
        blocks = live(folder.segments(wrong))
        for error in wrong:
            yield Problem(error.file or str(folder.path), error.message)
        for block in blocks:
            try:
                if not block.path.is_dir():
                    raise missing(block)
                # A damaged file can leave DuckDB in a state in which it reads no other either.
                with connect() as db:
                    yield from _check_block(db, block)
            except WalkbackError as error:
                yield Problem(error.file or str(block.path), error.message)


def _check_block(db: DuckDBPyConnection, block: Block) -> Iterator[Problem]:
    found = read_block(db, block)
    told = block.counts
    has = _has(found)
    for name, count in has.items():
        if getattr(told, name) != count:
            message = f"the segment tells of {getattr(told, name)} as its {name}, and here it is {count}"
            yield Problem(str(block.path), message)
    begin = (layout.hour_number(block.hour) or 0) * layout.HOUR_NS
    if len(found.time) and (has["first"] < begin or has["last"] >= begin + layout.HOUR_NS):
        yield Problem(str(block.file("samples")), f"there are samples that are not of the hour {block.hour}")
    if (np.diff(found.time) < 0).any():
        yield Problem(str(block.file("samples")), "samples are not in the order of their times")
    tree = found.tree
    order = np.lexsort((tree.frame, tree.parent))
    same = (np.diff(tree.parent[order]) == 0) & (np.diff(tree.frame[order]) == 0)
    if same.any():
        node = int(order[1:][same].min())
        yield Problem(str(block.file("nodes")), f"node {node} is there twice")


def _has(found: Contents) -> dict[str, int]:
    """The counts of a block as its tables give them."""
    time = found.time
    return {
        "samples": len(time),
        "stacks": number_of_stacks(found.stack, len(found.tree)),
        "nodes": len(found.tree),
        "frames": len(found.address),
        "first": int(time.min(initial=layout.LAST_NS)),
        "last": int(time.max(initial=0)),
        "weight": sum_of(found.weight),
    }
