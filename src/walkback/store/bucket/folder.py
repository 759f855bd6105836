"""A store in a bucket: segments appear in it by one object that can be created only once.

URL/walkback-store.json                     {"version": 1, "id": ...}: here is a store
URL/segments/<id>.json                      the description of an append: from here on it counts
URL/segments/turn-000000000001.json         that of a compaction or expiry; they are numbered, so that of two that
                                            began with the same segments one fails and begins again
URL/data/<id>/...                           the files of a segment, as in its folder elsewhere
URL/trials/<id>                             a trial whether the service creates objects exclusively

Nothing is ever written twice and nothing is renamed. A list may be late: what it lacks does not count yet. A turn says
which turns exist, so that one that is missing in a list is still found, and which segments have nothing left: these
are dead, and nobody reads their descriptions again. They are deleted a day later, when no list lacks that turn and
nobody reads their files any more.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.locks import locked
from walkback.segments.protocol import parse_description
from walkback.store import layout
from walkback.store.bucket.cache import cache_folder, shrink, used
from walkback.store.bucket.objects import Listed, Objects
from walkback.store.folder import OvertakenError, StoreFolder, Turn
from walkback.store.parts import Name, Segment, parsed_segment, replaced_by
from walkback.store.staging import begun, clean, new_id

_SEGMENTS: Final = "segments"
_DATA: Final = "data"
_TRIALS: Final = "trials"
_SETTLED: Final = timedelta(days=1)
"""How long what is replaced is kept, and what was never finished."""
_LONGEST: Final = _SETTLED.total_seconds() / 2
"""Seconds within which a writer has to come to its end."""
_CACHED: Final = 3600
"""Seconds after which descriptions are read again; what is deleted in between is not taken for alive."""
_MOST_DESCRIBED: Final = 16 << 20
_MOST_MARKED: Final = 1 << 10
_TURN = re.compile(r"turn-([0-9]{12})\.json")


@dataclass(frozen=True, slots=True)
class _Described:
    """What a description says."""

    name: str
    """What it is called."""
    segment: Segment
    number: int
    """That of its turn; 0 for an append."""
    turns: Mapping[str, int]
    """The turns that existed when it was written: the numbers by their segments."""
    dead: frozenset[str]
    """The segments that exist and have nothing left."""

    def description(self, segment: str) -> str:
        """What the description of a dead segment is called."""
        return _turn_name(self.turns[segment]) if segment in self.turns else f"{segment}.json"


class _NumberedTurn(Turn):
    """A turn that can be overtaken."""

    def __init__(self, known: Sequence[_Described], dead: frozenset[str]) -> None:
        """`dead` are the dead segments that still exist."""
        super().__init__([one.segment for one in known])
        self._dead = dead
        newest = _newest(known)
        before = {} if newest is None else newest.turns
        self.turns = {segment: number for segment, number in before.items() if segment in dead}
        self.turns |= {one.segment.id: one.number for one in known if one.number}
        self.number = max(self.turns.values(), default=0) + 1
        self.end = _running() + _LONGEST

    def dead(self, replaces: Iterable[Name]) -> frozenset[str]:
        """The segments that have nothing left when these parts are replaced as well."""
        replaced = replaced_by(self.segments).union(replaces)
        return self._dead | {segment.id for segment in self.segments if segment.parts.keys() <= replaced}


class BucketFolder(StoreFolder):
    """Finds what is in a store in a bucket, and keeps its files here while they are read."""

    is_far = True

    def __init__(self, url: str, *, create: bool = False) -> None:
        """With `create` a store that is not there is made."""
        self._objects = Objects(url)
        self._known: dict[str, _Described] = {}
        """By the names of their descriptions, which never change."""
        self._described = 0.0
        """When it was last listed."""
        self._sizes: dict[str, Mapping[str, int]] = {}
        """The bytes of the files of each segment."""
        self._booted: datetime | None = None
        """When this machine started, by the clock of the service; not known until something was written to that."""
        marker = self._marker()
        if marker is None and create:
            marker = self._make()
        if marker is None:
            raise UnreadableError(f"not a {layout.MARKER.noun}", file=self.name)
        self.path = cache_folder(self.name, str(marker.get("id")))
        self._prepare()
        shrink(self.path)

    @property
    def name(self) -> str:
        """The address."""
        return self._objects.url

    def _marker(self) -> dict[str, Any] | None:
        file = layout.MARKER.name
        contents = self._objects.read_small(file, _MOST_MARKED)
        return None if contents is None else layout.MARKER.parse(contents, self.name, f"{self.name}/{file}")

    def _make(self) -> dict[str, Any] | None:
        if strange := set(self._objects.names()) - {layout.MARKER.name, _SEGMENTS, _DATA, _TRIALS, ""}:
            message = f"not a {layout.MARKER.noun}, and cannot become one: {min(strange)!r} is in it"
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
            written = self._objects.modified(key)
            self._booted = written - timedelta(seconds=_running())
        finally:
            self._objects.delete([key])

    # Reading

    def segments(self, wrong: list[UnreadableError] | None = None) -> list[Segment]:
        """All segments, the oldest first. One that cannot be read raises its error, or adds it to `wrong`."""
        return [one.segment for one in self._describe(self._list(wrong), wrong)]

    def _describe(self, listed: Iterable[str], wrong: list[UnreadableError] | None = None) -> list[_Described]:
        """What the descriptions say, of those that are listed or that the newest turn names, and not dead."""
        known = self._known if _running() - self._described < _CACHED else {}
        names = {name for name in listed if not _turn(name)}
        newest = None
        for name in sorted({*filter(_turn, listed), *filter(_turn, known)}, reverse=True):
            newest = next(iter(self._read_descriptions([name], known, wrong)), None)
            if newest is not None:
                names |= {name, *map(_turn_name, newest.turns.values())}
                names -= set(map(newest.description, newest.dead))
                break
        found = self._read_descriptions(names, known, wrong)
        self._known, self._described = {one.name: one for one in found}, _running()
        return sorted(found, key=lambda one: one.segment.id)

    def _read_descriptions(
        self, names: Iterable[str], known: Mapping[str, _Described], wrong: list[UnreadableError] | None = None
    ) -> list[_Described]:
        """What those say that exist, as far as it is not known."""
        found = [known[name] for name in names if name in known]
        keys = [f"{_SEGMENTS}/{name}" for name in names if name not in known]
        for key, contents in self._objects.read(keys).items():
            try:
                found.append(self._parsed(key.removeprefix(f"{_SEGMENTS}/"), contents))
            except UnreadableError as error:
                if wrong is None:
                    raise
                wrong.append(error)
        return found

    def _list(self, wrong: list[UnreadableError] | None = None) -> dict[str, Listed]:
        """The descriptions that a list has; one that is too large is wrong."""
        listed = self._objects.find(_SEGMENTS)
        for name in [name for name, its in listed.items() if its.size > _MOST_DESCRIBED]:
            file = f"{self.name}/{_SEGMENTS}/{name}"
            error = UnreadableError(f"this is more than {_MOST_DESCRIBED} bytes", file=file)
            if wrong is None:
                raise error
            wrong.append(error)
            del listed[name]
        return listed

    def _parsed(self, name: str, contents: bytes) -> _Described:
        file = f"{self.name}/{_SEGMENTS}/{name}"

        def parse(described: dict[str, Any]) -> _Described:
            number, turn = described["id"], _turn(name)
            turns = {str(segment): int(number) for segment, number in described.get("turns", {}).items()}
            dead = frozenset(map(str, described.get("dead", ())))
            if not layout.is_id(number) or name != (_turn_name(turn) if turn else f"{number}.json"):
                raise ValueError(number)
            if not all(0 < one < turn for one in turns.values()) or not all(map(layout.is_id, (*turns, *dead))):
                raise ValueError(turn)
            self._sizes[number] = {str(path): int(size) for path, size in described["files"].items()}
            segment = parsed_segment(described, self.path / f"{layout.SEGMENT}{number}", number, file, self)
            return _Described(name, segment, turn, turns, dead)

        return parse_description(contents, file, "segment", parse)

    def bring(self, files: Sequence[Path]) -> None:
        """Have these files of the cache in their places."""
        wanted: dict[str, tuple[Path, int]] = {}
        segments = set()
        for file in files:
            segment, relative = self._within(file)
            segments.add(self.path / f"{layout.SEGMENT}{segment}")
            if not (file.exists() and file.stat().st_size == self.size(file)):
                wanted[f"{_DATA}/{segment}/{relative}"] = file, self.size(file)
        if wanted:
            self._objects.download(wanted)
        for path in segments:
            used(path)

    def size(self, file: Path) -> int:
        """The bytes of a file of the cache, whether it is here or not."""
        segment, relative = self._within(file)
        size = self._sizes.get(segment, {}).get(relative)
        if size is None:
            raise UnreadableError(
                "its segment does not name this file", file=f"{self.name}/{_DATA}/{segment}/{relative}"
            )
        return size

    def _within(self, file: Path) -> tuple[str, str]:
        """The id of the segment of a file of the cache, and what the file is called there."""
        segment, *names = file.relative_to(self.path).parts
        return segment.removeprefix(layout.SEGMENT), "/".join(names)

    # Writing

    @contextlib.contextmanager
    def turn(self) -> Iterator[Turn]:
        """Nobody else on this machine compacts or expires; somebody elsewhere may, and is faster or begins again."""
        self.check_writable()
        with locked(self.path / layout.COMPACT_LOCK), self.reading():
            clean(self)
            listed = self._list()
            known = self._describe(listed)
            yield _NumberedTurn(known, self._existing(_newest(known), listed))

    def _existing(self, newest: _Described | None, listed: Iterable[str]) -> frozenset[str]:
        """The dead segments that were not deleted yet; what a list lacks is asked for."""
        names = {} if newest is None else {newest.description(segment): segment for segment in newest.dead}
        missing = self._objects.read(f"{_SEGMENTS}/{name}" for name in names.keys() - set(listed))
        there = (names.keys() & set(listed)) | {key.removeprefix(f"{_SEGMENTS}/") for key in missing}
        return frozenset(names[name] for name in there)

    def publish(self, making: Path, number: str, turn: Turn | None, /) -> None:
        """Let a segment appear whose files are in a folder; one that replaces others is of a turn."""
        self.check_writable()
        end = _running() + _LONGEST if not isinstance(turn, _NumberedTurn) else turn.end
        described = json.loads((making / layout.MANIFEST).read_bytes())
        files = {path.relative_to(making).as_posix(): path for path in sorted(making.rglob("*.parquet"))}
        described |= {"id": number, "files": {name: path.stat().st_size for name, path in files.items()}}
        name = f"{number}.json"
        if isinstance(turn, _NumberedTurn):
            name = _turn_name(turn.number)
            dead = turn.dead(tuple(part) for part in described["replaces"])
            described |= {"turns": turn.turns, "dead": sorted(dead)}
        uploaded = {f"{_DATA}/{number}/{relative}": path for relative, path in files.items()}
        self._objects.upload(uploaded)
        if _running() > end:
            raise UnreadableError("this took so long that what was written may be gone by now", file=self.name)
        try:
            created = self._objects.create(f"{_SEGMENTS}/{name}", json.dumps(described).encode() + b"\n")
        except UnreadableError as error:
            raise UnreadableError(
                f"{error.message}; whether this is in the store is not known", file=self.name
            ) from None
        if not created:
            self._objects.delete(list(uploaded))
            self._describe([name])
            raise OvertakenError

    def sweep(self) -> int:
        """Delete what has been dead for a day, or was left unfinished a day ago; nobody has to be waited for."""
        listed = self._list()
        known = self._describe(listed)
        before = self._now() - _SETTLED
        newest = _newest(known)
        existing = self._existing(newest, listed)
        settled = sorted(name for name, its in listed.items() if _turn(name) and its.modified < before)
        for turn in self._read_descriptions(settled[-1:], self._known):
            for segment in turn.dead & existing:
                self._delete_data(segment)
                self._objects.delete([f"{_SEGMENTS}/{turn.description(segment)}"])
        self._delete_unfinished(existing.union(one.segment.id for one in known), before)
        return 0

    def _now(self) -> datetime:
        """The time by the clock of the service."""
        self.check_writable()
        assert self._booted is not None
        return self._booted + timedelta(seconds=_running())

    def _delete_unfinished(self, known: AbstractSet[str], before: datetime) -> None:
        for number in set(self._objects.names(_DATA)) - known:
            # Its name has the time of its writer, which may be wrong, and saves most questions.
            if layout.is_id(number) and begun(number) < before.timestamp() * 1e9:
                files = self._objects.find(f"{_DATA}/{number}").values()
                if all(one.modified < before for one in files):
                    self._delete_data(number)

    def _delete_data(self, number: str) -> None:
        folder = f"{_DATA}/{number}"
        self._objects.delete([f"{folder}/{name}" for name in self._objects.find(folder)])
        shutil.rmtree(self.path / f"{layout.SEGMENT}{number}", ignore_errors=True)


def _running() -> float:
    """For how many seconds this machine has been running, asleep or not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _newest(known: Iterable[_Described]) -> _Described | None:
    """The last turn."""
    return max((one for one in known if one.number), key=lambda one: one.number, default=None)


def _turn(name: str) -> int:
    """The number of the turn whose description has this name; 0 if it is none's."""
    found = _TURN.fullmatch(name)
    return int(found[1]) if found else 0


def _turn_name(number: int) -> str:
    return f"turn-{number:012}.json"
