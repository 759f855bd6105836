"""Rules of code that memory has many copies of: those of each known form of CPython's trampolines."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from walkback.base.arch import AMD64
from walkback.stacks.stacks import How
from walkback.table.rule import PartKind
from walkback.walking.copies import Copies, rules_of_code, rules_of_copies
from walkback.walking.moduletable import Only, table_of_rules
from walking.copied import AARCH64_FORMS, AMD64_FORMS, Form
from walking.stacksource import BASE

FORMS = AMD64_FORMS | AARCH64_FORMS


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_rules_are_those_of_each_place(form: Form) -> None:
    table = rules_of_code(form.code, form.machine, "little")
    assert table is not None
    found: dict[int, str] = {}
    for place in range(len(form.code)):
        at = table.find(place)
        assert at is not None
        assert at.rule is not None
        if at.rule.text(form.machine) not in list(found.values())[-1:]:
            found[place] = at.rule.text(form.machine)
    assert found == form.rules
    assert table.find(len(form.code)) is None


@pytest.mark.parametrize("distance", [11, 16])
def test_each_copy_has_them_and_what_is_between_has_none(distance: int) -> None:
    form = AMD64_FORMS["sub"]
    one = rules_of_code(form.code, form.machine, "little")
    assert one is not None
    copies = Copies(np.array([0x1000, 0x5000], np.uint64), np.array([3, 1]), distance)
    table = rules_of_copies(one, copies)
    for start in (0x1000, 0x1000 + distance, 0x1000 + 2 * distance, 0x5000):
        for place in range(distance):
            at, wanted = table.find(start + place), one.find(place)
            assert at is not None
            assert at.rule is not None
            if wanted is None:
                assert at.rule.cfa.kind is PartKind.INEXPRESSIBLE
            else:
                assert at.rule == wanted.rule
    for place in (0xFFF, 0x1000 + 3 * distance, 0x4FFF, 0x5000 + distance):
        assert table.find(place) is None


@pytest.mark.parametrize("only", [None, *get_args(Only)])
def test_all_ways_to_walk_have_them_but_frame_pointers(only: Only | None) -> None:
    one = rules_of_code(AMD64_FORMS["sub"].code, AMD64, "little")
    assert one is not None
    table = table_of_rules(rules_of_copies(one, Copies(np.array([BASE], np.uint64), np.array([2]), 11)), only)
    assert set(table.steps.how.tolist()) <= {How.CODE, How.SIGNAL}
    assert (len(table.points) == 0) is (only == "fp")
