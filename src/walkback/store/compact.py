"""Fewer and smaller blocks, and no old ones: many blocks of an hour become one, and whole hours expire.

Both make a segment that takes the place of others' blocks, one that has their samples or one that has none. What is
replaced goes when nobody reads, which may be at a later compaction.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.segments.database import connect, done_apart
from walkback.store import layout
from walkback.store.builder import Builder, write_manifest
from walkback.store.check import checked_block
from walkback.store.folder import OvertakenError, StoreFolder, Turn
from walkback.store.names import read_names, write_names
from walkback.store.parts import (
    Block,
    BlockCounts,
    Name,
    Rollup,
    Segment,
    Summed,
    live,
    live_names,
    live_rollups,
    name_files,
    replaced_by,
)
from walkback.store.reading import BlockTables
from walkback.store.rollups import wanted_rollups, write_rollups
from walkback.store.sharing import refuse_cluster, shared_out
from walkback.store.staging import Staging
from walkback.store.tables import SMALL

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from walkback.workers.executors import LocalWorkers

_MOST_TURNS = 10


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a compaction or expiry did."""

    segment: str | None
    """The new one; None if there was nothing to do."""
    old: tuple[Block, ...]
    """What counts no more."""
    blocks: dict[str, BlockCounts]
    """What is new."""
    rollups: tuple[str, ...]
    """The days and months that were summed up."""
    waiting: int
    """Blocks that count no more and are still there, because somebody reads."""


def compact(
    folder: StoreFolder, *, every: bool = False, level: int = SMALL, workers: LocalWorkers | None = None
) -> Replaced:
    """Make the blocks of each hour one; with `every` also of hours that have one block only, to make that smaller.

    An hour with a block that cannot be read stays as it is, and after all others are done this raises the error.
    `workers` do hours, days and months side by side.
    """
    refuse_cluster(workers)

    def work(turn: Turn) -> Replaced:
        return _compact(folder, turn, level, workers, every=every)

    return _in_turn(folder, work)


def _in_turn(folder: StoreFolder, work: Callable[[Turn], Replaced]) -> Replaced:
    """Do it, and again from the beginning where somebody else replaced something meanwhile."""
    for _ in range(_MOST_TURNS):
        try:
            with folder.turn() as turn:
                return work(turn)
        except OvertakenError:
            pass
    raise UnreadableError("each time others compacted or expired this store faster", file=folder.name)


def _compact(folder: StoreFolder, turn: Turn, level: int, workers: LocalWorkers | None, *, every: bool) -> Replaced:
    segments = turn.segments
    hours: dict[str, list[Block]] = {}
    for block in live(segments):
        hours.setdefault(block.hour, []).append(block)
    old: list[Block] = []
    found: dict[str, BlockCounts] = {}
    errors: list[WalkbackError] = []
    with Staging(folder) as staging:
        places = {
            staging.path / f"{layout.HOUR}{hour}": Summed(blocks=tuple(blocks))
            for hour, blocks in hours.items()
            if every or len(blocks) > 1
        }
        merged = shared_out(partial(_write_hour, level=level), places, sum, staging.spilled, workers)
        for place, made in sorted(merged):
            if isinstance(made, WalkbackError):
                errors.append(made)
            else:
                found |= made
                old += places[place].blocks
        try:
            names = _merge_names(segments, staging.path, level, every=every)
        except WalkbackError as error:
            errors.append(error)
            names = _MergedNames()
        gone = {block.name for block in old}
        left = [block for blocks in hours.values() for block in blocks if block.name not in gone]
        left += [Block(staging.path / f"{layout.HOUR}{hour}", staging.id, hour, its) for hour, its in found.items()]
        rollups, outdated = _sum_up(segments, staging, left, level, errors, workers)
        replaced = gone | names.old | outdated
        if replaced or rollups:
            replaces = _replaces(segments, replaced)
            write_manifest(staging.path, found, replaces, names=names.rows, rollups=rollups)
            staging.publish(turn)
    waiting = folder.sweep()
    if errors:
        raise errors[0]
    spans = tuple(rollup.span for rollup in rollups)
    return Replaced(staging.id if replaced or rollups else None, tuple(old), found, spans, waiting)


