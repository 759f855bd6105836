"""A profile as samples of a store."""

from __future__ import annotations

import time as clock
from dataclasses import replace

import numpy as np

from walkback.base.arrays import I32, I64, U64, Numbers, numbered
from walkback.stacks.profile import NamedFrames, Profile
from walkback.store.builder import Builder, SampleOrigin
from walkback.store.names import NOTHING, KeptNames, names_of
from walkback.symbols.sourceline import SourceLine


def add_profile(builder: Builder, profile: Profile, origin: SampleOrigin, start: int | None) -> None:
    """Add each of its samples, or if these are not kept each of its rows."""
    rows = profile.timeline if profile.timeline is not None else profile
    count = len(rows.stack)
    times = np.zeros(count, np.uint64) if profile.timeline is None else profile.timeline.time
    kept = ~profile.frames.is_inlined[profile.stack_frames]
    first = np.concatenate(([0], np.cumsum(kept)))[profile.stack_first]
    nodes = builder.stacks.add(first, _frames(builder, profile)[profile.stack_frames[kept]])
    builder.add(
        times,
        nodes[rows.stack],
        rows.weight,
        _sources(builder, profile, origin, rows.comm, rows.pid, rows.tid),
        rows.end,
        since=_shift(times, profile.start if start is None else start),
    )


def names_in(profile: Profile) -> KeptNames:
    """What a profile says of the code in its files."""
    frames, inlined = profile.frames, [list[SourceLine]() for _ in profile.frames.symbol]
    own = np.flatnonzero(~frames.is_inlined)
    for row in np.flatnonzero(frames.is_inlined).tolist():
        # The calls in a frame follow it, the outermost first.
        inlined[int(own[np.searchsorted(own, row) - 1])].insert(0, SourceLine(None, 0, frames.symbol[row]))
    build_ids = {one.file: one.build_id.hex() for one in profile.mappings if one.build_id and one.file[:1] != "["}
    if frames.offset is None or not len(own):
        return NOTHING
    modules, number = numbered(frames.module)
    chosen = NamedFrames(
        [frames.symbol[row] for row in own.tolist()],
        [frames.module[row] for row in own.tolist()],
        frames.address[own],
        frames.kernel[own],
        frames.offset[own],
    )
    calls = [tuple(inlined[row]) for row in own.tolist()]
    return names_of([build_ids.get(one) for one in modules], number[own], chosen, calls)


def _shift(times: U64, start: int) -> int:
    """What to add to times to have them in nanoseconds since 1970."""
    known = times[times > 0]
    if start:
        return start - int(known.min(initial=2**63 - 1) if len(known) else 0)
    return clock.time_ns() - int(known.max(initial=0))


def _frames(builder: Builder, profile: Profile) -> I64:
    """The number in the store of each frame."""
    frames = profile.frames
    build_ids = {one.file: one.build_id.hex() for one in profile.mappings if one.build_id}
    paths = list(dict.fromkeys(frames.module))
    numbers = {path: builder.module(build_ids.get(path), path) if path else -1 for path in paths}
    module = np.array([numbers[path] for path in frames.module], np.int64)
    # What a file with a build ID names can be named later.
    names = [
        None if path in build_ids and not path.startswith("[") else symbol
        for path, symbol in zip(frames.module, frames.symbol, strict=True)
    ]
    address = frames.address.copy()
    made = np.array([symbol is not None for symbol in frames.symbol], np.bool_) & (module < 0)
    address[made] = 0 if frames.offset is None else frames.offset[made]
    return builder.frames(module, address, names)


def _sources(
    builder: Builder, profile: Profile, origin: SampleOrigin, comm: Numbers, pid: Numbers | None, tid: Numbers | None
) -> I32:
    unknown = np.full(len(comm), -1, np.int64)
    event = None if profile.unit == "samples" else profile.unit
    return builder.sources_of(
        [unknown if column is None else column for column in (comm, pid, tid)],
        lambda comm, pid, tid: replace(origin, process=profile.comms[comm] or None, pid=pid, tid=tid, event=event),
    )
