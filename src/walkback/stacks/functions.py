"""Stacks of functions: what is left of stacks when frames of one name are taken together.

A function that was seen at a thousand places makes a thousand frames, and formats that show names want one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

import numpy as np

from walkback.base.arrays import I64, U64, Numbers, Value, numbered, sums
from walkback.base.dataclass import dataclass
from walkback.stacks.distinct import Distinct, leading
from walkback.stacks.profile import Profile


@dataclass(frozen=True, slots=True)
class FunctionStacks(Generic[Value]):
    """Distinct stacks of names, and the totals of each comm and stack."""

    names: list[Value]
    first: I64
    stacks: I64
    """Numbers of names, innermost first."""
    comms: list[str]
    """Distinct texts."""
    comm: I64
    """Of each row."""
    stack: I64
    weight: U64

    @classmethod
    def of(cls, profile: Profile, names: Sequence[Value]) -> FunctionStacks[Value]:
        """`names` has one for each frame of the profile."""
        distinct_names, name_of_frame = numbered(names)
        distinct = Distinct()
        merged = distinct.add(profile.stack_first, name_of_frame[profile.stack_frames])
        comms, comm_number = numbered(profile.comms)
        keys = Distinct()
        pairs = np.stack((comm_number[profile.comm], merged[profile.stack]), axis=1)
        rows = keys.add_records(pairs)
        table = keys.table.astype(np.int64).reshape(-1, 2)
        return cls(
            distinct_names,
            distinct.first,
            distinct.words.astype(np.int64),
            comms,
            table[:, 0],
            table[:, 1],
            sums(rows, profile.weight, len(keys)),
        )

    @property
    def stack_weight(self) -> U64:
        """The weight of each stack, of all comms together."""
        return sums(self.stack, self.weight, len(self.first) - 1)

    @property
    def callees(self) -> I64:
        """Where in the stacks a function stands that another called: the last of each has no caller."""
        called = np.ones(len(self.stacks), np.bool_)
        called[self.first[1:][np.diff(self.first) > 0] - 1] = False
        return np.flatnonzero(called)


def functions_of(profile: Profile) -> FunctionStacks[tuple[str, str]]:
    """The stacks of functions, which have a name and a module."""
    return FunctionStacks.of(profile, list(zip(profile.frames.labels(), profile.frames.module, strict=True)))


def once_a_stack(first: I64, numbers: Numbers, weight: U64, kinds: int) -> U64:
    """The weight of the stacks that each kind of things is in; `numbers` has those of all stacks."""
    marks = leading(first, numbers, kinds)
    return sums(numbers[marks], np.repeat(weight, np.diff(first))[marks], kinds)
