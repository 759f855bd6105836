"""Which code of a store has names, and looking up those that are missing: files may come later, as from a server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from walkback.base.arrays import I64, U64
from walkback.segments.database import connect
from walkback.stacks.profile import NamedFrames
from walkback.store.builder import write_manifest
from walkback.store.folder import StoreFolder, StoreSnapshot
from walkback.store.names import KeptNames, names_to_ends, write_names
from walkback.store.naming import Naming, module_text
from walkback.store.reading import BlockTables
from walkback.store.staging import Staging
from walkback.store.sums import StoredFrames, frames_of
from walkback.store.tables import QUICK


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file with a build ID, and how much of its code that was met has names."""

    build_id: str
    path: str | None
    frames: int
    named: int
    """Frames in functions that have names."""


@dataclass(frozen=True, slots=True)
class NamesUpdate:
    """What an update found."""

    segment: str | None
    """The new one; None if there was nothing new."""
    rows: int
    """How many functions and places with inlined calls are new."""


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
    with StoreSnapshot(folder) as snapshot:
        frames = _frames(snapshot)
    rows = np.flatnonzero((frames.name < 0) & (frames.module >= 0))
    named, inlined = naming.from_files(frames, rows)
    bare = replace(naming, lines=False)

    def find(module: I64, address: U64) -> NamedFrames:
        others = replace(frames, module=module, address=address, name=np.full(len(module), -1))
        return bare.from_files(others, np.arange(len(module)))[0]

    build_ids = [None if module_text(*one).startswith("[") else one[0] for one in frames.modules]
    return publish_names(folder, names_to_ends(build_ids, frames.module[rows], named, inlined, find), frames.kept)


def publish_names(folder: StoreFolder, names: KeptNames, known: KeptNames) -> NamesUpdate:
    """Let names that are not known appear in the store, as a segment without samples."""
    with Staging(folder) as staging:
        new = write_new_names(staging.path, names, known)
        if not new:
            return NamesUpdate(None, 0)
        write_manifest(staging.path, {}, names=new)
        staging.publish()
        return NamesUpdate(staging.id, new)


def write_new_names(folder: Path, names: KeptNames, known: KeptNames) -> int:
    """Write the names that are not known into the folder of a segment; returns how many names that are."""
    new = names.beyond(known)
    if len(new):
        with connect() as db:
            write_names(db, folder, new, QUICK)
    return len(new)


def _frames(snapshot: StoreSnapshot) -> StoredFrames:
    """All distinct frames."""
    with connect() as connection:
        return frames_of(BlockTables(connection, snapshot.blocks), snapshot.names)[0]
