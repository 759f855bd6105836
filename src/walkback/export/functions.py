"""Stacks of functions: what is left of stacks when frames of one name are taken together.

A function that was seen at a thousand places makes a thousand frames, and formats that show names want one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walkback.arrays import I64, U64
from walkback.export.distinct import Distinct
from walkback.export.names import numbered
from walkback.export.profile import Profile


@dataclass(frozen=True, slots=True)
class Functions:
    """Distinct stacks of names, and the totals of each comm and stack."""

    names: list[object]
    first: I64
    stacks: I64
    """Numbers of names, innermost first."""
    comms: list[object]
    """Distinct texts."""
    comm: I64
    """Of each row."""
    stack: I64
    weight: U64

    @classmethod
    def of(cls, profile: Profile, names: Sequence[object]) -> Functions:
        """`names` has one for each frame of the profile."""
        distinct_names, name_of_frame = numbered(names)
        distinct = Distinct()
        merged = distinct.add(profile.stack_first, name_of_frame[profile.stack_frames])
        comms, comm_number = numbered(profile.comms)
        keys = Distinct()
        pairs = np.stack((comm_number[profile.comm], merged[profile.stack]), axis=1)
        rows = keys.add_records(pairs)
        weight = np.zeros(len(keys), np.uint64)
        np.add.at(weight, rows, profile.weight)
        table = keys.table.astype(np.int64).reshape(-1, 2)
        return cls(
            distinct_names,
            distinct.first,
            distinct.words.astype(np.int64),
            comms,
            table[:, 0],
            table[:, 1],
            weight,
        )

    @property
    def stack_weight(self) -> U64:
        """The weight of each stack, of all comms together."""
        weight = np.zeros(len(self.first) - 1, np.uint64)
        np.add.at(weight, self.stack, self.weight)
        return weight
