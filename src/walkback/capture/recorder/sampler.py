"""Samples a command, a process or the whole machine, by events of the kernel or by short stops.

with Sampler(["python3", "work.py"]) as sampler:
    for batch in sampler:
        ...
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, Self, cast, get_args

import numpy as np

from walkback.base.arrays import I64
from walkback.base.errors import ArgumentError, UnreadableError
from walkback.base.text import counted
from walkback.capture.live.status import name_in
from walkback.capture.recorder.command import Command
from walkback.capture.recorder.events import OFF_CPU, EventChoice, Sampling
from walkback.capture.recorder.perfevent import RefusedError
from walkback.capture.recorder.recorder import Recorder
from walkback.capture.recorder.renewed import Renewed
from walkback.capture.recorder.stops import Stops
from walkback.capture.unwinding import Collector, Unwinding
from walkback.elf import FileSearch
from walkback.stacks.profile import Profile, SampleBatch
from walkback.stacks.stacks import End
from walkback.walking.moduletable import Only
from walkback.walking.walker import LIMIT

Way = Literal["auto", "perf", "stops"]
Target = Sequence[str] | Command | int | None
"""The words of a command, or one that is held, the number of a process, or nothing for the whole machine."""
MOST_OFTEN = 100_000
"""Samples in a second."""
PATIENCE = 3.0
"""Seconds for which samples may wait where nobody looks at them meanwhile."""
_BY_STOPS = ("cpu-clock", "task-clock", OFF_CPU)


class Sampler:
    """Iterated once: batches of samples, from when that begins until the target has ended or `stop` is called.

    >>> with walkback.capture.Sampler(["python3", "-c", "sum(range(10**7))"]) as sampler:
    ...     sum(len(batch) for batch in sampler) > 0
    True
    """

    def __init__(
        self,
        target: Target,
        *,
        event: str = "cpu-clock",
        way: Way = "auto",
        duration: float | None = None,
        sampling: Sampling | None = None,
        grows: bool = True,
        endless: bool = False,
        patience: float = 0.0,
        interpreted: bool = True,
        **options: Any,
    ) -> None:
        """A command is held until the first batch is asked for. The other options are those of `Unwinding`.

        `way` chooses between events and stops; what is not chosen is stops where the kernel refuses events. With
        `grows` more of each stack is copied where many are cut. With `endless` memory stays flat for months. While
        no processor is free, batches of events may come `patience` seconds later. By stops, the functions of Python and
        Lua stand in the place of their evaluators if `interpreted`.
        """
        self.sampling = Sampling() if sampling is None else sampling
        self.remarks: list[str] = []
        """What is recorded otherwise than asked for, and why; a line each."""
        self.ends: I64 = np.zeros(256, np.int64)
        """How many stacks ended in each way."""
        self._event, self._way, self._duration, self._has_begun = event, way, duration, False
        self._grows, self._endless, self._interpreted, self._options = grows, endless, interpreted, options
        self._patience = patience
        _check(target, way, duration, self.sampling)
        self.command = (
            Command(target) if isinstance(target, Sequence) else target if isinstance(target, Command) else None
        )
        """What was started."""
        pid = self.command.pid if self.command is not None else cast("int | None", target)
        try:
            self.source = self._opened(pid)
            """What takes the samples."""
        except BaseException:
            if self.command is not None:
                self.command.give_up()
            raise

    def __repr__(self) -> str:
        return f"Sampler({self.source!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, pid: int | None) -> Recorder | Stops:
        name = self._name(pid)
        can_stop = pid is not None and can_be_by_stops(self._event) and not self.sampling.data
        refused: RefusedError | None = None
        if self._way != "stops":
            event, held, patience = EventChoice.named(self._event), self.command is not None, self._patience
            try:
                recorder = Recorder(event, self.sampling, pid=pid, name=name, on_exec=held, patience=patience)
            except RefusedError as error:
                if self._way == "perf" or not can_stop:
                    raise
                refused = error
                rate = "" if self.sampling.period is None else f", {self.sampling.frequency} times a second"
                self.remarks.append(f"{error.message}; sampling by short stops instead{rate}")
            else:
                self.remarks += [recorder.lacking] if recorder.lacking is not None else []
                return recorder
        if pid is None or not can_stop:
            raise ArgumentError(f"short stops cannot sample {self._event} of {name}")
        stops = Stops(
            pid,
            frequency=self.sampling.frequency,
            name=name,
            waiting=self._event == OFF_CPU,
            interpreted=self._interpreted,
            **self._options,
        )
        try:
            stops.check()  # a command, before it has done anything
        except UnreadableError as error:
            if refused is None:
                raise
            reasons = f"{refused.message}; short stops do not work, either: {error.message}"
            raise UnreadableError(reasons, file=name) from None
        return stops

    def _name(self, pid: int | None) -> str:
        if self.command is not None:
            return " ".join(self.command.words)
        return os.uname().nodename if pid is None else name_in(f"/proc/{pid}/comm") or f"process {pid}"

    @cached_property
    def samples(self) -> Stops | Unwinding | Renewed:
        """What unwinds them."""
        if isinstance(self.source, Stops):
            return self.source
        options = self._options | {"kernel": self.sampling.kernel}
        return Renewed(self.source, **options) if self._endless else Unwinding(self.source, **options)

    @property
    def name(self) -> str:
        """What is sampled."""
        return self.source.name

    @property
    def is_weighted(self) -> bool:
        """Whether each sample counts by its period."""
        return self._event == OFF_CPU

    def when_idle(self, call: Callable[[], None]) -> None:
        """Have something called again and again while no batch comes."""
        self.source.on_idle = call

    def begin(self) -> None:
        """Let the command go, or the events count, before the first batch is asked for."""
        self._has_begun = True
        if self._duration is not None:
            self.source.run_for(self._duration)
        if self.command is not None:
            if not isinstance(self.samples, Stops):
                self.samples.read_kernel()  # takes a tenth of a second, which the command would lose once it runs
            self.command.let_go()
        else:
            self.source.start()

    def __iter__(self) -> Iterator[SampleBatch]:
        samples = self.samples
        if not self._has_begun:
            self.begin()
        for batch in samples:
            counts = np.bincount(batch.end, minlength=len(self.ends))
            self.ends += counts
            if self._grows:
                self.source.saw(len(batch), int(counts[End.STACK_CUT]))
            yield batch
        given_up = getattr(self.source, "given_up", 0)
        if given_up:
            self.remarks.append(f"{counted(given_up, 'sample')} of threads that wait were lost: there were too many")

    def stop(self) -> None:
        """Take no more samples; a signal's handler may call this."""
        self.source.stop()

    def close(self) -> None:
        """Let go of all but the command, which goes on, or has not begun and does not run at all."""
        if self.command is not None and not self._has_begun:
            self._has_begun = True
            self.command.give_up()
        self.source.close()


