"""Questions about many blocks, answered by several workers: each reads some of the blocks.

A worker finds the files of a block below its own folder of the store, which is another one where the store is in a
bucket.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from walkback.base.arrays import I64, numbered
from walkback.base.dataclass import dataclass
from walkback.segments.database import connect, shared_settings
from walkback.store.folder import StoreFolder, StoreSnapshot
from walkback.store.groups import Group, groups, heaviest_first
from walkback.store.names import read_names
from walkback.store.opening import open_folder
from walkback.store.parts import Block, Rollup, Summed
from walkback.store.reading import MISSING
from walkback.store.sharing import cost
from walkback.store.sums import StoredFrames, Sums, Wanted, check_weight, distinct_frames, sums, together
from walkback.store.tree import GrowingTree
from walkback.workers.executors import SharingWorkers, StartError
from walkback.workers.merging import merged_answers

T = TypeVar("T")
_EACH = 2
"""Pieces for each worker, so that none waits long for the last one."""
_LEAST = 2_000_000
"""Rows of a piece; what has less is not worth sending."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some blocks and rollups of a store."""

    store: str
    wanted: Wanted
    parts: tuple[Block | Rollup, ...]
    """With paths in the store's folder."""
    sizes: Mapping[Path, int]
    """Of their files, where these are not in the folder anyway."""
    workers: int
    """How many there are."""

    def chosen(self, folder: StoreFolder) -> Summed:
        """The same, below the folder of whoever reads them."""
        source = folder.source({folder.path / file: size for file, size in self.sizes.items()})
        parts = [replace(part, path=folder.path / part.path, source=source) for part in self.parts]
        return Summed(
            tuple(part for part in parts if isinstance(part, Rollup)),
            tuple(part for part in parts if isinstance(part, Block)),
        )


def sums_by(workers: SharingWorkers, snapshot: StoreSnapshot, wanted: Wanted) -> Sums:
    """The samples of a moment that are wanted, summed up by workers."""
    cut = _cut(snapshot, wanted, workers)
    found = _merged(workers, _summed, cut, _joined)
    if found is None:
        return sums(snapshot.summed, wanted, snapshot.names)
    with connect() as connection:
        kept = read_names(connection, snapshot.names, (build_id for build_id, _ in found.frames.modules))
    return replace(found, frames=replace(found.frames, kept=kept))


def groups_by(workers: SharingWorkers, snapshot: StoreSnapshot, wanted: Wanted, by: str) -> list[Group]:
    """The same samples, by what they are of."""
    cut = _cut(snapshot, wanted, workers)
    found = _merged(workers, _Grouping(by), cut, _added)
    return groups(snapshot.summed, wanted, by) if found is None else found


def _merged(
    workers: SharingWorkers, work: Callable[[Piece], T], cut: Sequence[Piece], merge: Callable[[T, T], T]
) -> T | None:
    """The answer of workers; None where this process has to find it alone."""
    if len(cut) < 2:
        return None
    try:
        return merged_answers(workers, work, cut, merge)
    except StartError:
        return None


def _cut(snapshot: StoreSnapshot, wanted: Wanted, workers: SharingWorkers) -> list[Piece]:
    """All blocks and rollups, in pieces with about as many rows each; fewer than two if that is not worth it."""
    parts: list[Block | Rollup] = [*snapshot.summed.rollups, *snapshot.summed.blocks]
    rows = [cost(part) for part in parts]
    all_workers = workers.count()
    if all_workers == 1 and workers.are_here:
        return []
    count = min(_EACH * max(all_workers, 1), sum(rows) // _LEAST)
    found: dict[int, list[Block | Rollup]] = {}
    begin = 0
    for part, its_rows in zip(parts, rows, strict=True):
        found.setdefault((2 * begin + its_rows) * count // (2 * sum(rows)), []).append(part)
        begin += its_rows
    root = snapshot.folder.path
    # A worker can be somewhere else.
    name = snapshot.folder.name if snapshot.folder.is_far else str(snapshot.folder.path.absolute())
    return [
        Piece(
            name,
            wanted,
            tuple(_sent(part, root) for part in its),
            {file.relative_to(root): size for part in its for file, size in part.far_files.items()},
            all_workers,
        )
        for its in found.values()
    ]


def _sent(part: Block | Rollup, root: Path) -> Block | Rollup:
    path = part.path.relative_to(root)
    if isinstance(part, Rollup):
        return replace(part, path=path, source=None, of=frozenset())
    return replace(part, path=path, source=None)


@cache
def _opened(store: str) -> StoreFolder:
    return open_folder(store)


def _summed(piece: Piece) -> Sums:
    """In a worker: the samples of a piece, summed up."""
    folder = _opened(piece.store)
    with folder.reading():
        return sums(piece.chosen(folder), piece.wanted, settings=shared_settings(piece.workers))


@dataclass(frozen=True, slots=True)
class _Grouping:
    """In a worker: the samples of a piece by what they are of."""

    by: str

    def __call__(self, piece: Piece) -> list[Group]:
        folder = _opened(piece.store)
        with folder.reading():
            return groups(piece.chosen(folder), piece.wanted, self.by, shared_settings(piece.workers))


def _added(first: list[Group], second: list[Group]) -> list[Group]:
    weight, count = Counter[str | None](), Counter[str | None]()
    for group in (*first, *second):
        weight[group.value] += group.weight
        count[group.value] += group.count
    return heaviest_first(Group(value, weight[value], count[value]) for value in count)


def _joined(first: Sums, second: Sums) -> Sums:
    """The sums of two pieces as one."""
    both = (first, second)
    frames, frame = _frames(both)
    processes, process = numbered([*first.processes, *second.processes])
    growing, rows = GrowingTree(), []
    for one, its_frame, its_process in zip(
        both, np.split(frame, [len(first.frames)]), np.split(process, [len(first.processes)]), strict=True
    ):
        node = np.append(growing.add_tree(one.tree, its_frame), np.int32(MISSING))
        rows.append((node[one.node].astype(np.int64), its_process[one.process], one.end, one.weight, one.count))
    weights = together(*(np.concatenate(columns) for columns in zip(*rows, strict=True)))
    check_weight(weights[3])
    times = [(one.first, one.last) for one in both if len(one.node)]
    return Sums(
        growing.tree(),
        frames,
        processes,
        list(dict.fromkeys((*first.events, *second.events))),
        *weights,
        min((one for one, _ in times), default=0),
        max((one for _, one in times), default=0),
    )


def _frames(both: tuple[Sums, Sums]) -> tuple[StoredFrames, I64]:
    """The frames of both, and what number each has among them."""
    modules: list[tuple[str | None, str | None]] = []
    names: list[str] = []
    module, name = [], []
    for one in (both[0].frames, both[1].frames):
        module.append(np.where(one.module >= 0, one.module + len(modules), MISSING))
        name.append(np.where(one.name >= 0, one.name + len(names), MISSING))
        modules += one.modules
        names += one.names
    texts, number = numbered(names)
    its_name = np.append(number, MISSING)[np.concatenate(name)]
    address = np.concatenate([one.frames.address for one in both])
    return distinct_frames(modules, np.concatenate(module), address, texts, its_name)
