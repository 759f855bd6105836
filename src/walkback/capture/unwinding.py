"""A recording of perf, unwound: samples with the stacks that their registers and stack copies lead to.

for batch in Unwinding("perf.data"):
    print(len(batch), batch.frames.labels()[:3])

profile("perf.data").weight.sum()
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from walkback.base.arrays import I32, U64, Bools, changes, concatenated, distinct
from walkback.base.threads import available_processors
from walkback.capture.frames import DistinctFrames, with_chains, with_inlined
from walkback.capture.perfdata.batch import RecordedBatch
from walkback.capture.perfdata.opening import RecordingInput
from walkback.capture.perfdata.recording import Recording
from walkback.capture.walker import walker_for
from walkback.elf import FileSearch
from walkback.naming.modules import Modules
from walkback.naming.names import Names
from walkback.stacks.distinct import Distinct
from walkback.stacks.profile import CodeMapping, Profile, SampleBatch, Timeline, Totals, unit_of_periods
from walkback.stacks.stacks import End, FrameKind, How, Stacks
from walkback.symbols.demangle import Demangle
from walkback.symbols.kallsyms import KERNEL, Kallsyms
from walkback.walking.moduletable import Only
from walkback.walking.samples import Space
from walkback.walking.walker import LIMIT


class Unwinding:
    """Iterated once: batches of samples with named frames, in the order of their times.

    >>> [len(batch) for batch in walkback.capture.Unwinding("perf.data")]
    [6]
    """

    def __init__(
        self,
        source: RecordingInput,
        *,
        only: Only | None = None,
        max_stack: int = LIMIT,
        search: FileSearch | None = None,
        demangle: Demangle = True,
        lines: bool = True,
        inline: bool = True,
        kernel: bool = True,
        threads: int | None = None,
        cache: bool = True,
        names_last: bool = False,
    ) -> None:
        """`only` keeps to one kind of table, `max_stack` is the most frames of a stack, `kernel` keeps its call chains.

        `search` finds files, in the place of the usual one. `lines` reads debugging information, for source lines and
        inlined calls; without `inline` the latter are left out.

        With `names_last` batches have no names: they are looked up at the end, which is quicker, and by `Collector`.
        """
        self.modules = Modules(search)
        self.recording = Recording.open(source, self.modules)
        threads = available_processors() if threads is None else threads
        self.walker = walker_for(
            self.recording, self.modules, cache=cache, only=only, max_stack=max_stack, threads=threads
        )
        self.names_last = names_last
        """Whether batches have the numbers of frames without names, and so no inlined calls."""
        self._kernel = kernel
        self._kallsyms = Kallsyms()
        self._kernel_parts = 0
        self.names = Names(
            self.modules, demangle=demangle, lines=lines, inline=inline, kallsyms=self._kallsyms, cache=cache
        )
        self.distinct = DistinctFrames(self.names)

    def __repr__(self) -> str:
        return f"Unwinding({self.recording.name!r})"

    def __iter__(self) -> Iterator[SampleBatch]:
        recording = self.recording
        for batch in recording.batches():
            stacks = self.walk(batch)
            if self.names.kernel is None:
                self.names.kernel = self._kernel_build_id()
            numbers = self.distinct.add(stacks, batch.pid)
            if not self.names_last:
                frames = self.distinct.frames
                laid = self.distinct.laid_out(stacks.first, numbers)
                stacks, numbers = with_inlined(stacks, laid), laid.frame
            yield SampleBatch(
                frames=self.distinct.named if self.names_last else frames,
                comms=recording.comms,
                events=recording.events,
                pid=batch.pid,
                tid=batch.tid,
                time=batch.time,
                period=batch.period,
                comm=batch.comm,
                end=stacks.end,
                first=stacks.first,
                frame=numbers,
                pc=stacks.pc,
                lookup=stacks.lookup,
                how=stacks.how,
                event=batch.event,
                cpu=batch.cpu if (batch.cpu >= 0).any() else None,
            )

    @property
    def name(self) -> str:
        """What is unwound."""
        return self.recording.name

    @property
    def comms(self) -> list[str]:
        """The names of threads so far."""
        return self.recording.comms

    def walk(self, batch: RecordedBatch) -> Stacks:
        """The stacks of a batch: walked, or as recorded where there are no registers, behind the kernel's frames."""
        stacks = self.walker.walk(batch.samples, self.recording.spaces)
        stacks = with_recorded(stacks, batch, self.recording.spaces)
        if self._kernel:
            stacks = with_chains(stacks, batch.chain_first, batch.chain_pc, batch.chain_kernel)
        stacks.end[batch.in_kernel] = End.COMPLETE
        return stacks

    def read_kernel(self) -> None:
        """Read the names of the kernel that runs before any batch."""
        self._kallsyms.read()

    def _kernel_build_id(self) -> bytes | None:
        """The build ID of the recorded kernel.

        None is in what perf writes to a pipe; then it is that of the kernel here if the recording is of the same host
        and release, and the kernel's code begins where it does here.
        """
        recording = self.recording
        if len(recording.kernel) == self._kernel_parts:
            return None
        self._kernel_parts = len(recording.kernel)
        found = next((part.build_id for part in recording.kernel if part.build_id), None)
        here = os.uname()
        if found is not None or (recording.hostname, recording.os_release) != (here.nodename, here.release):
            return found
        begins = np.array([part.start for part in recording.kernel if part.name == KERNEL], np.uint64)
        _, first, _ = self._kallsyms.locate(begins)
        return self._kallsyms.build_id if len(begins) and (first == begins).all() else None

    @property
    def troubles(self) -> list[str]:
        """What could not be had, a line each."""
        missing = [f"{name}: {why}" for name, why in self.names.troubles.items()]
        return [*self.recording.troubles, *self.walker.troubles, *missing, *self.modules.doubts]


