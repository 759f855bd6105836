"""The stacks that a function is in, who calls it there, and whom it calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from walkback.arrays import I64, U64, Bools
from walkback.export.distinct import leading
from walkback.export.functions import Functions
from walkback.export.profile import Profile


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A function that calls another or is called by it."""

    name: str
    module: str
    weight: int
    """Of the stacks in which they stand side by side; once a stack."""


@dataclass(frozen=True, slots=True)
class Through:
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
    frames = profile.frames
    functions = Functions.of(profile, list(zip(frames.labels(), frames.module, strict=True)))
    names = cast("list[tuple[str, str]]", functions.names)
    asked = {name: wanted(name) for name in dict.fromkeys(name for name, _ in names)}
    hit = np.array([asked[name] for name, _ in names], np.bool_)
    first, stacks, weight = functions.first, functions.stacks, functions.stack_weight
    there: Bools = hit[stacks] if len(names) else np.zeros(0, np.bool_)
    innermost = first[:-1][np.diff(first) > 0]
    alone = np.zeros(len(first) - 1, np.bool_)
    alone[np.diff(first) > 0] = there[innermost]
    # The last frame of a stack has no caller, the first calls nobody.
    inside = np.ones(len(stacks), np.bool_)
    inside[first[1:][np.diff(first) > 0] - 1] = False
    pairs = np.flatnonzero(inside)
    callers = _neighbours(first, stacks, weight, pairs[there[pairs]] + 1, names)
    callees = _neighbours(first, stacks, weight, pairs[there[pairs + 1]], names)
    found = [name for name, is_hit in zip(names, hit.tolist(), strict=True) if is_hit]
    part = _rows_with(profile, {name for name, _ in found})
    return Through(found, part, int(profile.weight.sum()), int(weight[alone].sum()), callers, callees)


def _neighbours(first: I64, stacks: I64, weight: U64, places: I64, names: list[tuple[str, str]]) -> list[Neighbour]:
    """The functions at some places of the stacks, each counted once a stack."""
    begins = np.searchsorted(places, first).astype(np.int64)
    numbers = stacks[places]
    marks = leading(begins, numbers, len(names))
    total = np.zeros(len(names), np.uint64)
    np.add.at(total, numbers[marks], np.repeat(weight, np.diff(begins))[marks])
    seen = np.unique(numbers)
    order = seen[np.argsort(np.invert(total[seen]), kind="stable")]
    return [Neighbour(names[number][0], names[number][1], int(total[number])) for number in order.tolist()]


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
