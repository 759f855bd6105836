"""The folder of a store, and what is in it at a moment."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from walkback.base.errors import UnreadableError
from walkback.base.locks import locked
from walkback.segments.protocol import publish
from walkback.store import layout
from walkback.store.parts import (
    Block,
    Rollup,
    Segment,
    Source,
    Summed,
    live,
    live_names,
    live_rollups,
    name_files,
    read_segment,
    summed,
    within,
)
from walkback.store.staging import clean
from walkback.store.sweeping import sweep

State = tuple[int, int, int]


class Turn:
    """What a compaction or expiry begins with, and what it may take the place of."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = segments
        """All, the oldest first."""


class OvertakenError(Exception):
    """Somebody else compacted or expired since a turn began; nothing was done."""


class StoreFolder:
    """Finds what is in a store, and lets segments appear in it."""

    is_far = False
    """Whether it takes long to read what is in it: then an append reads nothing."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        """With `create` a store that is not there is made; its parent must be there."""
        self.path = Path(path)
        self._read: dict[str, tuple[State | None, Segment]] = {}
        if create:
            own = frozenset({layout.LOCK, layout.COMPACT_LOCK, layout.STAGING})
            layout.MARKER.make(self.path, {}, own=own, prepare=self._prepare)
        layout.MARKER.read(self.path)

    @property
    def name(self) -> str:
        """What messages call it."""
        return os.fsdecode(self.path)

    def check_writable(self) -> None:
        """Raise an error if nothing can safely be added, before any work is done for it."""

    def reading(self) -> contextlib.AbstractContextManager[object]:
        """While this is held, no file of it goes away."""
        return locked(self.path / layout.LOCK, shared=True)

    @contextlib.contextmanager
    def turn(self) -> Iterator[Turn]:
        """While this is held, nobody else compacts or expires."""
        with locked(self.path / layout.COMPACT_LOCK):
            clean(self)
            yield Turn(self.segments())

    def publish(self, making: Path, number: str, _turn: Turn | None, /) -> None:
        """Let a segment appear whose files are in a folder; one that replaces others is of a turn."""
        publish(making, self.path / f"{layout.SEGMENT}{number}")

    def sweep(self) -> int:
        """Take away what is replaced if nobody reads; returns how many blocks have to wait."""
        return sweep(self)

    def source(self, _sizes: Mapping[Path, int], /) -> Source | None:
        """Where files of these places and sizes come from; None where they are in the folder."""
        return None

    def missing(self, _segments: Sequence[Segment], /) -> list[str]:
        """Files of these segments that are known to be missing without reading them."""
        return []

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
        segment = read_segment(path, number)
        return None if segment is None else (state, segment)


class StoreSnapshot:
    """The blocks of a moment: while this is held none of their files goes away.

    with store.snapshot() as snapshot:
        snapshot.blocks
    """

    def __init__(self, folder: StoreFolder, *, since: int | None = None, until: int | None = None) -> None:
        """Only blocks with samples from `since` until before `until`, in nanoseconds since 1970."""
        self.folder = folder
        with contextlib.ExitStack() as held:
            held.enter_context(folder.reading())
            segments = folder.segments()
            self.blocks: tuple[Block, ...] = tuple(within(live(segments), since, until))
            self.rollups: tuple[Rollup, ...] = tuple(live_rollups(segments))
            self.summed: Summed = summed(self.blocks, self.rollups, since, until)
            """The same blocks, with sums in place of those that have them."""
            for part in (*self.blocks, *self.summed.rollups):
                part.check_there()
            self._named = live_names(segments)
            self._held = held.pop_all()

    @cached_property
    def names(self) -> tuple[Path, ...]:
        """The tables of names, the oldest first."""
        return tuple(name_files(self._named))

    def close(self) -> None:
        """Let the files go."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _state(file: Path) -> State | None:
    """What is different if it is another file; None if it is none."""
    try:
        now = file.stat()
    except OSError:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns
