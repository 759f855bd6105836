"""Settled tables say the same as the tables they come from."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from effort import examples
from table.made import make
from walkback.table.settle import settled
from walkback.table.table import UnwindTable

pytestmark = pytest.mark.kernel

TOP = 2**64
RANGES = st.lists(
    st.tuples(
        st.integers(0, 80),
        st.integers(0, 40),
        st.lists(st.integers(0, 45), max_size=5).map(sorted),
        st.sampled_from([0, 0, 0, 1, 4, 7, 16]),
    ),
    max_size=9,
)
SECTIONS = (-1, 0, 1, 5)


def said(table: UnwindTable, pc: int, section: int = -1) -> tuple[int, bool, int, int] | None:
    """What holds at an address: the origin of the range, its marks, and the rule's number."""
    ranges, rows = table.find_many([pc], section=section)
    number, row = int(ranges[0]), int(rows[0])
    if number < 0:
        return None
    marks = (bool(table.range_signal[number]), int(table.range_pauth_key[number]))
    return int(table.range_origin[number]), *marks, int(table.row_rule[row]) if row >= 0 else -1


def with_few_rules(table: UnwindTable, count: int) -> UnwindTable:
    table.row_rule %= np.uint32(count)
    return table


def check_plain(table: UnwindTable) -> None:
    """Sorted, disjoint, not empty, with rows in order that hold somewhere."""
    size, start = table.range_size, table.range_start
    assert (size > 0).all()
    same = table.range_section[1:] == table.range_section[:-1]
    assert (table.range_section[1:] >= table.range_section[:-1]).all()
    assert (start[1:][same] >= (start + size)[:-1][same]).all()
    assert table.range_first_row.tolist() == (np.cumsum(table.range_rows) - table.range_rows).tolist()
    assert table.range_rows.sum() == len(table.row_offset) == len(table.row_rule)
    for number in range(len(table)):
        first = int(table.range_first_row[number])
        offsets = table.row_offset[first : first + int(table.range_rows[number])].tolist()
        block = int(table.range_block[number])
        assert offsets == sorted(set(offsets))
        assert not offsets or offsets[-1] < min(int(size[number]), block or 2**64)


def check(ranges: list[tuple[int, int, list[int], int]], sections: list[int] | None = None, rules: int = 1000) -> None:
    table = with_few_rules(make(ranges, sections=sections), rules)
    plain, merged = settled(table), settled(table, merge=True)
    check_plain(plain)
    check_plain(merged)
    for section in SECTIONS if sections else (-1,):
        for pc in range(135):
            expected = said(table, pc, section)
            assert said(plain, pc, section) == expected
            assert said(merged, pc, section) == expected


@settings(max_examples=examples(120), deadline=None)
@given(RANGES, st.sampled_from([2, 1000]))
def test_settled_tables_say_the_same_at_every_address(
    ranges: list[tuple[int, int, list[int], int]], rules: int
) -> None:
    check(ranges, rules=rules)


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_settled_tables_of_several_sections(data: DataObject) -> None:
    ranges = data.draw(RANGES)
    check(ranges, data.draw(st.lists(st.sampled_from(SECTIONS), min_size=len(ranges), max_size=len(ranges))))


def test_nothing() -> None:
    for ranges in ([], [(10, 0, [0], 0)]):
        plain = settled(make(ranges))
        assert len(plain) == 0


def test_a_range_around_another_becomes_two() -> None:
    plain = settled(make([(0, 100, [0, 60], 0), (20, 10, [0], 0)]))
    assert plain.range_start.tolist() == [0, 20, 30]
    assert plain.range_size.tolist() == [20, 10, 70]
    assert plain.range_origin.tolist() == [0, 1, 0]
    assert plain.row_offset.tolist() == [0, 0, 0, 30]
    assert plain.row_rule.tolist() == [0, 2, 0, 1]


def test_a_piece_of_a_block_ends_where_the_block_does() -> None:
    plain = settled(make([(0, 64, [0, 11], 16), (18, 4, [0], 0)]))
    assert plain.range_start.tolist() == [0, 18, 22, 32]
    assert plain.range_block.tolist() == [16, 0, 0, 16]
    assert plain.row_offset.tolist() == [0, 11, 0, 0, 5, 0, 11]


def test_merging_leaves_out_rows_that_say_the_same() -> None:
    table = with_few_rules(make([(0, 40, [0, 4, 8, 12], 0), (40, 10, [0], 0)]), 2)
    table.row_rule[:] = [0, 0, 1, 1, 1]
    merged = settled(table, merge=True)
    assert merged.row_offset.tolist() == [0, 8, 0]
    assert settled(table).row_offset.tolist() == [0, 4, 8, 12, 0]


def test_of_rows_with_one_offset_the_last_holds() -> None:
    plain = settled(make([(0, 40, [0, 0, 4, 4], 0)]))
    assert (plain.row_offset.tolist(), plain.row_rule.tolist()) == ([0, 4], [1, 3])


def test_rows_beyond_the_block_hold_nowhere() -> None:
    check([(0, 64, [0, 5, 20], 16), (70, 3, [1], 16)])


def test_the_end_of_the_address_space() -> None:
    table = make([(TOP - 40, 40, [0, 5], 0), (TOP - 10, 100, [0], 0), (TOP - 100, 50, [0, 3], 16)])
    plain = settled(table)
    assert plain.range_start.tolist() == [TOP - 100, TOP - 40, TOP - 10]
    assert plain.range_size.tolist() == [50, 30, 10]
    for pc in range(TOP - 101, TOP):
        assert said(plain, pc) == said(table, pc)


def test_ranges_larger_than_offsets() -> None:
    table = make([(0, 2**63, [0, 2**32 - 1], 0), (2**40, 16, [0], 0), (2**62, 2**63, [0], 0)])
    plain = settled(table)
    for pc in (0, 2**32 - 2, 2**32 - 1, 2**40 - 1, 2**40, 2**40 + 16, 2**62 - 1, 2**62, 2**63 + 5, 2**63 + 2**62 - 1):
        assert said(plain, pc) == said(table, pc)


@pytest.mark.whole
def test_many_overlapping_ranges_are_settled_quickly(interpreted: bool) -> None:
    count = 300 if interpreted else 20_000
    nested = [(n, 2 * (count - n), list(range(0, 2 * (count - n), 1 + count // 4)), 0) for n in range(count)]
    tracemalloc.start()
    for ranges in (
        nested,
        [(4 * n, 64, [0, 1, 2, 3], 0) for n in range(count)],
        [(0, 8 * count, list(range(count)), 0)] + [(8 * n + 3, 2, [0], 0) for n in range(count)],
        [(0, 8 * count, [0, 5, 9], 16)] + [(8 * n + 3, 2, [0], 0) for n in range(count)],
        [(0, count, [0], 0)] * count,
    ):
        table = make(ranges)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        began = time.process_time()
        plain = settled(table)
        assert time.process_time() - began < 10
        size = len(table) + len(table.row_offset) + len(plain)
        assert tracemalloc.get_traced_memory()[1] - before < (1 << 20) + 600 * size
    tracemalloc.stop()


def test_a_row_behind_the_end_of_a_cut_block_goes() -> None:
    check([(0, 1, [1], 4)], rules=2)
