"""The stacks that a function is in, who calls it there, and whom it calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from walkback.base.arrays import I64, Bools, distinct
from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.stacks.functions import FunctionStacks, functions_of, once_a_stack
from walkback.stacks.profile import Profile


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A function that calls another or is called by it."""

    name: str
    """The function."""
    module: str
    """Its file."""
    weight: int
    """The weight of the stacks in which they stand side by side; once a stack."""


@dataclass(frozen=True, slots=True, repr=False)
class Through(OneLine):
    """Stacks through the functions that were asked for."""

    functions: list[tuple[str, str]]
    """Those that were found: name and module."""
    profile: Profile
    """The stacks that one of them is in."""
    whole: int
    """The weight of all stacks, these and others."""
    own: int
    """The weight of those in which one of them is innermost."""
    callers: list[Neighbour]
    """The heaviest first."""
    callees: list[Neighbour]

    @property
    def weight(self) -> int:
        """The weight of the stacks that one of them is in."""
        return int(self.profile.weight.sum())


def through(profile: Profile, wanted: Callable[[str], bool]) -> Through:
    """The stacks with a function whose name is wanted."""
    functions = functions_of(profile)
    names = functions.names
    asked = {name: wanted(name) for name in dict.fromkeys(name for name, _ in names)}
    hit = np.array([asked[name] for name, _ in names], np.bool_)
    first, stacks, weight = functions.first, functions.stacks, functions.stack_weight
    there: Bools = hit[stacks] if len(names) else np.zeros(0, np.bool_)
    some = np.diff(first) > 0
    own = int(weight[some][there[first[:-1][some]]].sum())
    pairs = functions.callees
    callers = _neighbours(functions, pairs[there[pairs]] + 1)
    callees = _neighbours(functions, pairs[there[pairs + 1]])
    found = [name for name, is_hit in zip(names, hit.tolist(), strict=True) if is_hit]
    part = _rows_with(profile, {name for name, _ in found})
    return Through(found, part, int(profile.weight.sum()), own, callers, callees)


def _neighbours(functions: FunctionStacks[tuple[str, str]], places: I64) -> list[Neighbour]:
    """The functions at some places of the stacks, each counted once a stack: the heaviest first, and then by name."""
    begins = np.searchsorted(places, functions.first).astype(np.int64)
    names, numbers = functions.names, functions.stacks[places]
    total = once_a_stack(begins, numbers, functions.stack_weight, len(names))
    found = [Neighbour(names[number][0], names[number][1], int(total[number])) for number in distinct(numbers).tolist()]
    return sorted(found, key=lambda one: (-one.weight, one.name, one.module))


def _rows_with(profile: Profile, names: set[str]) -> Profile:
    """The rows of a profile in whose stacks one of the names is, with their stacks alone."""
    of_frame = np.array([label in names for label in profile.frames.labels()], np.bool_)
    sums = np.concatenate(([0], np.cumsum(of_frame[profile.stack_frames] if len(of_frame) else []))).astype(np.int64)
    with_it = sums[profile.stack_first[1:]] > sums[profile.stack_first[:-1]]
    return chosen_rows(profile, with_it[profile.stack])


def chosen_rows(profile: Profile, rows: Bools) -> Profile:
    """Some rows of a profile; the stacks stay as they are."""
    columns = {name: getattr(profile, name)[rows] for name in ("comm", "stack", "end", "weight", "count")}
    if profile.pid is not None and profile.tid is not None:
        columns |= {"pid": profile.pid[rows], "tid": profile.tid[rows]}
    return replace(profile, **columns, timeline=None)
