"""The folder of a store: which segments and blocks it has, and which of these count.

A segment is a part as `segments.protocol` has them; what it replaces are blocks of others.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, Self

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.locks import locked
from walkback.segments.protocol import read_description, unreadable
from walkback.store import layout

State = tuple[int, int, int]
Name = tuple[str, str]
"""A block: the id of its segment, and its hour; a rollup, with its day or month; or the names of a segment."""


class HasTables(Protocol):
    """A block, or a rollup."""

    @property
    def tables(self) -> Sequence[str]:
        """The names of its tables."""

    def file(self, table: str) -> Path:
        """Where one of its tables is."""


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """What a block has, as its segment says."""

    samples: int
    """The number of samples."""
    stacks: int
    """The number of distinct stacks."""
    nodes: int
    """The number of nodes of their tree."""
    frames: int
    """The number of distinct frames."""
    first: int
    """The time of its first sample, in nanoseconds since 1970."""
    last: int
    """The time of its last sample."""
    weight: int
    """The weight of all samples."""


@dataclass(frozen=True, slots=True)
class Block:
    """The samples of an hour, as one segment has them."""

    path: Path
    segment: str
    hour: str
    counts: BlockCounts

    @property
    def name(self) -> Name:
        """What no other block is called."""
        return self.segment, self.hour

    @property
    def tables(self) -> Sequence[str]:
        """The names of its tables."""
        return layout.TABLES

    def file(self, table: str) -> Path:
        """Where one of its tables is."""
        return self.path / f"{table}.parquet"

    @property
    def size(self) -> int:
        """Bytes of all its tables."""
        return _size(self)


@dataclass(frozen=True, slots=True)
class Rollup:
    """The samples of some blocks, summed up."""

    path: Path
    segment: str
    span: str
    """A day or a month."""
    sums: int
    """How many rows its table of them has."""
    of: frozenset[Name]
    """The blocks."""

    @property
    def name(self) -> Name:
        """What no other rollup is called."""
        return self.segment, self.span

    def file(self, table: str) -> Path:
        """Where one of its tables is."""
        return self.path / f"{table}.parquet"

    @property
    def tables(self) -> Sequence[str]:
        """The names of its tables."""
        return layout.TABLES_OF_SUMS

    @property
    def size(self) -> int:
        """Bytes of all its tables."""
        return _size(self)


@dataclass(frozen=True, slots=True)
class Segment:
    """What one append, compaction or expiry made."""

    path: Path
    id: str
    replaces: frozenset[Name]
    blocks: tuple[Block, ...]
    names: int = 0
    """How many names its table of them has; 0 if it has no such table."""
    rollups: tuple[Rollup, ...] = ()

    @property
    def names_file(self) -> Path:
        """Where its table of names is."""
        return self.path / layout.NAMES_FILE

    @property
    def parts(self) -> dict[Name, Path]:
        """All that another segment can take the place of, and where it is."""
        names = {(self.id, layout.NAMES): self.names_file} if self.names else {}
        rollups = {rollup.name: rollup.path for rollup in self.rollups}
        return {block.name: block.path for block in self.blocks} | rollups | names


def live(segments: Sequence[Segment]) -> list[Block]:
    """The blocks that count, in the order of hours."""
    replaced = replaced_by(segments)
    found = [block for segment in segments for block in segment.blocks if block.name not in replaced]
    return sorted(found, key=lambda block: (block.hour, block.segment))


def live_rollups(segments: Sequence[Segment]) -> list[Rollup]:
    """The rollups that count: all their blocks do."""
    replaced = replaced_by(segments)
    names = {block.name for block in live(segments)}
    rollups = [rollup for segment in segments for rollup in segment.rollups]
    return [rollup for rollup in rollups if rollup.name not in replaced and rollup.of <= names]


def live_names(segments: Sequence[Segment]) -> list[Segment]:
    """The segments whose names count, the oldest first."""
    replaced = replaced_by(segments)
    return [one for one in segments if one.names and (one.id, layout.NAMES) not in replaced]


def replaced_by(segments: Iterable[Segment]) -> frozenset[Name]:
    """The blocks, and tables of names, that count no more."""
    return frozenset[Name]().union(*(segment.replaces for segment in segments))


class StoreFolder:
    """Finds what is in a store, and lets segments appear in it."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        """With `create` a store that is not there is made; its parent must be there."""
        self.path = Path(path)
        self._read: dict[str, tuple[State | None, Segment]] = {}
        if create:
            own = frozenset({layout.LOCK, layout.COMPACT_LOCK, layout.STAGING})
            layout.MARKER.make(self.path, {}, own=own, prepare=self._prepare)
        layout.MARKER.read(self.path)

    @property
    def staging(self) -> Path:
        """Where segments are made; nothing is made or taken away where a link in its place would lead."""
        path = self.path / layout.STAGING
        if path.is_symlink():
            raise UnreadableError("this is a link, and not where segments are made", file=str(path))
        return path

    def _prepare(self) -> None:
        for name in (layout.LOCK, layout.COMPACT_LOCK):
            (self.path / name).touch()
        self.staging.mkdir(exist_ok=True)

    def segments(self, wrong: list[UnreadableError] | None = None) -> list[Segment]:
        """All segments, the oldest first. One that cannot be read raises its error, or adds it to `wrong`.

        Each is read once, and again if its description is another file.
        """
        found = {}
        with os.scandir(self.path) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(layout.SEGMENT)]
        for name in sorted(names):
            number = name.removeprefix(layout.SEGMENT)
            try:
                if not layout.is_id(number):
                    raise UnreadableError("this is not the name of a segment", file=str(self.path / name))
                read = self._segment(self.path / name, number)
                if read is not None:
                    found[number] = read
            except UnreadableError as error:
                if wrong is None:
                    raise
                wrong.append(error)
        self._read = found
        return [segment for _, segment in found.values()]

    def _segment(self, path: Path, number: str) -> tuple[State | None, Segment] | None:
        state = _state(path / layout.MANIFEST)
        before = self._read.get(number)
        if before is not None and before[0] == state is not None:
            return before
        segment = _read_segment(path, number)
        return None if segment is None else (state, segment)


class StoreSnapshot:
    """The blocks of a moment: while this is held none of their files goes away.

    with store.snapshot() as snapshot:
        snapshot.blocks
    """

    def __init__(self, folder: StoreFolder, *, since: int | None = None, until: int | None = None) -> None:
        """Only blocks with samples from `since` until before `until`, in nanoseconds since 1970."""
        with contextlib.ExitStack() as held:
            held.enter_context(locked(folder.path / layout.LOCK, shared=True))
            segments = folder.segments()
            self.blocks: tuple[Block, ...] = tuple(within(live(segments), since, until))
            self.rollups: tuple[Rollup, ...] = tuple(live_rollups(segments))
            self.summed: Summed = summed(self.blocks, self.rollups, since, until)
            """The same blocks, with sums in place of those that have them."""
            self.names: tuple[Path, ...] = tuple(one.names_file for one in live_names(segments))
            """The tables of names, the oldest first."""
            for block in self.blocks:
                if not block.path.is_dir():
                    raise missing("block", block.path)
            for rollup in self.summed.rollups:
                if not rollup.path.is_dir():
                    raise missing("rollup", rollup.path)
            self._held = held.pop_all()

    def close(self) -> None:
        """Let the files go."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def missing(what: str, path: Path) -> UnreadableError:
    """The error for a part of a segment that is not there."""
    return UnreadableError(f"this {what} is missing", file=str(path))