def _sum_up(
    segments: Sequence[Segment],
    staging: Staging,
    blocks: Sequence[Block],
    level: int,
    errors: list[WalkbackError],
    workers: LocalWorkers | None,
) -> tuple[list[Rollup], set[Name]]:
    """Make the rollups of these blocks that are missing; returns also the names of those that count no more."""
    names = {block.name for block in blocks}
    known = [rollup for rollup in live_rollups(segments) if rollup.of <= names]
    made: list[Rollup] = []
    for wanted in wanted_rollups(blocks, known):
        for rollup in write_rollups(staging, wanted, [*known, *made], level, workers):
            if isinstance(rollup, WalkbackError):
                errors.append(rollup)
            else:
                made.append(rollup)
    new = {rollup.span for rollup in made}
    return made, _outdated(segments, names) | {rollup.name for rollup in known if rollup.span in new}


def _outdated(segments: Sequence[Segment], names: AbstractSet[Name]) -> set[Name]:
    """The rollups that count no more if only these blocks do."""
    replaced = replaced_by(segments)
    rollups = [rollup for segment in segments for rollup in segment.rollups]
    return {rollup.name for rollup in rollups if rollup.name not in replaced and not rollup.of <= names}


def _write_hour(db: DuckDBPyConnection, parts: Summed, place: Path, *, level: int) -> dict[str, BlockCounts]:
    """Write the samples of an hour's blocks as one block."""
    shutil.rmtree(place, ignore_errors=True)  # a process that was lost may have begun
    builder = Builder()
    for block in parts.blocks:
        found = checked_block(db, block)
        nodes, sources = builder.take_over(found.referred)
        builder.add(found.time, nodes[found.stack], found.weight, sources[found.source], found.end)
    return builder.write(db, place.parent, level)


@dataclass(frozen=True, slots=True)
class _MergedNames:
    """What became of tables of names."""

    rows: int = 0
    old: frozenset[Name] = frozenset()


def _merge_names(segments: Sequence[Segment], folder: Path, level: int, *, every: bool) -> _MergedNames:
    """Make the tables of names one, with those files only that stacks are still in."""
    old = live_names(segments)
    if len(old) < (1 if every else 2):
        return _MergedNames()
    with connect() as db:
        count = done_apart(db, lambda: _write_names(db, segments, old, folder, level))
    return _MergedNames(count, frozenset((one.id, layout.NAMES) for one in old))


def _write_names(
    db: DuckDBPyConnection, segments: Sequence[Segment], old: Sequence[Segment], folder: Path, level: int
) -> int:
    """Write the names of these that blocks need; returns how many there are."""
    blocks = live(segments)
    build_ids = BlockTables(db, blocks).read("modules", "build_id").columns[0].tolist() if blocks else []
    found = read_names(db, name_files(old), build_ids)
    if len(found):
        write_names(db, folder, found, level)
    return len(found)


def expire(folder: StoreFolder, before: int) -> Replaced:
    """Let all hours go that ended before a time, in nanoseconds since 1970."""

    def work(turn: Turn) -> Replaced:
        return _expire(folder, turn, before // layout.HOUR_NS)

    return _in_turn(folder, work)


def _expire(folder: StoreFolder, turn: Turn, first: int) -> Replaced:
    segments = turn.segments
    blocks = live(segments)
    old = [block for block in blocks if (layout.hour_number(block.hour) or 0) < first]
    if not old:
        return Replaced(None, (), {}, (), folder.sweep())
    gone = {block.name for block in old}
    left = {block.name for block in blocks} - gone
    with Staging(folder) as staging:
        write_manifest(staging.path, {}, _replaces(segments, gone | _outdated(segments, left)))
        staging.publish(turn)
    return Replaced(staging.id, tuple(old), {}, (), folder.sweep())


def _replaces(segments: Sequence[Segment], old: AbstractSet[Name]) -> set[Name]:
    """What a new segment replaces: also what those have replaced that have nothing left, so that they can go."""
    replaced = old | replaced_by(segments)
    present = {segment.id for segment in segments}
    found = set(old)
    for segment in segments:
        if segment.parts.keys() <= replaced:
            found |= {name for name in segment.replaces if name[0] in present}
    return found
