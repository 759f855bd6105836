"""One append: all that it takes appears in the store at once, or not at all.

with store.append(labels={"version": "1.2"}) as new:
    new.recording("perf.data")
    new.folded("stacks.folded")
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from walkback.base.errors import ArgumentError, UnreadableError
from walkback.base.text import spelled_out
from walkback.segments.database import connect
from walkback.store import folded
from walkback.store.backtraces import add_backtraces
from walkback.store.builder import Builder, SampleOrigin, write_manifest
from walkback.store.capturing import Capture, Captured
from walkback.store.folder import StoreFolder, StoreSnapshot
from walkback.store.known import KnownNames, publish_names, write_new_names
from walkback.store.names import NOTHING, KeptNames, joined
from walkback.store.parts import BlockCounts
from walkback.store.profiles import add_profile, names_in
from walkback.store.staging import Staging

if TYPE_CHECKING:
    from walkback.base.arrays import Numbers
    from walkback.capture.perfdata.opening import RecordingInput
    from walkback.capture.unwinding import Unwinding
    from walkback.cbf.backtraces import Backtraces
    from walkback.cif.imagemap import ImageMap
    from walkback.naming.modules import Modules
    from walkback.stacks.distinct import Distinct
    from walkback.stacks.profile import Profile


class Append:
    """What is to become one segment."""

    def __init__(
        self,
        folder: StoreFolder,
        *,
        host: str | None = None,
        labels: Mapping[str, str] | None = None,
        names: bool = True,
        known: KnownNames | None = None,
    ) -> None:
        """`host` and `labels` are of all samples; a recording has its own host. `names` keeps names of code as well.

        `known` is what one append after the other learns of the names in the store.
        """
        labels = labels or {}
        if len({spelled_out(name) for name in labels}) < len(labels):
            raise ArgumentError("two labels have the same name when bytes that are no text are spelled out")
        for value in labels.values():
            spelled_out(value)
        folder.check_writable()
        self._folder = folder
        self.origin = SampleOrigin(host, labels=tuple(sorted(labels.items())))
        """What all samples have in common."""
        self.builder = Builder()
        """Takes what no method here takes."""
        self._captured: list[Captured] = []
        self._names: list[KeptNames] | None = [] if names else None
        """Those that came with profiles."""
        self._known = known or KnownNames()
        self.segment: str | None = None
        """Its name, once it is in the store; None if there were no samples."""
        self.blocks: dict[str, BlockCounts] = {}
        """What came into the store, by hours."""
        self.notes: list[str] = []
        """What is to be known of it, a line each, once it is in the store."""

    def __repr__(self) -> str:
        return f"Append(segment={self.segment!r}, hours={len(self.blocks)})"

    def captured(
        self, capture: Capture, *, start: int | None = None, by_period: bool = False, named: Distinct | None = None
    ) -> Captured:
        """Takes the batches of an `Unwinding`, or of the shots of a `Stopper`, one after the other.

        Times are worked out as well as the recording allows, unless `start` says when its first sample was, in
        nanoseconds since 1970. Samples weigh 1, or with `by_period` their period. `named` is the code
        whose names former appends of the same capture have kept.
        """
        taken = Captured(self.builder, capture, self.origin, start=start, by_period=by_period, named=named)
        self._captured.append(taken)
        return taken

    def recording(
        self, source: RecordingInput | Unwinding, *, start: int | None = None, by_period: bool = False
    ) -> None:
        """Add all samples of a recording of perf."""
        from walkback.capture.unwinding import Unwinding

        if not isinstance(source, Unwinding):
            source = Unwinding(source, names_last=True)
        taken = self.captured(source, start=start, by_period=by_period)
        for batch in source:
            taken.add(batch)

    def profile(self, profile: Profile, *, start: int | None = None) -> None:
        """Add a profile: each of its samples, or if these are not kept each of its rows.

        Its times count from `start`, else from its own `start`; if it has neither, its last sample is from now.
        """
        add_profile(self.builder, profile, self.origin, start)
        if self._names is not None:
            self._names.append(names_in(profile))

    def folded(
        self, source: str | os.PathLike[str] | Iterable[bytes], *, start: int | None = None, with_process: bool = True
    ) -> None:
        """Add folded stacks, from a file or by lines; `start` is their time, else when the file was written.

        The first name of each line is the process, as `perf` and `walkback` write it, unless `with_process` is False.
        """
        if not isinstance(source, (str, os.PathLike)):
            when = time.time_ns() if start is None else start
            folded.add(self.builder, source, self.origin, when, with_process=with_process, name=None)
            return
        path = Path(source)
        with path.open("rb") as lines:
            when = path.stat().st_mtime_ns if start is None else start
            folded.add(self.builder, lines, self.origin, when, with_process=with_process, name=str(path))

    def backtraces(
        self,
        backtraces: Backtraces,
        images: ImageMap | None = None,
        *,
        times: int | Numbers | None = None,
        process: str | None = None,
        pid: int = -1,
        tid: int = -1,
        modules: Modules | None = None,
    ) -> None:
        """Add backtraces of the Compact Backtrace Format, of a process with these images.

        `modules` finds the files of the images, where they are not where this system has them.

        `times` is the time of all or of each, in nanoseconds since 1970; without it they are from now.
        """
        origin = replace(self.origin, process=process, pid=pid, tid=tid)
        times = time.time_ns() if times is None else times
        add_backtraces(self.builder, backtraces, images, origin, times, modules)

    def publish(self) -> None:
        """Let it appear in the store, once; when this returns it is on the disk."""
        self.builder.check_open()
        captured, self._captured = self._captured, []
        try:
            for taken in captured:
                taken.finish()
                if taken.note is not None:
                    self.notes.append(taken.note)
        finally:
            self.builder.close()
        if not len(self.builder):
            return
        names = NOTHING
        if self._names is not None:
            names = joined([*self._names, *(taken.names() for taken in captured)])
            unkept = dict.fromkeys(name for taken in captured for name in taken.unkept())
            self.notes += [f"{name} has no build ID, so its inlined calls are not kept" for name in unkept]
        with Staging(self._folder) as staging:
            with connect() as db:
                self.blocks = self.builder.write(db, staging.path)
            self._read_known(names)
            new = write_new_names(staging.path, names, self._known)
            write_manifest(staging.path, self.blocks, names=len(new))
            staging.publish()
            self.segment = staging.id
        if self._folder.is_far:
            return
        with StoreSnapshot(self._folder) as snapshot:
            dropped = not self._known.tables <= frozenset(snapshot.names)
            own = [table for table in snapshot.names if table.parent == staging.published]
        if dropped:
            # A compaction that did not see these samples yet may have dropped what was known.
            self._read_known(names)
            publish_names(self._folder, names, self._known)
        elif own:
            self._known.add(new, own[0])

    def _read_known(self, names: KeptNames) -> None:
        """Know what the store says of the same files; a damaged table keeps no samples out."""
        if not len(names) or self._folder.is_far:
            return
        with StoreSnapshot(self._folder) as snapshot:
            try:
                self._known.read(snapshot, names.build_ids)
            except UnreadableError as error:
                self._known.forget()
                note = f"{error}; so all names of this append are kept"
                self.notes += [note] if note not in self.notes else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.publish()