def _check(target: Target, way: str, duration: float | None, sampling: Sampling) -> None:
    """Refuse what makes no sense."""
    if isinstance(target, str) or (isinstance(target, Sequence) and not (target and all(map(_is_text, target)))):
        raise ArgumentError("a command is given as a list of words")
    if isinstance(target, (bool, float)) or (isinstance(target, int) and target <= 0):
        raise ArgumentError(f"{target!r} is not the number of a process")
    if way not in get_args(Way):
        raise ArgumentError(f"{way!r} is none of {', '.join(get_args(Way))}")
    if duration is not None and not 0 < duration < math.inf:
        raise ArgumentError(f"{duration!r} is not a number of seconds")
    if not 0 < sampling.frequency <= MOST_OFTEN or not (sampling.period is None or 0 < sampling.period < 1 << 63):
        raise ArgumentError("a frequency is from 1 to 100,000, and a period from 1 to 2**63 - 1")


def _is_text(word: object) -> bool:
    return isinstance(word, (str, bytes, os.PathLike))


def can_be_by_stops(event: str) -> bool:
    """Whether short stops can sample an event."""
    return event in _BY_STOPS


def record(
    target: Target,
    *,
    duration: float | None = None,
    event: str = "cpu-clock",
    frequency: int = 99,
    way: Way = "auto",
    only: Only | None = None,
    max_stack: int = LIMIT,
    search: FileSearch | None = None,
) -> Profile:
    """Samples of a command, a process or the whole machine, summed up; a command has ended by then.

    >>> profile = walkback.record(["python3", "-c", "sum(range(10**7))"], way="stops")
    >>> profile.unit
    'samples'
    """
    sampling = Sampling(frequency=frequency)
    with Sampler(
        target,
        event=event,
        way=way,
        sampling=sampling,
        duration=duration,
        patience=PATIENCE if target is not None else 0.0,
        only=only,
        max_stack=max_stack,
        search=search,
        names_last=True,
    ) as sampler:
        collector = Collector(sampler.samples, by_period=sampler.is_weighted)
        for batch in sampler:
            collector.add(batch)
        if sampler.command is not None:
            sampler.command.wait()
        return collector.profile()