def with_recorded(stacks: Stacks, batch: RecordedBatch, spaces: list[Space]) -> Stacks:
    """With the recorded call chains of the program for samples that have no registers."""
    bare = stacks.end == End.NO_REGISTERS
    owner = np.repeat(np.arange(len(batch)), np.diff(batch.chain_first))
    kept = bare[owner] & ~batch.chain_kernel
    if not kept.any():
        return stacks
    owner, pc = owner[kept], batch.chain_pc[kept]
    counts = np.bincount(owner, minlength=len(batch))
    first = np.concatenate(([0], np.cumsum(np.diff(stacks.first) + counts)))
    innermost = changes(owner)
    kind = np.where(innermost, FrameKind.EXACT, FrameKind.RETURN).astype(np.uint8)
    lookup = pc - (~innermost).astype(np.uint64)
    module, address = _mapped(lookup, batch.samples.space[owner], spaces)
    # A sample without registers has no frames of its own, so these are all that it has.
    own = np.repeat(~(counts > 0), np.diff(first))
    columns = {}
    recorded_columns = {"pc": pc, "kind": kind, "module": module, "address": address, "sp": 0}
    for name, recorded in recorded_columns.items():
        column = getattr(stacks, name)
        columns[name] = np.empty(int(first[-1]), column.dtype)
        columns[name][own], columns[name][~own] = column, recorded
    how = np.full(int(first[-1]), How.RECORDED, np.uint8)
    how[own] = stacks.how
    return Stacks(first=first, how=how, end=stacks.end, at=stacks.at, **columns)


def _mapped(address: U64, space: np.ndarray, spaces: list[Space]) -> tuple[I32, U64]:
    """The module that each address is in, and the address as its file counts."""
    module: I32 = np.full(len(address), -1, np.int32)
    own = address.copy()
    for number in distinct(space[space >= 0]).tolist():
        ours = np.flatnonzero(space == number)
        maps = spaces[number]
        if not len(maps.start):
            continue
        place = np.searchsorted(maps.last, address[ours]).clip(max=len(maps.last) - 1)
        held: Bools = (maps.start[place] <= address[ours]) & (address[ours] <= maps.last[place])
        held &= maps.module[place] >= 0
        ours, place = ours[held], place[held]
        module[ours] = maps.module[place]
        own[ours] -= maps.bias[place]
    return module, own


