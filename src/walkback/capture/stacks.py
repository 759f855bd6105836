"""What a program is doing, or was when it ended: the stacks of all its threads, named.

shot = stack(1234)
print(shot.labels(0))

`Stopper` takes such pictures again and again.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import I64, concatenated, numbered
from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.capture.frames import DistinctFrames, with_inlined
from walkback.capture.interpreted import Interpreted
from walkback.capture.snapshot import Snapshot
from walkback.capture.walker import walker_for
from walkback.elf import FileSearch, Input
from walkback.naming.modules import VDSO, Modules
from walkback.naming.names import Names
from walkback.stacks.distinct import Distinct
from walkback.stacks.profile import CodeMapping, NamedFrames, Profile, SampleBatch, Timeline, Totals
from walkback.stacks.stacks import Stacks
from walkback.symbols.demangle import Demangle
from walkback.walking.moduletable import Only
from walkback.walking.walker import LIMIT

if TYPE_CHECKING:
    from walkback.capture.core.file import CoreFile
    from walkback.capture.live.process import Process


@dataclass(frozen=True, slots=True, repr=False)
class ThreadStacks(OneLine):
    """All threads at one moment."""

    snapshot: Snapshot
    stacks: Stacks
    frames: NamedFrames
    """All distinct frames so far."""
    frame: I64
    """The number of each frame of the stacks."""
    time: int
    """In nanoseconds since 1970; 0 where it is not known."""

    def labels(self, thread: int) -> list[str]:
        """The names of a thread's frames, innermost first; `thread` counts from 0."""
        first, end = (int(self.stacks.first[at]) for at in (thread, thread + 1))
        return [self.frames.label(number) for number in self.frame[first:end].tolist()]

    def batch(self) -> SampleBatch:
        """For the formats: a sample for each thread."""
        snapshot, count = self.snapshot, len(self.stacks)
        comms, numbers = numbered(snapshot.names)
        return SampleBatch(
            frames=self.frames,
            comms=comms,
            events=["stopped"],
            pid=np.full(count, snapshot.pid, np.int64),
            tid=np.array(snapshot.tids, np.int64),
            time=np.full(count, self.time, np.uint64),
            period=np.ones(count, np.uint64),
            comm=numbers,
            end=self.stacks.end,
            first=self.stacks.first,
            frame=self.frame,
            pc=self.stacks.pc,
            lookup=self.stacks.lookup,
            how=self.stacks.how,
            event=np.zeros(count, np.int64),
        )


