"""What the numbers of a walk must be to each other."""

from __future__ import annotations

import numpy as np

from walkback.base.arch import MACHINES
from walkback.stacks.stacks import End, How
from walkback.walking._walk import WANTED
from walkback.walking.abi import ABIS, BuiltIn, Flag
from walkback.walking.steps import built_in


def test_the_steps_before_all_tables_have_their_numbers() -> None:
    for machine in MACHINES:
        how = built_in(machine).how.tolist()
        assert how[: BuiltIn.CONTEXT] == [How[one.name] for one in BuiltIn if one < BuiltIn.CONTEXT]
        assert how[BuiltIn.CONTEXT :] == [How.SIGNAL] * len(ABIS[machine].trampolines)


def test_what_is_wanted_first_is_no_end() -> None:
    assert WANTED not in set(End)


def test_flags_have_room_in_their_column() -> None:
    assert max(Flag) <= np.iinfo(np.uint8).max
