"""The accuracy of each way of walking a recording.

Every sample is walked by call frame information, which is the reference, and by each way that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np

from walkback.base.arrays import I64, distinct
from walkback.base.errors import ArgumentError
from walkback.capture.perfdata.opening import RecordingInput
from walkback.capture.perfdata.recording import Recording
from walkback.capture.places import PassedMismatch, Places
from walkback.capture.walker import walker_for
from walkback.elf import FileSearch
from walkback.naming.modules import Modules
from walkback.stacks.accuracy import Accuracy
from walkback.stacks.distinct import Distinct
from walkback.stacks.stacks import End, Stacks
from walkback.walking._agree import common
from walkback.walking.moduletable import Only
from walkback.walking.walker import LIMIT

METHODS: dict[str, Only | None] = {"auto": None, **{name: name for name in get_args(Only)}}
"""`auto` takes for each address the best there is."""


class Comparing:
    """A recording being walked in several ways; iterated once, which fills `rows`."""

    def __init__(
        self,
        source: RecordingInput,
        methods: Sequence[str],
        *,
        max_stack: int = LIMIT,
        search: FileSearch | None = None,
        cache: bool = True,
    ) -> None:
        """`methods` are names of `METHODS`."""
        if isinstance(methods, str):
            methods = [methods]
        if unknown := set(methods) - METHODS.keys():
            raise ArgumentError(f"there is no method {', '.join(sorted(unknown))}")
        self.modules = Modules(search)
        self.recording = Recording.open(source, self.modules)
        self.rows = [Accuracy(method) for method in methods]
        self.complete = 0
        """Stacks that are complete by call frame information."""
        self._met: set[int] = set()
        self._places = Places(self.modules)
        self._walkers = {
            method: walker_for(self.recording, self.modules, cache=cache, only=METHODS[method], max_stack=max_stack)
            for method in dict.fromkeys(("cfi", *methods))
        }

    def __iter__(self) -> Iterator[int]:
        """Walk all samples; gives the number of those of each batch."""
        for batch in self.recording.batches():
            found = {name: walker.walk(batch.samples, self.recording.spaces) for name, walker in self._walkers.items()}
            self.complete += int((found["cfi"].end == End.COMPLETE).sum())
            self._met.update(distinct(found["cfi"].module).tolist())
            self._places.add(found["cfi"])
            for row in self.rows:
                _add(row, found[row.method], found["cfi"])
                row.nanoseconds = self._walkers[row.method].nanoseconds
            yield len(batch)

    def mismatches(self) -> list[PassedMismatch]:
        """The rules of call frame information that the machine code contradicts, where stacks pass."""
        return self._places.mismatches()

    @property
    def troubles(self) -> list[str]:
        """What could not be had, a line each."""
        met = [self.modules[number] for number in sorted(self._met) if number >= 0]
        missing = [f"{module.name}: {self.modules.trouble(module)}" for module in met if module.trouble]
        walkers = [line for walker in self._walkers.values() for line in walker.troubles]
        return [*self.recording.troubles, *dict.fromkeys(walkers), *missing, *self.modules.doubts]


def accuracy(
    source: RecordingInput,
    methods: Sequence[str] = ("sframe", "cfi", "fp"),
    *,
    max_stack: int = LIMIT,
    search: FileSearch | None = None,
) -> list[Accuracy]:
    """The accuracy of each method on a whole recording.

    >>> [row] = walkback.capture.accuracy("perf.data", ["fp"])
    >>> row.method, row.stacks
    ('fp', 6)
    """
    comparing = Comparing(source, methods, max_stack=max_stack, search=search)
    for _ in comparing:
        pass
    return comparing.rows


def _add(row: Accuracy, stacks: Stacks, reference: Stacks) -> None:
    """The stacks of one way beside the reference's."""
    walked = reference.end != End.NO_REGISTERS
    row.stacks += int(walked.sum())
    row.frames += len(stacks.pc)
    row.reference_frames += len(reference.pc)
    for column, counts in ((stacks.end[walked], row.ends), (stacks.how, row.hows)):
        for value, count in zip(*(one.tolist() for one in np.unique(column, return_counts=True)), strict=True):
            counts[value] = counts.get(value, 0) + count
    ours, theirs = Distinct(), Distinct()
    pairs = np.stack((ours.add(stacks.first, stacks.pc), theirs.add(reference.first, reference.pc)), axis=1)
    distinct = Distinct()
    number = distinct.add_records(pairs[walked])
    if not len(number):
        return
    agreeing = _agreeing(distinct, ours, theirs)
    times = np.bincount(number)
    row.agreeing += int((agreeing * times).sum())
    own, its = distinct.table.astype(np.int64).T
    own_size, its_size = np.diff(ours.first)[own], np.diff(theirs.first)[its]
    row.exact += int(times[(agreeing == own_size) & (agreeing == its_size)].sum())
    row.complete += int((walked & (reference.end == End.COMPLETE) & _same_outermost(stacks, reference)).sum())


def _agreeing(pairs: Distinct, ours: Distinct, theirs: Distinct) -> I64:
    """How many frames each pair of distinct stacks has in common."""
    found = np.zeros(len(pairs), np.int64)
    row = np.zeros(int(np.diff(theirs.first).max(initial=0)) + 1, np.int64)
    common(pairs.table, ours.first, ours.words, theirs.first, theirs.words, row, found)
    return found


def _same_outermost(stacks: Stacks, reference: Stacks) -> np.ndarray:
    """Which stacks have the outermost frame of the reference's."""
    some = (np.diff(stacks.first) > 0) & (np.diff(reference.first) > 0)
    same = np.zeros(len(stacks), np.bool_)
    same[some] = stacks.pc[stacks.first[1:][some] - 1] == reference.pc[reference.first[1:][some] - 1]
    return same
