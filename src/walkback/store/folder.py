"""The folder of a store: which segments and blocks it has, and which of these count.

A segment appears by the renaming of a finished folder, so it is there as a whole or not at all. It may replace blocks
of others, which from that moment on do not count and are taken away when nobody reads. So there is no state between
"before" and "after", wherever a writer is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from walkback.database import is_text, plain_path
from walkback.errors import UnreadableError
from walkback.locks import locked
from walkback.replace import replace_file, sync_folder
from walkback.store import layout

_COUNTS = ("samples", "stacks", "nodes", "frames", "first", "last", "weight")

Name = tuple[str, str]
"""A block: the id of its segment, and its hour."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a block has, as its segment tells."""

    samples: int
    stacks: int
    """Distinct ones."""
    nodes: int
    frames: int
    first: int
    """The time of its first sample, in nanoseconds since 1970."""
    last: int
    weight: int
    """The sum of all."""


@dataclass(frozen=True, slots=True)
class Block:
    """The samples of an hour, as one segment has them."""

    path: Path
    segment: str
    hour: str
    counts: Counts

    @property
    def name(self) -> Name:
        """What tells it from all others."""
        return self.segment, self.hour

    def file(self, table: str) -> Path:
        """Where one of its tables is."""
        return self.path / f"{table}.parquet"

    @property
    def size(self) -> int:
        """Bytes of all its tables."""
        try:
            return sum(self.file(table).stat().st_size for table in layout.TABLES)
        except OSError as error:
            raise _unreadable(error, self.path) from None


@dataclass(frozen=True, slots=True)
class Segment:
    """What one append, compaction or expiry made."""

    path: Path
    id: str
    replaces: frozenset[Name]
    blocks: tuple[Block, ...]


def live(segments: Sequence[Segment]) -> list[Block]:
    """The blocks that count, in the order of hours."""
    replaced = frozenset[Name]().union(*(segment.replaces for segment in segments))
    found = [block for segment in segments for block in segment.blocks if block.name not in replaced]
    return sorted(found, key=lambda block: (block.hour, block.segment))


class Folder:
    """Finds what is in a store, and lets segments appear in it."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        """With `create` a store that is not there is made; its parent must be there."""
        self.path = Path(path)
        if not is_text(plain_path(self.path)):
            raise UnreadableError("a store is not in a folder whose name is no UTF-8", file=str(path))
        if create:
            self._create()
        try:
            marker = json.loads((self.path / layout.MARKER).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise UnreadableError("this is no store", file=str(path)) from None
        except (ValueError, RecursionError) as error:
            raise UnreadableError(f"this is no JSON: {error}", file=str(self.path / layout.MARKER)) from None
        version = marker.get("version") if isinstance(marker, dict) else None
        if version != layout.VERSION:
            message = f"a store of version {version!r} is not read here, but of version {layout.VERSION}"
            raise UnreadableError(message, file=str(path))

    @property
    def staging(self) -> Path:
        """Where segments are made."""
        return self.path / layout.STAGING

    def _create(self) -> None:
        """Make what is missing; several may do so at once."""
        with contextlib.suppress(FileExistsError):
            self.path.mkdir()
        own = {layout.LOCK, layout.COMPACT_LOCK, layout.STAGING}
        names = {path.name for path in self.path.iterdir()}
        if layout.MARKER in names:
            return
        if strange := sorted(name for name in names - own if not name.startswith(".walkback-")):
            message = f"this is no store, and is not made one because {strange[0]!r} is in it"
            raise UnreadableError(message, file=str(self.path))
        for name in (layout.LOCK, layout.COMPACT_LOCK):
            (self.path / name).touch()
        self.staging.mkdir(exist_ok=True)
        replace_file(self.path / layout.MARKER, [json.dumps({"version": layout.VERSION}).encode() + b"\n"])
        sync_folder(self.path.parent)

    def segments(self, wrong: list[UnreadableError] | None = None) -> list[Segment]:
        """All that are there, the oldest first. What cannot be read is raised, or put into `wrong` and left out."""
        found = []
        with os.scandir(self.path) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(layout.SEGMENT)]
        for name in sorted(names):
            number = name.removeprefix(layout.SEGMENT)
            try:
                if not layout.is_id(number):
                    raise UnreadableError("this is not the name of a segment", file=str(self.path / name))
                with contextlib.suppress(FileNotFoundError):
                    found.append(_read_segment(self.path / name, number))
            except UnreadableError as error:
                if wrong is None:
                    raise
                wrong.append(error)
        return found

    def locked(self, name: str, *, shared: bool = False, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold one of the locks; gives False where somebody else has it and waiting was not wanted."""
        return locked(self.path / name, shared=shared, wait=wait)


class Snapshot:
    """The blocks of a moment: while this is held none of their files goes away.

    with store.snapshot() as snapshot:
        snapshot.blocks
    """

    def __init__(self, folder: Folder, *, since: int | None = None, until: int | None = None) -> None:
        """Only blocks with samples from `since` until before `until`, in nanoseconds since 1970."""
        self._held = contextlib.ExitStack()
        try:
            self._held.enter_context(folder.locked(layout.LOCK, shared=True))
            found = live(folder.segments())
        except BaseException:
            self._held.close()
            raise
        self.blocks: tuple[Block, ...] = tuple(within(found, since, until))
        for block in self.blocks:
            if not block.path.is_dir():
                self._held.close()
                raise missing(block)

    def close(self) -> None:
        """Let the files go."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def missing(block: Block) -> UnreadableError:
    """What is to be said of a block that is told of and not there."""
    return UnreadableError("this block is missing", file=str(block.path))


def within(blocks: Iterable[Block], since: int | None, until: int | None) -> list[Block]:
    """Those with samples from `since` until before `until`."""
    return [
        block
        for block in blocks
        if (since is None or block.counts.last >= since) and (until is None or block.counts.first < until)
    ]


def _read_segment(path: Path, number: str) -> Segment:
    file = path / layout.MANIFEST
    try:
        told = json.loads(file.read_bytes())
        if told["version"] != layout.VERSION:
            message = f"a segment of version {told['version']!r} is not read here"
            raise UnreadableError(message, file=str(file))
        replaces = frozenset((_an_id(segment), _an_hour(hour)) for segment, hour in told["replaces"])
        blocks = tuple(
            Block(path / f"{layout.HOUR}{_an_hour(hour)}", number, hour, _counts(counts))
            for hour, counts in told["blocks"].items()
        )
    except FileNotFoundError:
        if path.is_dir():
            raise UnreadableError("this segment does not say what it has", file=str(file)) from None
        raise
    except OSError as error:
        raise _unreadable(error, file) from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"this does not describe a segment: {error!r}", file=str(file)) from None
    return Segment(path, number, replaces, blocks)


def _unreadable(error: OSError, path: Path) -> UnreadableError:
    return UnreadableError(error.strerror or str(error), file=str(error.filename or path))


def _an_id(text: object) -> str:
    if not layout.is_id(text):
        raise ValueError(text)
    return str(text)


def _an_hour(text: object) -> str:
    if layout.hour_number(text) is None:
        raise ValueError(text)
    return str(text)


def _counts(told: dict[str, object]) -> Counts:
    values = []
    for name in _COUNTS:
        value = told[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(name)
        # Many weights that a column holds may be more together.
        if not 0 <= value < 2 ** (128 if name == "weight" else 63):
            raise ValueError(name)
        values.append(value)
    return Counts(*values)