class Stopper:
    """A process or a core file whose stacks are wanted, once or often.

    >>> stopper = walkback.capture.Stopper("core.hello")
    >>> stopper.shoot().labels(0)
    ['compute', 'main', '_start']
    """

    def __init__(
        self,
        source: int | Input,
        *,
        exe: str | os.PathLike[str] | None = None,
        search: FileSearch | None = None,
        only: Only | None = None,
        max_stack: int = LIMIT,
        demangle: Demangle = True,
        lines: bool = True,
        inline: bool = True,
        cache: bool = True,
        stack_bytes: int | None = None,
        interpreted: bool = True,
        evaluators: bool = False,
        tasks: bool = False,
    ) -> None:
        """`source` is the number of a process, or a core file; `exe` is the core file's program.

        With `interpreted` the functions of Python and Lua stand in the place of the evaluators that run them; with
        `evaluators` the evaluators' frames stay behind them. With `tasks` the tasks of Python's asyncio are read while
        their threads stand still.
        """
        self.modules = Modules(search)
        self.target: Process | CoreFile
        self.live = isinstance(source, int)
        """Whether it is a process."""
        address_mask = None
        self.interpreted = Interpreted(self.modules, limit=max_stack, evaluators=evaluators)
        """Interpreters, and what they run."""
        # Each is imported where it is used: for a small program that takes longer than the rest.
        if isinstance(source, int):
            from walkback.capture.live.process import Process

            self.name = f"process {source}"
            if stack_bytes is None:
                self.target = Process(source, self.modules)
            else:
                self.target = Process(source, self.modules, stack_bytes=stack_bytes)
        else:
            from walkback.capture.core.file import CoreFile

            self.target = CoreFile.open(source, self.modules, exe=exe)
            self.name = self.target.name
            if self.target.notes.pac_mask:
                address_mask = ~self.target.notes.pac_mask & (2**64 - 1)
        if interpreted or tasks:
            self.target.interpreters = self.interpreted.interpreters(tasks=tasks)
        options = {"only": only, "max_stack": max_stack, "address_mask": address_mask}
        self.walker = walker_for(self.target, self.modules, cache=cache, **options)
        self.names = Names(self.modules, demangle=demangle, lines=lines, inline=inline, cache=cache)
        self.distinct = DistinctFrames(self.names, self.interpreted.frames)

    def __repr__(self) -> str:
        return f"Stopper({self.name!r})"

    def take(self) -> Snapshot:
        """The threads now, with their tasks, and not walked: for those who do not want their stacks."""
        return self.target.sample()

    def shoot(self) -> ThreadStacks:
        """The stacks now."""
        now = time.time_ns() if self.live else 0
        self.names.forget_perf_maps()
        snapshot = self.target.sample(self.walker)
        stacks = self.interpreted.merged(snapshot)
        numbers = self.distinct.add(stacks, np.full(len(stacks), snapshot.pid))
        frames = self.distinct.frames
        laid = self.distinct.laid_out(stacks.first, numbers)
        return ThreadStacks(snapshot, with_inlined(stacks, laid), frames, laid.frame, now)

    @property
    def troubles(self) -> list[str]:
        """What of files could not be had, a line each."""
        missing = [f"{name}: {why}" for name, why in self.names.troubles.items() if name != VDSO]
        return [*self.walker.troubles, *missing, *self.interpreted.troubles]


class Totalled:
    """Sums up pictures to a `Profile`."""

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper
        self._stacks = Distinct()
        self._totals = Totals(threads=True)
        self._comms: dict[str, int] = {}
        self._times: list[Timeline] = []

    def add(self, shot: ThreadStacks) -> None:
        """Add the threads of a picture, each once."""
        batch = shot.batch()
        numbers = [self._comms.setdefault(name, len(self._comms)) for name in batch.comms]
        comm = np.array(numbers, np.int64)[batch.comm]
        stack = self._stacks.add(batch.first, batch.frame)
        self._totals.add(comm, stack, end=batch.end, pid=batch.pid, tid=batch.tid)
        ones = np.ones(len(batch), np.uint64)
        self._times.append(Timeline(batch.pid, batch.tid, batch.time, ones, comm, stack, batch.end))

    def profile(self) -> Profile:
        """All that was added."""
        frames, modules = self._stopper.distinct.frames, self._stopper.modules
        summed = Profile.of(frames, self._stacks, list(self._comms), self._totals)
        times = concatenated(self._times) if self._times else None
        return replace(
            summed,
            title=self._stopper.name,
            start=int(times.time[0]) if times is not None and len(times) else 0,
            duration=int(times.time[-1] - times.time[0]) if times is not None and len(times) else 0,
            mappings=[CodeMapping(module.name, module.build_id) for module in modules.all()],
            timeline=times if self._stopper.live else None,
        )


def stack(
    source: int | Input,
    *,
    exe: str | os.PathLike[str] | None = None,
    search: FileSearch | None = None,
    only: Only | None = None,
    max_stack: int = LIMIT,
    demangle: Demangle = True,
    lines: bool = True,
    inline: bool = True,
) -> ThreadStacks:
    """The stacks of all threads of a live process, each stopped for a moment, or of a core file.

    `source` is the number of a process, or a core file, whose program `exe` is.

    >>> stacks = walkback.stack("core.hello")
    >>> stacks.labels(0)
    ['compute', 'main', '_start']
    """
    return Stopper(
        source,
        exe=exe,
        search=search,
        only=only,
        max_stack=max_stack,
        demangle=demangle,
        lines=lines,
        inline=inline,
    ).shoot()
