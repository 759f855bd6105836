"""What a store knows of names: it is not written twice, and what is missing may be looked up again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from walkback.base.arrays import I64, U64
from walkback.base.dataclass import dataclass
from walkback.segments.database import connect
from walkback.stacks.profile import NamedFrames
from walkback.store.builder import write_manifest
from walkback.store.folder import StoreFolder, StoreSnapshot
from walkback.store.names import Calls, KeptNames, names_to_ends, read_names, write_names
from walkback.store.naming import Naming, module_text
from walkback.store.reading import BlockTables
from walkback.store.staging import Staging
from walkback.store.sums import StoredFrames, frames_of
from walkback.store.tables import QUICK


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file with a build ID, and how much of its code that was met has names."""

    build_id: str
    """The build ID, in hexadecimal."""
    path: str | None
    """The path."""
    frames: int
    """The number of its frames that were met."""
    named: int
    """The number of them in functions with names."""


@dataclass(frozen=True, slots=True)
class NamesUpdate:
    """What an update found."""

    segment: str | None
    """The new segment; None if nothing is new."""
    rows: int
    """The number of functions and places with inlined calls that are new."""


class KnownNames:
    """What the tables of a store say of some files, kept from one append to the next: a table never changes."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int, bool], tuple[int, Calls]] = {}
        self._build_ids: set[str] = set()
        self.tables: frozenset[Path] = frozenset()
        """Those that were read."""

    def read(self, snapshot: StoreSnapshot, build_ids: Iterable[str]) -> None:
        """Know what the store says of the files with these build IDs, and of those that were asked for before."""
        if not self.tables <= frozenset(snapshot.names):
            self.forget()  # A compaction may have dropped what a table said.
        old = [table for table in snapshot.names if table in self.tables]
        added = [table for table in snapshot.names if table not in self.tables]
        new = set(build_ids) - self._build_ids
        wanted = self._build_ids | new
        if (old and new) or (added and wanted):
            with connect() as db:
                self.add(read_names(db, old, new))
                self.add(read_names(db, added, wanted))
        self._build_ids = wanted
        self.tables = frozenset(snapshot.names)

    def forget(self) -> None:
        """Know nothing."""
        self._rows.clear()
        self._build_ids.clear()
        self.tables = frozenset()

    def add(self, names: KeptNames, table: Path | None = None) -> None:
        """Know these as well, which are in a table of their own now."""
        for key, reach, calls in _rows(names):
            before = self._rows.get(key, (reach, calls))
            self._rows[key] = max(reach, before[0]), calls or before[1]
        if table is not None:
            self.tables |= {table}

    def beyond(self, names: KeptNames) -> KeptNames:
        """Those of these names that are new, or say more."""
        found = []
        for place, (key, reach, calls) in enumerate(_rows(names)):
            before = self._rows.get(key)
            if before is None or reach > before[0] or (calls and calls != before[1]):
                found.append(place)
        places = np.array(found, np.int64)
        kept = [names.calls[place] for place in found]
        return KeptNames(names.build_ids, names.module[places], names.start[places], names.reach[places], kept)


def _rows(names: KeptNames) -> Iterator[tuple[tuple[str, int, bool], int, Calls]]:
    """What a row is about, and what it says."""
    for module, start, reach, calls in names.rows():
        yield (names.build_ids[module], start, len(calls) > 1), reach, calls


def named_files(folder: StoreFolder) -> list[NamedFile]:
    """The files of a store, those with the most frames without names first."""
    with StoreSnapshot(folder) as snapshot:
        frames = _frames(snapshot)
    found = []
    answers = frames.kept.find([build_id for build_id, _ in frames.modules], frames.module, frames.address)
    has_name = frames.name >= 0
    has_name |= np.array([row >= 0 and bool(frames.kept.calls[row]) for row in answers.function.tolist()], np.bool_)
    for number, (build_id, path) in enumerate(frames.modules):
        ours = frames.module == number
        if build_id and not module_text(build_id, path).startswith("[kernel"):
            found.append(NamedFile(build_id, path, int(ours.sum()), int((ours & has_name).sum())))
    return sorted(found, key=lambda one: (one.named - one.frames, one.path or "", one.build_id))


def update_names(folder: StoreFolder, naming: Naming) -> NamesUpdate:
    """Look all code up again that was met, and keep what the store did not know."""
    folder.check_writable()
    with StoreSnapshot(folder) as snapshot:
        frames = _frames(snapshot)
    rows = np.flatnonzero((frames.name < 0) & (frames.module >= 0))
    named, inlined = naming.from_files(frames, rows)
    bare = replace(naming, lines=False)

    def find(module: I64, address: U64) -> NamedFrames:
        others = replace(frames, module=module, address=address, name=np.full(len(module), -1))
        return bare.from_files(others, np.arange(len(module)))[0]

    build_ids = [None if module_text(*one).startswith("[") else one[0] for one in frames.modules]
    known = KnownNames()
    known.add(frames.kept)
    return publish_names(folder, names_to_ends(build_ids, frames.module[rows], named, inlined, find), known)


def publish_names(folder: StoreFolder, names: KeptNames, known: KnownNames) -> NamesUpdate:
    """Let names that are not known appear in the store, as a segment without samples."""
    with Staging(folder) as staging:
        new = write_new_names(staging.path, names, known)
        if not len(new):
            return NamesUpdate(None, 0)
        write_manifest(staging.path, {}, names=len(new))
        staging.publish()
        return NamesUpdate(staging.id, len(new))


def write_new_names(folder: Path, names: KeptNames, known: KnownNames) -> KeptNames:
    """Write the names that are not known into the folder of a segment; returns those."""
    new = known.beyond(names)
    if len(new):
        with connect() as db:
            write_names(db, folder, new, QUICK)
    return new


def _frames(snapshot: StoreSnapshot) -> StoredFrames:
    """All distinct frames."""
    with connect() as connection:
        return frames_of(BlockTables(connection, snapshot.blocks), snapshot.names)[0]
