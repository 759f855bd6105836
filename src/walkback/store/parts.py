"""What a store is made of: segments, their blocks and rollups, and which of these count.

A segment is a part as `segments.protocol` has them; what it replaces are blocks of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.segments.protocol import read_description, unreadable
from walkback.store import layout

Name = tuple[str, str]
"""A block: the id of its segment, and its hour; a rollup, with its day or month; or the names of a segment."""


class Fetcher(Protocol):
    """Brings files of a store that are not in its folder until somebody reads them."""

    def bring(self, files: Mapping[Path, int]) -> None:
        """Have files of these sizes in their places."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the files of a segment come from."""

    fetcher: Fetcher
    sizes: Mapping[Path, int]
    """The bytes of each, by its place."""

    def size(self, file: Path) -> int:
        """The bytes of a file, which is here or not."""
        if file not in self.sizes:
            raise UnreadableError("its segment does not name this file", file=str(file))
        return self.sizes[file]


def _bring(wanted: Iterable[tuple[Source | None, Path]]) -> list[Path]:
    """Have files in their places; those that are not here yet come together."""
    places = []
    missing: dict[int, tuple[Fetcher, dict[Path, int]]] = {}
    for source, file in wanted:
        places.append(file)
        if source is not None:
            missing.setdefault(id(source.fetcher), (source.fetcher, {}))[1][file] = source.size(file)
    for fetcher, files in missing.values():
        fetcher.bring(files)
    return places


class HasTables:
    """A block, or a rollup."""

    __slots__ = ()
    path: Path
    source: Source | None

    @property
    def tables(self) -> Sequence[str]:
        """The names of its tables."""
        raise NotImplementedError

    @property
    def rows(self) -> int:
        """The number of rows of the table of samples or sums."""
        raise NotImplementedError

    @property
    def noun(self) -> str:
        """What it is called."""
        return type(self).__name__.lower()

    def place(self, table: str) -> Path:
        """Where one of its tables is, once it is here."""
        return self.path / f"{table}.parquet"

    def file(self, table: str) -> Path:
        """Where one of its tables is."""
        return brought([self], table)[0]

    def check_there(self) -> None:
        """Raise an error if its folder is missing; a table that its source does not have is missing when it is read."""
        if self.source is None and not self.path.is_dir():
            raise missing(self.noun, self.path)

    @property
    def far_files(self) -> dict[Path, int]:
        """The sizes of its files, unless these are in the folder anyway."""
        if self.source is None:
            return {}
        return {file: self.source.size(file) for file in map(self.place, self.tables)}

    @property
    def size(self) -> int:
        """Bytes of all its tables."""
        files = [self.place(table) for table in self.tables]
        if self.source is not None:
            return sum(map(self.source.size, files))
        try:
            return sum(file.stat().st_size for file in files)
        except OSError as error:
            raise unreadable(error, self.path) from None


def brought(parts: Sequence[HasTables], table: str) -> list[Path]:
    """Where a table of each of these is."""
    return _bring((part.source, part.place(table)) for part in parts)


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
class Block(HasTables):
    """The samples of an hour, as one segment has them."""

    path: Path
    segment: str
    hour: str
    counts: BlockCounts
    source: Source | None = None

    @property
    def name(self) -> Name:
        """What no other block is called."""
        return self.segment, self.hour

    @property
    def rows(self) -> int:
        """The number of samples."""
        return self.counts.samples

    @property
    def tables(self) -> Sequence[str]:
        """The names of its tables."""
        return layout.TABLES


@dataclass(frozen=True, slots=True)
class Rollup(HasTables):
    """The samples of some blocks, summed up."""

    path: Path
    segment: str
    span: str
    """A day or a month."""
    sums: int
    """How many rows its table of them has."""
    of: frozenset[Name]
    """The blocks."""
    source: Source | None = None

    @property
    def name(self) -> Name:
        """What no other rollup is called."""
        return self.segment, self.span

    @property
    def rows(self) -> int:
        """The number of sums."""
        return self.sums

    @property
    def tables(self) -> Sequence[str]:
        """The names of its tables."""
        return layout.TABLES_OF_SUMS


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
    source: Source | None = None

    @property
    def names_file(self) -> Path:
        """Where its table of names is."""
        return name_files([self])[0]

    @property
    def parts(self) -> dict[Name, Path]:
        """All that another segment can take the place of, and where it is."""
        names = {(self.id, layout.NAMES): self.path / layout.NAMES_FILE} if self.names else {}
        rollups = {rollup.name: rollup.path for rollup in self.rollups}
        return {block.name: block.path for block in self.blocks} | rollups | names


def name_files(segments: Sequence[Segment]) -> list[Path]:
    """Where the tables of names of these are."""
    return _bring((segment.source, segment.path / layout.NAMES_FILE) for segment in segments)


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


def missing(what: str, path: Path) -> UnreadableError:
    """The error for a part of a segment that is not there."""
    return UnreadableError(f"this {what} is missing", file=str(path))


@dataclass(frozen=True, slots=True)
class Summed:
    """Some blocks, and rollups of others."""

    rollups: tuple[Rollup, ...] = ()
    blocks: tuple[Block, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.all)

    @property
    def all(self) -> tuple[Rollup | Block, ...]:
        """Both."""
        return (*self.rollups, *self.blocks)


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


def within(blocks: Iterable[Block], since: int | None, until: int | None) -> list[Block]:
    """Those with samples from `since` until before `until`."""
    return [
        block
        for block in blocks
        if (since is None or block.counts.last >= since) and (until is None or block.counts.first < until)
    ]


def read_segment(path: Path, number: str) -> Segment | None:
    """What the description in a folder says of a segment; None if it is gone by now."""
    file = path / layout.MANIFEST
    return read_description(file, "segment", lambda described: parsed_segment(described, path, number, str(file)))


def parsed_segment(
    described: dict[str, Any], path: Path, number: str, file: str, source: Source | None = None
) -> Segment:
    """What a description says of a segment; what is wrong in it raises whatever error comes of that."""
    if described["version"] != layout.VERSION:
        raise UnreadableError(f"a segment of version {described['version']!r} is not read here", file=file)
    replaces = frozenset((_an_id(segment), _a_part(part)) for segment, part in described["replaces"])
    blocks = tuple(
        Block(path / f"{layout.HOUR}{_an_hour(hour)}", number, hour, _counts(counts), source)
        for hour, counts in described["blocks"].items()
    )
    rollups = tuple(
        Rollup(
            path / layout.SUMS / _a_span(span),
            number,
            span,
            _a_count("sums", rollup["sums"]),
            _blocks_of(rollup["of"]),
            source,
        )
        for span, rollup in described.get("sums", {}).items()
    )
    return Segment(path, number, replaces, blocks, _a_count("names", described.get("names", 0)), rollups, source)


def _blocks_of(names: Iterable[tuple[object, object]]) -> frozenset[Name]:
    """The blocks of a rollup; none without any was ever written."""
    found = frozenset((_an_id(segment), _an_hour(hour)) for segment, hour in names)
    if not found:
        raise ValueError(names)
    return found


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
