"""A store in a bucket: segments appear in it by one object that can be created only once.

URL/walkback-store.json                     {"version": 1, "id": ...}: here is a store
URL/segments/<id>.json                      the description of an append: from here on it counts
URL/segments/turn-000000000001.json         that of a compaction or expiry; they are numbered, so that of two that
                                            began with the same segments one fails and begins again
URL/data/<id>/...                           the files of a segment, as in its folder elsewhere
URL/trials/<id>                             a trial whether the service creates objects exclusively

Nothing is ever written twice and nothing is renamed. A list may be late: an append that it lacks does not count yet. A
turn names what must not be overlooked, so that it is read even if a list lacks it: the turns that exist, and appends
that were replaced in part. It also names the segments that have nothing left: these are dead, and nobody reads
their descriptions again. They are deleted a day later, when no list lacks that turn and nobody reads their files.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from walkback.base.errors import UnreadableError
from walkback.base.locks import locked
from walkback.store import layout
from walkback.store.bucket.cache import cache_folder, shrink
from walkback.store.bucket.descriptions import (
    LARGEST,
    LAST_TURN,
    Described,
    encoded,
    is_name,
    newest_of,
    parsed,
    said_by_turn,
    turn_name,
    turn_number,
)
from walkback.store.bucket.objects import Listed, Objects
from walkback.store.folder import OvertakenError, StoreFolder, Turn
from walkback.store.parts import Segment, Source
from walkback.store.staging import begun, clean, new_id

_SEGMENTS: Final = "segments"
_DATA: Final = "data"
_TRIALS: Final = "trials"
_SETTLED: Final = timedelta(days=1)
"""How long what is replaced is kept, and what was never finished."""
_LONGEST: Final = _SETTLED.total_seconds() / 2
"""Seconds within which a writer has to come to its end."""
_HOUR: Final = 3600
"""Seconds after which descriptions are read again, so that what is deleted in between is not taken for alive."""
_MOST_MARKED: Final = 1 << 10


class _View:
    """What a store has at a moment."""

    def __init__(self, listed: Mapping[str, Listed], known: Sequence[Described], dead: frozenset[str]) -> None:
        self.listed = listed
        self.known = known
        """What is not dead."""
        self.dead = dead
        """The dead segments that were not deleted yet."""
        self.segments = [one.segment for one in known]
        newest = newest_of(known)
        before = {} if newest is None else newest.turns
        self.turns = {segment: number for segment, number in before.items() if segment in dead}
        self.turns |= {one.segment.id: one.turn for one in known if one.turn}


class _NumberedTurn(Turn):
    """A turn that can be overtaken."""

    def __init__(self, view: _View) -> None:
        super().__init__(view.segments)
        self.view = view
        self.number = max(view.turns.values(), default=0) + 1
        self.end = _running() + _LONGEST
        if self.number > LAST_TURN:
            raise UnreadableError("there is no turn after the last")

    def says(self, replaces: Iterable[Sequence[str]]) -> dict[str, Any]:
        """What its description has beside that of any segment."""
        parts = ((segment, part) for segment, part in replaces)
        return said_by_turn(self.segments, self.view.turns, self.view.dead, parts)


class BucketFolder(StoreFolder):
    """Finds what is in a store in a bucket, and keeps its files here while they are read."""

    is_far = True

    def __init__(self, url: str, *, create: bool = False) -> None:
        """With `create` a store that is not there is made."""
        self._objects = Objects(url)
        self._known: Mapping[str, Described] = {}
        """By their names; they never change."""
        self._described = self._shrunk = 0.0
        """When they were read, and when the cache was made smaller."""
        self._booted: datetime | None = None
        """When this machine started, by the clock of the service; not known until something was written to that."""
        marker = self._marker()
        if marker is None and create:
            marker = self._make()
        if marker is None:
            raise UnreadableError(f"not a {layout.MARKER.noun}", file=self.name)
        self.path = cache_folder(self.name, str(marker.get("id")))
        self._prepare()

    @property
    def name(self) -> str:
        """The address."""
        return self._objects.url

    def _marker(self) -> dict[str, Any] | None:
        file = layout.MARKER.name
        contents = self._objects.read_small(file, _MOST_MARKED)
        return None if contents is None else layout.MARKER.parse(contents, self.name, f"{self.name}/{file}")

    def _make(self) -> dict[str, Any] | None:
        strange = [name for name in self._objects.names() if name not in {layout.MARKER.name, _TRIALS, ""}]
        if strange and self._marker() is None:
            message = f"not a {layout.MARKER.noun}, and cannot become one: {strange[0]!r} is in it"
            raise UnreadableError(message, file=self.name)
        self.check_writable()
        self._objects.create(layout.MARKER.name, layout.MARKER.contents({"id": new_id()}))
        return self._marker()

    def check_writable(self) -> None:
        """Try whether the service creates an object exclusively; without that two writers could undo each other's."""
        if self._booted is not None:
            return
        key = f"{_TRIALS}/{new_id()}"
        try:
            first, second = (self._objects.create(key, text) for text in (b"first", b"second"))
            if not first or second:
                raise UnreadableError("this service does not refuse to create an object that exists", file=self.name)
            self._booted = self._objects.modified(key) - timedelta(seconds=_running())
        finally:
            # Who may not delete can append; `compact` deletes what stays.
            with contextlib.suppress(UnreadableError):
                self._objects.delete([key])

    # Reading

    def reading(self) -> contextlib.AbstractContextManager[object]:
        """While this is held, no file goes away that was brought here."""
        if _running() - self._shrunk > _HOUR:
            self._shrunk = _running()
            shrink(self.path)
        return super().reading()

    def segments(self, wrong: list[UnreadableError] | None = None) -> list[Segment]:
        """All segments, the oldest first. One that cannot be read raises its error, or adds it to `wrong`."""
        return [one.segment for one in self._describe(self._list(wrong), wrong)]

    def source(self, sizes: Mapping[Path, int], /) -> Source:
        """The bucket, for files of these places in the cache, and sizes."""
        return Source(self, sizes)

    def missing(self, segments: Sequence[Segment], /) -> list[str]:
        """The files of these segments that do not exist, or not in the sizes that were written."""
        listed = self._objects.find(_DATA)
        files = [file for one in segments if one.source is not None for file in one.source.sizes.items()]
        keys = [(self._key(place), size) for place, size in files]
        return [f"{self.name}/{_DATA}/{key}" for key, size in keys if key not in listed or listed[key].size != size]

    def _list(self, wrong: list[UnreadableError] | None = None) -> dict[str, Listed]:
        """The descriptions that a list has."""
        found = {}
        for name, its in self._objects.find(_SEGMENTS).items():
            problem = None if is_name(name) else "this is not the name of a segment"
            if its.size > LARGEST:
                problem = f"this is more than {LARGEST} bytes, and was not written by walkback"
            if problem is None:
                found[name] = its
                continue
            error = UnreadableError(problem, file=self._description(name))
            if wrong is None:
                raise error
            wrong.append(error)
        return found

    def _describe(self, listed: Iterable[str], wrong: list[UnreadableError] | None = None) -> list[Described]:
        """What the descriptions say that are listed and those that must exist, but for those of the dead."""
        known = dict(self._known) if _running() - self._described < _HOUR else {}
        names = {name for name in listed if not turn_number(name)}
        for turn in sorted({*filter(turn_number, listed), *filter(turn_number, known)}, reverse=True):
            if self._read_descriptions([turn], known, wrong):
                names |= known[turn].alive
                names -= set(map(known[turn].description, known[turn].dead))
                self._miss(known[turn].alive - self._read_descriptions(names, known, wrong), wrong)
                break
        else:
            self._read_descriptions(names, known, wrong)
        found = [known[name] for name in names if name in known]
        self._known, self._described = {one.name: one for one in found}, _running()
        return sorted(found, key=lambda one: one.segment.id)

    def _miss(self, names: Iterable[str], wrong: list[UnreadableError] | None) -> None:
        """Raise an error for those descriptions that must exist and could not be read, or add it to `wrong`."""
        for file in sorted(map(self._description, names)):
            error = UnreadableError("this segment is missing", file=file)
            if wrong is None:
                raise error
            if file not in {one.file for one in wrong}:
                wrong.append(error)

    def _read_descriptions(
        self, names: Iterable[str], known: dict[str, Described], wrong: list[UnreadableError] | None
    ) -> set[str]:
        """Know what these say; gives those that exist."""
        keys = {f"{_SEGMENTS}/{name}": name for name in names if name not in known}
        for key, contents in self._objects.read(keys).items():
            name = keys[key]
            try:
                known[name] = parsed(contents, name, self._description(name), self.path, self)
            except UnreadableError as error:
                if wrong is None:
                    raise
                wrong.append(error)
        return {name for name in names if name in known}

    def _description(self, name: str) -> str:
        return f"{self.name}/{_SEGMENTS}/{name}"

    def bring(self, files: Mapping[Path, int]) -> None:
        """Have files of the cache in their places."""
        missing = {
            f"{_DATA}/{self._key(file)}": (file, size)
            for file, size in files.items()
            if not (file.exists() and file.stat().st_size == size)
        }
        if missing:
            self._objects.download(missing)
        for folder in {self.path / file.relative_to(self.path).parts[0] for file in files}:
            os.utime(folder)

    def _key(self, file: Path) -> str:
        """What a file of the cache is called below `data`."""
        return file.relative_to(self.path).as_posix().removeprefix(layout.SEGMENT)

    # Writing

    @contextlib.contextmanager
    def turn(self) -> Iterator[Turn]:
        """Nobody else on this machine compacts or expires; somebody elsewhere may, and is faster or begins again."""
        self.check_writable()
        with self.reading(), locked(self.path / layout.COMPACT_LOCK):
            clean(self)
            yield _NumberedTurn(self._view())

    def _view(self) -> _View:
        listed = self._list()
        known = self._describe(listed)
        newest = newest_of(known)
        names = {} if newest is None else {newest.description(segment): segment for segment in newest.dead}
        # What a list lacks is asked for: it may be late.
        lacking = self._objects.read(f"{_SEGMENTS}/{name}" for name in names.keys() - listed.keys())
        there = (names.keys() & listed.keys()) | {key.removeprefix(f"{_SEGMENTS}/") for key in lacking}
        return _View(listed, known, frozenset(names[name] for name in there))

    def publish(self, making: Path, number: str, turn: Turn | None, /) -> None:
        """Let a segment appear whose files are in a folder; one that replaces others is of a turn."""
        self.check_writable()
        described = json.loads((making / layout.MANIFEST).read_bytes())
        name, end = f"{number}.json", _running() + _LONGEST
        if isinstance(turn, _NumberedTurn):
            name, end = turn_name(turn.number), turn.end
            described |= turn.says(described["replaces"])
        files = {path.relative_to(making).as_posix(): path for path in sorted(making.rglob("*.parquet"))}
        contents = encoded(described, number, {relative: path.stat().st_size for relative, path in files.items()})
        uploaded = {f"{_DATA}/{number}/{relative}": path for relative, path in files.items()}
        self._objects.upload(uploaded)
        if _running() > end:
            raise UnreadableError("this took so long that what was written may be gone by now", file=self.name)
        try:
            created = self._objects.create(f"{_SEGMENTS}/{name}", contents)
        except UnreadableError as error:
            message = f"{error.message}; whether this is in the store is not known"
            raise UnreadableError(message, file=self.name) from None
        if created:
            return
        if turn is None:
            raise UnreadableError("another segment has this name", file=self._description(name))
        with contextlib.suppress(UnreadableError):
            self._objects.delete(list(uploaded))
        self._describe([name])
        raise OvertakenError

    def sweep(self) -> int:
        """Delete what has been dead for a day, or was left unfinished a day ago; nobody has to be waited for."""
        view = self._view()
        before = self._now() - _SETTLED
        settled = [name for name, its in view.listed.items() if turn_number(name) and its.modified < before]
        known: dict[str, Described] = {}
        for name in self._read_descriptions([max(settled)] if settled else [], known, None):
            for segment in known[name].dead & view.dead:
                self._delete_data(segment, self._objects.find(f"{_DATA}/{segment}"))
                self._objects.delete([f"{_SEGMENTS}/{known[name].description(segment)}"])
        self._delete_unfinished(view.dead.union(segment.id for segment in view.segments), before)
        return 0

    def _now(self) -> datetime:
        """The time by the clock of the service."""
        self.check_writable()
        assert self._booted is not None
        return self._booted + timedelta(seconds=_running())

    def _delete_unfinished(self, described: AbstractSet[str], before: datetime) -> None:
        """Delete what killed writers left."""
        for number in set(self._objects.names(_DATA)) - described:
            # Its name has the time of its writer, so most folders need not be listed; that clock may be wrong.
            if layout.is_id(number) and begun(number) < before.timestamp() * 1e9:
                files = self._objects.find(f"{_DATA}/{number}")
                if all(its.modified < before for its in files.values()):
                    self._delete_data(number, files)
        trials = self._objects.find(_TRIALS)
        self._objects.delete([f"{_TRIALS}/{name}" for name, its in trials.items() if its.modified < before])

    def _delete_data(self, segment: str, files: Iterable[str]) -> None:
        self._objects.delete([f"{_DATA}/{segment}/{name}" for name in files])
        shutil.rmtree(self.path / f"{layout.SEGMENT}{segment}", ignore_errors=True)


def _running() -> float:
    """For how many seconds this machine has been running, asleep or not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
