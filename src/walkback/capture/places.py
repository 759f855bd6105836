"""The places in files that stacks of a recording pass, and what the proof says of the rules there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walkback.base.arrays import I64, U64, distinct, ranked
from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.capture.perfdata.opening import RecordingInput
from walkback.capture.unwinding import Unwinding
from walkback.elf import ElfFile
from walkback.naming.modules import Modules, build_id_of
from walkback.sections.verified import Mismatch
from walkback.sections.verify import mismatches_at
from walkback.stacks.stacks import Stacks


@dataclass(frozen=True, slots=True)
class PassedMismatch:
    """A rule that is wrong where stacks pass."""

    file: str
    mismatch: Mismatch
    stacks: int
    """How many stacks have a frame there."""


class Places:
    """How many stacks have a frame at each place of each file."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._counts: dict[int, dict[int, int]] = {}
        self.stacks = 0
        """How many there were, also of those without a place in a file."""

    def add(self, stacks: Stacks, *, innermost: bool = False) -> None:
        """Count the places of these stacks, in each stack once; or only those of the innermost frames."""
        self.stacks += len(stacks)
        owner = np.repeat(np.arange(len(stacks)), np.diff(stacks.first))
        wanted = stacks.module >= 0
        if innermost:
            wanted &= np.arange(len(owner)) == stacks.first[owner]
        for number in distinct(stacks.module[wanted]).tolist():
            ours = wanted & (stacks.module == number)
            address, place = ranked(stacks.address[ours])
            pairs = distinct(place * len(stacks) + owner[ours])
            times = np.bincount(pairs // len(stacks), minlength=len(address))
            counts = self._counts.setdefault(number, {})
            for one, count in zip(address.tolist(), times.tolist(), strict=True):
                counts[one] = counts.get(one, 0) + count

    def files(self) -> Iterator[tuple[ElfFile, U64, I64]]:
        """The files that can be had, with the addresses in each and how many stacks are there."""
        for number, counts in self._counts.items():
            elf = self._modules[number].elf
            if elf is not None:
                yield elf, np.array(list(counts), np.uint64), np.array(list(counts.values()), np.int64)

    def mismatches(self) -> list[PassedMismatch]:
        """The rules of call frame information that are wrong at these places, those on most stacks first."""
        found = []
        for elf, address, count in self.files():
            try:
                wrong = list(mismatches_at(elf, address))
            except WalkbackError:  # what cannot be proved accuses nobody
                continue
            for one in wrong:
                here = (address >= np.uint64(one.address)) & (address - np.uint64(one.address) < np.uint64(one.bytes))
                found.append(PassedMismatch(elf.name, one, int(count[here].sum())))
        return sorted(found, key=lambda one: -one.stacks)


def sample_places(source: RecordingInput) -> Places:
    """Where the samples of a recording are."""
    unwinding = Unwinding(source, max_stack=1, kernel=False, lines=False)
    places = Places(unwinding.modules)
    for batch in unwinding.recording.batches():
        places.add(unwinding.walk(batch), innermost=True)
    return places


def samples_in(places: Places, elf: ElfFile) -> tuple[U64, I64]:
    """The addresses of samples in a file, and how many are at each; a copy of the file elsewhere is the same file."""
    for other, address, count in places.files():
        if _is_same(elf, other):
            return address, count
    return np.zeros(0, np.uint64), np.zeros(0, np.int64)


def _is_same(one: ElfFile, other: ElfFile) -> bool:
    ours, theirs = build_id_of(one), build_id_of(other)
    if ours is not None and theirs is not None:
        return ours == theirs
    return len(one.data) == len(other.data) and one.data[:] == other.data[:]
