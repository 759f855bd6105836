"""Many addresses at once have the names that one address alone has."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from symbols.indexed import FUNC, NOTYPE, elf_of, index_of
from walkback.elf import layout
from walkback.symbols import SymbolIndex
from walkback.symbols.holders import LastAbove
from walkback.symbols.spans import SettledSpans

TOP = 2**64 - 1
SYMBOLS = st.lists(
    st.tuples(
        st.integers(0xFF0, 0x1030) | st.sampled_from([0, 0x3000, 0x3FFF, TOP - 3, TOP]),
        st.integers(0, 40) | st.sampled_from([0, TOP]),
        st.sampled_from([FUNC, NOTYPE]),
        st.sampled_from([1, 2, 3, 99]),
    ),
    max_size=24,
)
EDGES = [0, 1, 0xFEF, 0x1FFF, 0x2000, 0x2FFF, 0x3000, 0x3FFF, 0x4000, TOP - 4, TOP - 1, TOP]


def described(index: SymbolIndex, addresses: list[int], *, sized: bool) -> list[str | None]:
    asked = np.array(addresses, np.uint64)
    rows = index.holders(asked, sized=sized)
    found = []
    for address, name, start in zip(addresses, index.names_of(rows), index.starts(rows).tolist(), strict=True):
        offset = address - start
        found.append(f"{name}+{offset:#x}" if name is not None and offset else name)
    return found


class TestHolders:
    @settings(max_examples=examples(300), deadline=None)
    @given(SYMBOLS)
    def test_they_agree_with_describe(self, symbols: list[tuple[int, int, int, int]]) -> None:
        entries = [
            (f"f{number}", value, {"size": size, "kind": kind, "section": section})
            for number, (value, size, kind, section) in enumerate(symbols)
        ]
        index = index_of(*entries)
        addresses = [*range(0xFE8, 0x1060), *EDGES]
        for sized in (False, True):
            expected = [index.describe(address, sized=sized) for address in addresses]
            assert described(index, addresses, sized=sized) == expected

    def test_deep_nesting_is_no_slower(self) -> None:
        depth = 20_000
        index = index_of(*[(f"f{n}", 0x10000 + n, {"size": 2 * (depth - n)}) for n in range(depth)])
        addresses = np.arange(0x10000, 0x10000 + 2 * depth, dtype=np.uint64)
        rows = index.holders(addresses).tolist()
        for address, row in list(zip(addresses.tolist(), rows, strict=True))[:: depth // 16]:
            away = address - 0x10000
            assert row == min(away, 2 * depth - away - 1, depth - 1)

    def test_nothing_and_object_files(self) -> None:
        assert index_of().holders(np.array([1, 2])).tolist() == [-1, -1]
        assert index_of().starts(np.array([-1])).tolist() == [0]
        assert index_of().names_of(np.array([-1])) == [None]
        assert index_of(("f", 0x1000)).holders(np.zeros(0, np.uint64)).tolist() == []
        index = SymbolIndex(elf_of([("f", 0, {"size": 8})], kind=layout.ET_REL))
        assert index.holders(np.array([0, 4])).tolist() == [-1, -1]


class TestLastAbove:
    @settings(max_examples=examples(300), deadline=None)
    @given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.lists(st.integers(0, 10), max_size=8))
    def test_it_finds_what_a_search_finds(self, values: list[int], bounds: list[int]) -> None:
        tree = LastAbove(np.array(values, np.uint64))
        asked = [(row, bound) for row in range(-1, len(values)) for bound in bounds]
        rows = np.array([row for row, _ in asked], np.int64)
        found = tree.find(rows, np.array([bound for _, bound in asked], np.uint64)).tolist()
        expected = [
            max((place for place in range(row + 1) if values[place] > bound), default=-1) for row, bound in asked
        ]
        assert found == expected


class TestSpans:
    @settings(max_examples=examples(300), deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=20))
    def test_the_later_range_holds(self, ranges: list[tuple[int, int]]) -> None:
        start = np.array([first for first, _ in ranges], np.uint64)
        end = start + np.array([size for _, size in ranges], np.uint64)
        expected = [-1] * 80
        for number, (first, size) in enumerate(ranges):
            expected[first : first + size] = [number] * size
        spans = SettledSpans(start, end)
        assert spans.find(np.arange(80, dtype=np.uint64)).tolist() == expected
        assert (spans.start[1:] >= spans.end[:-1]).all()
