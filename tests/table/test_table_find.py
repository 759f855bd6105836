"""find and find_many say the same as a search through everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from effort import examples
from table.made import make
from walkback.table.rule import Part, PartKind, Rule

pytestmark = pytest.mark.kernel

TOP = 2**64


def model(
    ranges: list[tuple[int, int, list[int], int]], pc: int, *, sections: list[int] | None = None, section: int = -1
) -> tuple[int, int]:
    """(range, row) of an address, -1 where there is none: the range that starts last, of several the last."""
    best = -1
    for number, (start, size, _, _) in enumerate(ranges):
        if sections is not None and sections[number] != section:
            continue
        if start <= pc < start + size and (best < 0 or start >= ranges[best][0]):
            best = number
    if best < 0:
        return -1, -1
    start, _, offsets, block = ranges[best]
    offset = (pc - start) % block if block else pc - start
    before = [n for n, one in enumerate(offsets) if one <= offset]
    return best, sum(len(one[2]) for one in ranges[:best]) + before[-1] if before else -1


def interesting(ranges: list[tuple[int, int, list[int], int]]) -> list[int]:
    """The addresses where something may change, and their neighbours."""
    places = {0, 1, TOP - 2}
    for start, size, offsets, block in ranges:
        for at in (start, start + size, *(start + one for one in offsets)):
            places |= {at - 1, at, at + 1}
        if block:
            places |= {start + n * block + away for n in range(3) for away in (-1, 0, 1)}
    return sorted(one for one in places if 0 <= one < TOP - 1)


def check(ranges: list[tuple[int, int, list[int], int]], sections: list[int] | None = None, section: int = -1) -> None:
    table = make(ranges, sections=sections)
    pcs = interesting(ranges)
    found = table.find_many(np.array(pcs, np.uint64), section=section)
    expected = [model(ranges, pc, sections=sections, section=section) for pc in pcs]
    assert list(zip(found[0].tolist(), found[1].tolist(), strict=True)) == expected
    for pc, (number, row) in zip(pcs, expected, strict=True):
        one = table.find(pc, section=section)
        if number < 0:
            assert one is None
            continue
        start, size, _, block = ranges[number]
        assert (one.range, one.start, one.size) == (number, start, size)
        assert one.offset == ((pc - start) % block if block else pc - start)
        assert (one.signal, one.pauth_key) == (number % 2 == 1, number % 2)
        assert one.row == (row if row >= 0 else None)
        assert one.rule == (Rule(Part(PartKind.REGISTER, 7, row)) if row >= 0 else None)


ROWS = st.lists(st.integers(0, 40), max_size=5, unique=True).map(sorted)
START = st.one_of(
    st.integers(0, 200),
    st.integers(TOP - 200, TOP - 1),
    st.integers(2**63 - 50, 2**63 + 50),
    st.integers(0, TOP - 1),
)


def ranges_of(starts: SearchStrategy[Any], sizes: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.lists(st.tuples(starts, sizes, ROWS, st.sampled_from([0, 0, 0, 1, 7, 16])), max_size=12)


@settings(max_examples=examples(150), deadline=None)
@given(ranges_of(st.integers(0, 300), st.integers(0, 60)))
def test_close_together_and_overlapping(ranges: list[tuple[int, int, list[int], int]]) -> None:
    check(ranges)


@settings(max_examples=examples(100), deadline=None)
@given(ranges_of(START, st.one_of(st.integers(0, 80), st.sampled_from([2**32 - 1, 2**40, 2**63]))))
def test_anywhere(ranges: list[tuple[int, int, list[int], int]]) -> None:
    check([(start, min(size, TOP - 1 - start), rows, block) for start, size, rows, block in ranges])


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(0, 30), max_size=30), st.lists(st.integers(1, 30), min_size=30, max_size=30))
def test_in_order_without_overlap(gaps: list[int], sizes: list[int]) -> None:
    ranges, at = [], 1000
    for gap, size in zip(gaps, sizes, strict=False):
        at += gap
        ranges.append((at, size, [0, size // 2] if size > 1 else [0], 0))
        at += size
    check(ranges)
    check(ranges[::-1])


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_sections_of_a_relocatable_file(data: DataObject) -> None:
    ranges = data.draw(ranges_of(st.integers(0, 60), st.integers(0, 30)))
    sections = data.draw(st.lists(st.sampled_from([-1, 0, 1, 5]), min_size=len(ranges), max_size=len(ranges)))
    for section in (-1, 0, 1, 5, 6):
        check(ranges, sections, section)


def test_nothing() -> None:
    table = make([])
    assert table.find(0) is None
    assert [one.tolist() for one in table.find_many([])] == [[], []]
    assert [one.tolist() for one in table.find_many([0, 2**64 - 1])] == [[-1, -1], [-1, -1]]
    assert len(table) == 0


def test_only_empty_ranges() -> None:
    check([(10, 0, [0], 0), (10, 0, [], 0), (20, 0, [0], 16)])


def test_first_byte_last_byte_and_gap() -> None:
    table = make([(100, 10, [0], 0), (120, 10, [3], 0)])
    assert [table.find_many([pc])[0][0] for pc in (99, 100, 109, 110, 119, 120, 129, 130)] == [
        -1,
        0,
        0,
        -1,
        -1,
        1,
        1,
        -1,
    ]
    # before the first row of a range
    assert [table.find_many([pc])[1][0] for pc in (120, 122, 123)] == [-1, -1, 1]


def test_an_empty_range_hides_nothing() -> None:
    check([(10, 20, [0], 0), (10, 0, [0], 0), (15, 0, [0], 0)])


def test_an_inner_range_holds_and_then_the_outer_again() -> None:
    table = make([(0, 100, [0, 60], 0), (20, 10, [0], 0), (25, 50, [0], 0)])
    assert [int(table.find_many([pc])[0][0]) for pc in (19, 20, 24, 25, 74, 75, 99)] == [0, 1, 1, 2, 2, 0, 0]
    assert table.find(75).row == 1


def test_of_ranges_with_one_start_the_last_holds() -> None:
    table = make([(10, 10, [0], 0), (10, 5, [0], 0)])
    assert [int(table.find_many([pc])[0][0]) for pc in (10, 14, 15, 19)] == [1, 1, 0, 0]
    table = make([(10, 5, [0], 0), (10, 10, [0], 0)])
    assert [int(table.find_many([pc])[0][0]) for pc in (10, 14, 15, 19)] == [1, 1, 1, 1]


def test_a_range_of_four_gigabytes_and_more() -> None:
    table = make([(0, 2**40, [0, 2**32 - 1], 0), (2**41, 2**33, [0, 5], 16)])
    assert table.find(2**32 - 2).row == 0
    assert table.find(2**40 - 1).row == 1
    assert table.find(2**41 + 2**33 - 16 + 4).row == 2
    assert table.find(2**41 + 2**33 - 1).row == 3


def test_addresses_outside_of_64_bits() -> None:
    table = make([(0, 16, [0], 0)])
    assert table.find(-1) is None
    assert table.find(2**64) is None


def test_the_last_address_of_all() -> None:
    table = make([(TOP - 16, 16, [0], 0)])
    assert table.find(TOP - 2) is not None
    assert table.find(TOP - 1) is not None


def test_a_range_does_not_go_on_at_address_0() -> None:
    table = make([(TOP - 16, 100, [0], 0), (50, 10, [0], 0)])
    assert table.find(0) is None
    assert table.find(50).range == 1
    assert table.find(TOP - 8).range == 0


def test_very_unequal_distances() -> None:
    starts = [0, 1, 2, 3, 2**20, 2**40, 2**40 + 1, 2**60, 2**63, 2**63 + 1, TOP - 20]
    check([(start, 1, [0], 0) for start in starts])
    check([(start, 10, [0, 5], 0) for start in starts])


def test_many_ranges() -> None:
    random = np.random.default_rng(1)
    count = 3000
    sizes = random.integers(1, 50, count)
    starts = np.cumsum(random.integers(0, 20, count) + sizes) - sizes + 2**40
    order = random.permutation(count)
    table = make([(int(starts[i]), int(sizes[i]), [0], 0) for i in order])
    pcs = random.integers(2**40 - 10, int(starts[-1]) + 60, 20000).astype(np.uint64)
    index = np.searchsorted(starts, pcs, "right") - 1
    inside = (index >= 0) & (pcs - starts[index].astype(np.uint64) < sizes[index].astype(np.uint64))
    back = np.empty(count, np.int64)
    back[order] = np.arange(count)
    expected = np.where(inside, back[index], -1)
    assert np.array_equal(table.find_many(pcs)[0], expected)
    assert np.array_equal(table.find_many(pcs[::-1])[0], expected[::-1])


def test_many_nested_ranges() -> None:
    count = 2000
    table = make([(n, 2 * (count - n), [0], 0) for n in range(count)])
    ranges = table.find_many(np.arange(2 * count))[0]
    assert ranges[:count].tolist() == list(range(count))
    assert ranges[count:].tolist() == [min(count - 1, 2 * count - pc - 1) for pc in range(count, 2 * count)]


def test_rule_texts() -> None:
    table = make([(0, 16, [0, 8], 0)])
    assert table.rule_texts() == ["CFA = rsp, RA unchanged, FP unchanged", "CFA = rsp+1, RA unchanged, FP unchanged"]
    assert table.rule(1).cfa.offset == 1


def test_program_counters_are_integers_of_any_size_and_shape() -> None:
    table = make([(100, 10, [0], 0), (2**64 - 10, 10, [0], 0)])
    for pcs in ([[100, 2**64 - 1], [-1, 2**64]], np.array([[100, 2**64 - 1], [-1, 2**64]], object)):
        assert table.find_many(pcs)[0].tolist() == [[0, 1], [-1, -1]]
    assert table.find_many(np.array([-10, 100], np.int64))[1].tolist() == [-1, 0]
    assert table.find_many(100)[0].tolist() == 0
    wrong: Any
    for wrong in ([100.5], np.array([100.0]), ["100"]):
        with pytest.raises(TypeError):
            table.find_many(wrong)
    wrong = 100.5
    with pytest.raises(TypeError):
        table.find(wrong)
