"""Where exceptions go on: tables of calls, written by hand and by a compiler."""

from __future__ import annotations

import random

import numpy as np
import pytest

from effort import rounds
from walkback.dwarf import _landings

OMIT, ULEB128, UDATA4 = 0xFF, 0x01, 0x03


def area(*calls: tuple[int, int, int], start: int | None = None) -> bytes:
    """An area with calls of a start, a length and a place, in ULEB128 below 128."""
    table = b"".join(bytes([*call, 0]) for call in calls)
    head = bytes([OMIT]) if start is None else bytes([UDATA4]) + start.to_bytes(4, "little")
    return head + bytes([OMIT, ULEB128, len(table)]) + table


def landings(data: bytes, *functions: tuple[int, int]) -> list[list[int]]:
    start, places = (np.array(column, np.uint64) for column in zip(*functions, strict=True))
    found: list[list[int]] = _landings.read(memoryview(data), 0x9000, False, start, places).tolist()
    return found


@pytest.mark.kernel
def test_calls_with_a_place_are_found() -> None:
    data = area((4, 5, 30), (9, 5, 0), (20, 2, 40))
    assert landings(data, (0x1000, 0x9000)) == [[0, 0x1004, 0x1009, 0x101E], [0, 0x1014, 0x1016, 0x1028]]


@pytest.mark.kernel
def test_places_can_count_from_another_start() -> None:
    data = bytes(3) + area((4, 5, 30), start=0x5000)
    assert landings(data, (0x2000, 0x8000), (0x1000, 0x9003)) == [[1, 0x1004, 0x1009, 0x501E]]


@pytest.mark.kernel
def test_damaged_areas_end_where_they_are_damaged() -> None:
    whole = area((4, 5, 30), (9, 5, 50), (20, 2, 40))
    for size in range(len(whole)):
        assert len(landings(whole[:size], (0x1000, 0x9000))) <= 3
    rng = random.Random(7)
    for _ in range(rounds(300, 30)):
        data = rng.randbytes(rng.randrange(1, 60))
        landings(data, (0x1000, 0x9000), (0, 0x9000 + len(data) - 1), (2**64 - 1, 0x9001))
