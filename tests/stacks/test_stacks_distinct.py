"""Equal lists get equal numbers in order of first appearance, whatever their lengths and however they come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import integer

from effort import examples
from walkback.base.arrays import I64, U64
from walkback.stacks.distinct import Distinct, leading

pytestmark = pytest.mark.kernel

WORDS = st.sampled_from([0, 1, 2, 3, 2**31, 2**32, 2**63, 2**64 - 1])


def csr(lists: list[list[int]]) -> tuple[I64, U64]:
    first = np.concatenate(([0], np.cumsum([len(one) for one in lists]))).astype(np.int64)
    return first, np.array([word for one in lists for word in one], np.uint64)


def numbers_of(lists: Sequence[Sequence[int]]) -> tuple[list[int], list[tuple[int, ...]]]:
    known: dict[tuple[int, ...], int] = {}
    return [known.setdefault(tuple(one), len(known)) for one in lists], list(known)


def kept(distinct: Distinct) -> list[tuple[int, ...]]:
    first, words = distinct.first.tolist(), distinct.words.tolist()
    return [tuple(words[first[i] : first[i + 1]]) for i in range(len(distinct))]


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.lists(WORDS, max_size=4), max_size=40), st.integers(0, 40))
def test_lists_in_two_parts(lists: list[list[int]], cut: int) -> None:
    distinct = Distinct()
    found = [*distinct.add(*csr(lists[:cut])).tolist(), *distinct.add(*csr(lists[cut:])).tolist()]
    assert (found, kept(distinct)) == numbers_of(lists)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[WORDS] * width), min_size=1, max_size=40)))
def test_records(rows: list[tuple[int, ...]]) -> None:
    distinct = Distinct()
    found = distinct.add_records(np.array(rows, np.uint64)).tolist()
    assert (found, distinct.table.tolist()) == (numbers_of(rows)[0], [list(one) for one in numbers_of(rows)[1]])


def test_growth_in_lists_and_words() -> None:
    lists = [[number] * (number % 23) + [number] for number in range(3000)]
    distinct = Distinct()
    assert distinct.add(*csr(lists)).tolist() == list(range(3000))
    assert distinct.add(*csr(lists[::-1])).tolist() == list(range(2999, -1, -1))
    assert kept(distinct) == [tuple(one) for one in lists]


def test_one_list_longer_than_all_the_room_there_is() -> None:
    lists = [[1], list(range(50_000)), [1], list(range(50_000))]
    distinct = Distinct()
    assert distinct.add(*csr(lists)).tolist() == [0, 1, 0, 1]
    assert kept(distinct)[1] == tuple(range(50_000))


def test_records_of_lists_and_their_order_of_words_are_told_apart() -> None:
    lists = [[], [0], [0, 0], [0, 1], [1, 0], [1], [0, 0, 0]]
    distinct = Distinct()
    assert distinct.add(*csr(lists)).tolist() == list(range(7))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_words_of_every_width(dtype: type[integer]) -> None:
    distinct = Distinct()
    assert distinct.add_records(np.array([[5, 6], [5, 6], [6, 5]], dtype)).tolist() == [0, 0, 1]
    assert distinct.add(np.array([0, 2]), np.array([6, 5], dtype)).tolist() == [1]


def test_columns_that_do_not_lie_together() -> None:
    rows = np.arange(24, dtype=np.uint64).reshape(4, 6)[:, ::3]
    distinct = Distinct()
    distinct.add_records(rows)
    assert distinct.table.tolist() == rows.tolist()


def test_nothing() -> None:
    distinct = Distinct()
    assert distinct.add(np.zeros(1, np.int64), np.zeros(0, np.uint64)).tolist() == []
    assert distinct.add_records(np.zeros((0, 2), np.uint64)).tolist() == []
    assert (len(distinct), distinct.table.size, distinct.words.size, distinct.first.tolist()) == (0, 0, 0, [0])


@pytest.mark.parametrize("first", [[], [-1, 2], [0, 5], [2, 1], [0, 3, 1]])
def test_offsets_that_lead_elsewhere(first: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        Distinct().add(np.array(first, np.int64), np.zeros(4, np.uint64))


def test_records_without_words() -> None:
    with pytest.raises(ValueError, match="at least one word"):
        Distinct().add_records(np.zeros((3, 0), np.uint64))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(st.integers(0, 5), max_size=8), max_size=12))
def test_the_first_of_each_kind_in_a_list(lists: list[list[int]]) -> None:
    first, words = csr(lists)
    expected = [word not in one[:at] for one in lists for at, word in enumerate(one)]
    assert leading(first, words.astype(np.int64), 6).tolist() == expected
