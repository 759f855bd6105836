"""Samples of a capture as a store keeps them: frames by build ID and offset, named only if no file can name them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from walkback.base.arrays import I32, I64, U8, U64, Bools, Numbers, distinct
from walkback.base.errors import WalkbackError
from walkback.capture.frames import SIGNAL_HANDLER, FrameKeys
from walkback.stacks.profile import NamedFrames
from walkback.store.builder import Builder, SampleOrigin
from walkback.store.names import KeptNames, names_to_ends
from walkback.symbols.kallsyms import KERNEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from walkback.capture.frames import DistinctFrames
    from walkback.capture.perfdata.recording import Recording
    from walkback.naming.modules import Module, Modules
    from walkback.naming.names import FrameNames, Names
    from walkback.stacks.distinct import Distinct
    from walkback.stacks.profile import SampleBatch

_PIECE = tuple[U64, I32, Numbers, I32, U8]
"""Times, stacks, weights, sources and ends of samples."""


class Capture(Protocol):
    """What has the frames of its batches: an `Unwinding`, or a `Stopper`."""

    @property
    def distinct(self) -> DistinctFrames:
        """The frames that were met."""

    @property
    def modules(self) -> Modules:
        """The files."""

    @property
    def names(self) -> Names:
        """What names their code."""


class Captured:
    """Takes the batches of one capture."""

    def __init__(
        self,
        builder: Builder,
        capture: Capture,
        origin: SampleOrigin,
        *,
        start: int | None = None,
        by_period: bool = False,
        named: Distinct | None = None,
    ) -> None:
        """`start` is when the first sample was, in nanoseconds since 1970; without it that is worked out.

        `named` has the code whose names are kept already, and takes what gets names now.
        """
        self._builder = builder
        self._capture = capture
        self._recording: Recording | None = getattr(capture, "recording", None)
        if self._recording is not None and origin.host is None:
            origin = SampleOrigin(self._recording.hostname, labels=origin.labels)
        self._origin = origin
        self._start = start
        self._by_period = by_period
        self._named = named
        self._frame_numbers = np.zeros(0, np.int32)
        self._files: dict[int, int] = {}
        self._pieces: list[_PIECE] = []
        self.note: str | None = None
        """What is to be known of the times, after `finish`."""

    def add(self, batch: SampleBatch) -> None:
        """Add the samples of a batch."""
        builder = self._builder
        builder.check_open()
        self._take_frames()
        first, frame = batch.first, batch.frame
        if not getattr(self._capture, "names_last", False):
            first, frame = self._capture.distinct.of_code(first, frame)
        nodes = builder.stacks.add(first, self._frame_numbers[frame])
        weight = batch.period if self._by_period else np.ones(len(batch), np.uint64)
        self._pieces.append((batch.time.copy(), nodes, weight, self._sources(batch), batch.end.copy()))

    def finish(self) -> None:
        """Give all samples their times."""
        shift = self._shift()
        for times, nodes, weight, source, end in self._pieces:
            self._builder.add(times, nodes, weight, source, end, since=shift)
        self._pieces = []

    def names(self) -> KeptNames:
        """What the code is called that was met."""
        keys, names = self._capture.distinct.keys(), self._capture.names.demangled()
        rows = np.flatnonzero((keys.module >= 0) & ~keys.kernel & ~self._without_file(keys.module))
        if self._named is not None:
            words = np.stack((keys.module[rows].astype(np.uint64), keys.address[rows]), axis=1)
            known = len(self._named)
            rows = rows[self._named.add_records(words) >= known]
        module, address = keys.module[rows], keys.address[rows]
        found = names.find(module, address)
        bare = names.without_lines()
        build_ids = [_build_id(one) for one in self._capture.modules.all()]
        return names_to_ends(
            build_ids,
            module,
            _named(found, address),
            found.inlined,
            lambda module, address: _named(bare.find(module, address), address),
        )

    def unkept(self) -> list[str]:
        """Files that were there and whose names are not kept: nothing says later that a file is the same."""
        module = self._capture.distinct.keys().module
        met = [self._capture.modules[number] for number in distinct(module[module >= 0]).tolist()]
        return [one.name for one in met if one.image is None and _build_id(one) is None and one.elf is not None]

    # Times

    def _shift(self) -> int:
        """What to add to times to have them in nanoseconds since 1970."""
        known = [times[times > 0] for times, *_ in self._pieces]
        first = min((int(times.min()) for times in known if len(times)), default=0)
        last = max((int(times.max()) for times in known if len(times)), default=0)
        if self._start is not None:
            return self._start - first
        recording = self._recording
        if recording is None:
            # A process was looked at by the clock on the wall; a core file knows no time.
            return 0 if last else time.time_ns()
        if recording.clock is not None:
            return recording.clock[0] - recording.clock[1]
        # The clock of perf begins somewhere. What it wrote last, it wrote just before it closed the file.
        self.note = "times are counted back from when the file was written; perf record -k mono keeps them"
        return _written(recording.name) - last

    # Frames

    def _take_frames(self) -> None:
        """Number the frames that are new since the last batch."""
        distinct, done = self._capture.distinct, len(self._frame_numbers)
        keys = distinct.keys(done)
        if not len(keys.address):
            return
        module, address = self._files_of(keys), keys.address.copy()
        kernel = np.flatnonzero(keys.kernel)
        if len(kernel):
            module[kernel], address[kernel] = self._in_kernel(address[kernel])
        names: list[str | None] = [None] * len(address)
        for row in np.flatnonzero(keys.runtime).tolist():
            # Where a file has a function is its line there.
            frame = distinct.runtime[int(address[row])]
            module[row], address[row] = self._builder.module(None, frame.file), frame.line
            names[row] = frame.symbol
        asked = np.flatnonzero(keys.kernel | keys.handler | (module < 0) | self._without_file(keys.module))
        asked = asked[~keys.runtime[asked]]
        if len(asked):
            self._name(keys, asked, names, address)
        numbers = self._builder.frames(module, address, names).astype(np.int32)
        self._frame_numbers = np.concatenate((self._frame_numbers, numbers))

    def _name(self, keys: FrameKeys, asked: I64, names: list[str | None], address: U64) -> None:
        """Keep names that cannot be found later."""
        found = self._capture.names.find(
            keys.module[asked], keys.address[asked], pid=keys.pid[asked], kernel=keys.kernel[asked]
        )
        handler = (keys.handler[asked] & ~self._without_file(keys.module[asked])).tolist()
        for row, symbol, its_handler in zip(asked.tolist(), found.symbol, handler, strict=True):
            if not its_handler:
                names[row] = symbol or (SIGNAL_HANDLER if keys.handler[row] else None)
            elif symbol is None:
                names[row] = SIGNAL_HANDLER
        # Where code was made at run time says nothing when its process is gone.
        made = (keys.module[asked] < 0) & ~keys.kernel[asked] & np.array([one is not None for one in found.symbol])
        address[asked[made]] = found.offset[made]

    def _files_of(self, keys: FrameKeys) -> I64:
        """The number of each frame's file in the store."""
        found = np.full(len(keys.module), -1, np.int64)
        for number in distinct(keys.module[keys.module >= 0]).tolist():
            if number not in self._files:
                module = self._capture.modules[number]
                self._files[number] = self._builder.module(_build_id(module), module.name)
            found[keys.module == number] = self._files[number]
        return found

    def _without_file(self, module: Numbers) -> Bools:
        """Which frames are of modules that cannot be recognised later, or are in no file."""
        lost = [one.image is not None or _build_id(one) is None for one in self._capture.modules.all()]
        return np.array([*lost, False], np.bool_)[module]

    def _in_kernel(self, address: U64) -> tuple[I64, U64]:
        """The part of the kernel that each address is in, and how far behind its beginning."""
        parts = sorted(self._recording.kernel if self._recording is not None else [], key=lambda part: part.start)
        module, offset = np.full(len(address), self._builder.module(None, KERNEL)), address.copy()
        place = np.searchsorted(np.array([part.start for part in parts], np.uint64), address, side="right") - 1
        for number in distinct(place[place >= 0]).tolist():
            part = parts[number]
            inside = (place == number) & (address <= part.last)
            if inside.any():
                module[inside] = self._builder.module(_hex(part.build_id), part.name)
                offset[inside] -= np.uint64(part.start)
        return module, offset

    # Sources

    def _sources(self, batch: SampleBatch) -> I32:
        event = np.zeros(len(batch), np.int64) if batch.event is None else batch.event
        events: Sequence[str] = batch.events
        return self._builder.sources_of(
            (batch.comm, batch.pid, batch.tid, event),
            lambda comm, pid, tid, event: replace(
                self._origin,
                process=batch.comms[comm] or None,
                pid=pid,
                tid=tid,
                event=events[event] if 0 <= event < len(events) else None,
            ),
        )


def _named(found: FrameNames, address: U64) -> NamedFrames:
    return NamedFrames(found.symbol, found.module, address, np.zeros(len(address), np.bool_), found.offset)


def _build_id(module: Module) -> str | None:
    """As recorded; else that of the file, if it is there."""
    try:
        return _hex(module.build_id or (None if module.elf is None else module.elf.build_id))
    except WalkbackError:
        return None


def _hex(build_id: bytes | None) -> str | None:
    return build_id.hex() if build_id else None


def _written(name: str) -> int:
    """When a recording was written; now, if it is no file."""
    try:
        return Path(name).stat().st_mtime_ns
    except OSError:
        return time.time_ns()
