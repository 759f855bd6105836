"""What is done with arrays everywhere, against what NumPy has for it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from walkback.base.arrays import Numbers, distinct, first_of_each, ranked

CHANCE = random.Random(1)
VALUES = {
    "none": np.zeros(0, np.uint64),
    "one": np.array([7]),
    "many": np.array([CHANCE.randrange(50) for _ in range(300)], np.uint64),
    "large": np.array([CHANCE.choice((0, 2**63, 2**64 - 1)) for _ in range(20)], np.uint64),
    "signed": np.array([CHANCE.randrange(-3, 3) for _ in range(20)], np.int32),
    "truths": np.array([True, False, True]),
    "records": np.array([(1, 2), (0, 5), (1, 2)], [("a", "u8"), ("b", "u4")]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_distinct_values_are_those_of_numpy(kind: str) -> None:
    values: Numbers = VALUES[kind]
    expected, first, number = np.unique(values, return_index=True, return_inverse=True)
    assert distinct(values).tolist() == expected.tolist()
    for found, places, wanted in ((*ranked(values), number), (*first_of_each(values), first)):
        assert found.tolist() == expected.tolist()
        assert places.tolist() == wanted.tolist()
        assert found.dtype == values.dtype
