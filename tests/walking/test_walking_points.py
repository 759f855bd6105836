"""Points of several parts as one, and the directory that leads to them."""

from __future__ import annotations

import numpy as np
import pytest

from walkback.walking.points import NO_STEP, Points, empty_blocks, merged


def test_a_table_joins_what_any_number_of_parts_know() -> None:
    """Against the obvious: ask each part in turn."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        parts, sizes = [], []
        for _ in range(int(rng.integers(1, 4))):
            start = np.unique(rng.integers(0, 60, int(rng.integers(0, 12))).astype(np.uint64))
            step = rng.integers(0, 5, len(start)).astype(np.uint32)
            step[rng.random(len(start)) < 0.4] = NO_STEP
            step[len(step) - 1 :] = NO_STEP
            parts.append(Points(start, step, empty_blocks()))
            sizes.append(5)
        whole = merged(parts, sizes)
        for address in range(62):
            should = None
            for number, one in enumerate(parts):
                place = int(np.searchsorted(one.start, np.uint64(address), "right")) - 1
                if place >= 0 and one.step[place] != NO_STEP:
                    should = int(one.step[place]) + 5 * number
                    break
            place = int(np.searchsorted(whole.start, np.uint64(address), "right")) - 1
            found = int(whole.step[place]) if place >= 0 and whole.step[place] != NO_STEP else None
            assert found == should


@pytest.mark.parametrize("start", [[0], [5], [2**64 - 1], [0, 2**64 - 1], [7, 8, 9, 2**63, 2**63 + 1], [1, 2, 3, 900]])
def test_directories_reach_every_point(start: list[int]) -> None:
    points = np.array(start, np.uint64)
    directory, shift = Points(points, np.zeros(len(points), np.uint32), empty_blocks()).directory()
    for address in {*start, *(max(start[0], one - 1) for one in start), (start[0] + start[-1]) // 2}:
        bucket = (address - start[0]) >> shift
        low, high = int(directory[bucket]), int(directory[bucket + 1])
        place = int(np.searchsorted(points, np.uint64(address), "right"))
        assert low <= place <= max(high, low)
    assert len(directory) <= 4 * len(start) + 4
