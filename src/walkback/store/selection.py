"""Questions to a store: which samples, and what is wanted to be known of them.

chosen = store.select(since="1h", process="server", labels={"version": "1.2"})
chosen.profile()              # for every export format
chosen.top(10)
chosen.through("malloc")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from walkback.base.arrays import ranked
from walkback.stacks.inlined import InlinedFrames
from walkback.stacks.profile import Profile, unit_of_periods
from walkback.stacks.through import Through, through
from walkback.stacks.top import HotFunction, hottest
from walkback.store.folder import StoreSnapshot
from walkback.store.groups import Group, groups
from walkback.store.moments import Moment, moment
from walkback.store.naming import Naming, mappings
from walkback.store.sums import Sums, Wanted, sums

if TYPE_CHECKING:
    from walkback.workers.executors import SharingWorkers

Choice = str | Sequence[str]
"""One text, or several; any of them matches."""


class Shelf(Protocol):
    """Gives the blocks of a moment: `Store.snapshot`."""

    def __call__(self, *, since: int | None = None, until: int | None = None) -> StoreSnapshot:
        """Those with samples of these times."""


def wanted_samples(
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    host: Choice = (),
    process: Choice = (),
    labels: Mapping[str, Choice] | None = None,
) -> Wanted:
    """What is wanted, in the words of whoever asks."""
    return Wanted(
        None if since is None else moment(since),
        None if until is None else moment(until),
        _several(host),
        _several(process),
        {name: _several(values) for name, values in (labels or {}).items()},
    )


class Selection:
    """Some samples of a store. They are read when first something is asked, and then stay as they were.

    >>> store = walkback.Store("stacks", create=True)
    >>> with store.append() as new:
    ...     new.recording("perf.data")
    >>> store.select(process="hello").through("main").callers
    [Neighbour(name='_start', module='.../hello', weight=5)]
    """

    def __init__(
        self, snapshot: Shelf, wanted: Wanted, naming: Naming, title: str = "", workers: SharingWorkers | None = None
    ) -> None:
        self._snapshot = snapshot
        self._workers = workers
        self.wanted = wanted
        self.naming = naming
        """Also has the files that could not give names, once something was named."""
        self.title = title

    def __repr__(self) -> str:
        return f"Selection({self.title!r})"

    @cached_property
    def sums(self) -> Sums:
        """The samples by stack, without names."""
        with self._snapshot(since=self.wanted.since, until=self.wanted.until) as snapshot:
            if self._workers is None:
                return sums(snapshot.summed, self.wanted, snapshot.names)
            from walkback.store.pieces import sums_by

            return sums_by(self._workers, snapshot, self.wanted)

    def profile(self) -> Profile:
        """The samples summed up, with names: what `FORMATS` write."""
        return self._profile

    @cached_property
    def _profile(self) -> Profile:
        found = self.sums
        nodes, stack = ranked(found.node)
        first, words = found.tree.stacks(nodes)
        seen = np.zeros(len(found.frames), np.bool_)
        seen[words] = True
        used, place = np.flatnonzero(seen), np.cumsum(seen, dtype=np.int64) - 1
        frames = InlinedFrames()
        frames.add(*self.naming.named(found.frames, used))
        laid = frames.laid_out(first, place[words])
        return Profile(
            frames.named,
            laid.first,
            laid.frame,
            found.processes,
            found.process,
            stack.astype(np.int64),
            found.end,
            found.weight,
            found.count,
            unit=_unit(found),
            title=self.title,
            start=found.first,
            duration=found.last - found.first,
            mappings=mappings(found.frames),
        )

    def top(self, limit: int | None = None) -> list[HotFunction]:
        """The functions that weigh most."""
        return hottest(self.profile(), limit)

    def by(self, name: str) -> list[Group]:
        """The weight of each "host", of each "process", or of each value of a label; "label:host" is the label host."""
        with self._snapshot(since=self.wanted.since, until=self.wanted.until) as snapshot:
            if self._workers is None:
                return groups(snapshot.summed, self.wanted, name)
            from walkback.store.pieces import groups_by

            return groups_by(self._workers, snapshot, self.wanted, name)

    def through(self, function: str | re.Pattern[str] | Callable[[str], bool]) -> Through:
        """The stacks through a function: of this name, or whose name the pattern is found in."""
        if isinstance(function, str):
            return through(self.profile(), function.__eq__)
        if isinstance(function, re.Pattern):
            pattern = function
            return through(self.profile(), lambda name: pattern.search(name) is not None)
        return through(self.profile(), function)


def _several(values: Choice) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else tuple(values)


def _unit(found: Sums) -> str:
    """What weights count."""
    if (found.weight == found.count).all():
        return "samples"
    return unit_of_periods(found.events)