class Sampled(Protocol):
    """What has the frames of its batches."""

    @property
    def name(self) -> str:
        """What the samples are of."""

    @property
    def modules(self) -> Modules:
        """The files."""

    @property
    def distinct(self) -> DistinctFrames:
        """The frames that were met."""

    @property
    def names_last(self) -> bool:
        """Whether batches have the numbers of frames without names."""

    @property
    def comms(self) -> list[str]:
        """The names of threads so far."""


class Collector:
    """Sums up batches to a `Profile`.

    >>> unwinding = walkback.capture.Unwinding("perf.data")
    >>> collector = walkback.capture.Collector(unwinding)
    >>> for batch in unwinding:
    ...     collector.add(batch)
    >>> int(collector.profile().weight.sum())
    6
    """

    def __init__(self, source: Sampled, *, by_period: bool = False, threads: bool = False, times: bool = False):
        """`source` is what gives the batches.

        `by_period` weighs samples by their periods; `threads` keeps threads apart; `times` keeps every sample.
        """
        self._source = source
        self._by_period = by_period
        self._stacks = Distinct()
        self._totals = Totals(threads=threads)
        self._times: list[Timeline] | None = [] if times else None
        self._first_time = self._last_time = 0
        self._events: set[str] = set()
        """Those that samples were of."""

    def __repr__(self) -> str:
        return f"Collector({self._source.name!r}, stacks={len(self._stacks)})"

    def add(self, batch: SampleBatch) -> None:
        """Add the samples of a batch."""
        stack = self._stacks.add(batch.first, batch.frame)
        weight = batch.period if self._by_period else np.ones(len(batch), np.uint64)
        self._totals.add(batch.comm, stack, weight, end=batch.end, pid=batch.pid, tid=batch.tid)
        if batch.event is not None:
            self._events.update(batch.events[number] for number in distinct(batch.event).tolist())
        if self._times is not None:
            self._times.append(Timeline(batch.pid, batch.tid, batch.time, weight, batch.comm, stack, batch.end))
        times = batch.time[batch.time > 0]
        if len(times):
            self._first_time = min(self._first_time or 2**63, int(times.min()))
            self._last_time = max(self._last_time, int(times.max()))

    def profile(self) -> Profile:
        """All that was added."""
        source = self._source
        summed = Profile.of(source.distinct.frames, self._stacks, source.comms, self._totals)
        if source.names_last:
            laid = source.distinct.laid_out(summed.stack_first, summed.stack_frames)
            summed = replace(summed, stack_first=laid.first, stack_frames=laid.frame)
        return replace(
            summed,
            unit=unit_of_periods(self._events) if self._by_period else "samples",
            title=source.name,
            duration=self._last_time - self._first_time,
            mappings=[CodeMapping(module.name, module.build_id) for module in source.modules.all()],
            timeline=concatenated(self._times) if self._times else None,
        )


def unwind(
    source: RecordingInput,
    *,
    only: Only | None = None,
    max_stack: int = LIMIT,
    search: FileSearch | None = None,
    by_period: bool = False,
) -> Profile:
    """A whole recording, summed up; `export` writes what comes back.

    >>> profile = walkback.unwind("perf.data")
    >>> profile.columns()["stack"].tolist(), profile.weight.tolist()
    (['_start;main;compute', '_start;main', 'compute'], [4, 1, 1])
    """
    unwinding = Unwinding(source, only=only, max_stack=max_stack, search=search, names_last=True)
    collector = Collector(unwinding, by_period=by_period)
    for batch in unwinding:
        collector.add(batch)
    return collector.profile()