@dataclass(frozen=True, slots=True)
class Summed:
    """Some blocks, and rollups of others."""

    rollups: tuple[Rollup, ...] = ()
    blocks: tuple[Block, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rollups or self.blocks)


def summed(blocks: Sequence[Block], rollups: Iterable[Rollup], since: int | None, until: int | None) -> Summed:
    """The blocks with rollups in place of those whose samples are all from `since` until before `until`."""
    left = {
        block.name
        for block in blocks
        if (since is None or block.counts.first >= since) and (until is None or block.counts.last < until)
    }
    chosen: list[Rollup] = []
    replaced: set[Name] = set()
    for rollup in sorted(rollups, key=lambda one: -len(one.of)):
        if rollup.of <= left:
            chosen.append(rollup)
            left -= rollup.of
            replaced |= rollup.of
    return Summed(tuple(chosen), tuple(block for block in blocks if block.name not in replaced))


def _size(one: HasTables) -> int:
    files = [one.file(table) for table in one.tables]
    try:
        return sum(file.stat().st_size for file in files)
    except OSError as error:
        raise unreadable(error, files[0].parent) from None


def within(blocks: Iterable[Block], since: int | None, until: int | None) -> list[Block]:
    """Those with samples from `since` until before `until`."""
    return [
        block
        for block in blocks
        if (since is None or block.counts.last >= since) and (until is None or block.counts.first < until)
    ]


def _state(file: Path) -> State | None:
    """What is different if it is another file; None if it is none."""
    try:
        now = file.stat()
    except OSError:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns


def _read_segment(path: Path, number: str) -> Segment | None:
    file = path / layout.MANIFEST

    def segment(described: dict[str, Any]) -> Segment:
        if described["version"] != layout.VERSION:
            raise UnreadableError(f"a segment of version {described['version']!r} is not read here", file=str(file))
        replaces = frozenset((_an_id(segment), _a_part(part)) for segment, part in described["replaces"])
        blocks = tuple(
            Block(path / f"{layout.HOUR}{_an_hour(hour)}", number, hour, _counts(counts))
            for hour, counts in described["blocks"].items()
        )
        rollups = tuple(
            Rollup(
                path / layout.SUMS / _a_span(span),
                number,
                span,
                _a_count("sums", rollup["sums"]),
                frozenset((_an_id(segment), _an_hour(hour)) for segment, hour in rollup["of"]),
            )
            for span, rollup in described.get("sums", {}).items()
        )
        return Segment(path, number, replaces, blocks, _a_count("names", described.get("names", 0)), rollups)

    return read_description(file, "segment", segment)


def _an_id(text: object) -> str:
    if not layout.is_id(text):
        raise ValueError(text)
    return str(text)


def _a_part(text: object) -> str:
    if text == layout.NAMES:
        return layout.NAMES
    return _a_span(text) if layout.is_span(text) else _an_hour(text)


def _a_span(text: object) -> str:
    if not layout.is_span(text):
        raise ValueError(text)
    return str(text)


def _an_hour(text: object) -> str:
    if layout.hour_number(text) is None:
        raise ValueError(text)
    return str(text)


def _counts(described: dict[str, object]) -> BlockCounts:
    names = [field.name for field in fields(BlockCounts)]
    # Many weights that a column holds may be more together.
    return BlockCounts(*(_a_count(name, described[name], 128 if name == "weight" else 63) for name in names))


def _a_count(name: str, value: object, bits: int = 63) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(name)
    if not 0 <= value < 2**bits:
        raise ValueError(name)
    return value
