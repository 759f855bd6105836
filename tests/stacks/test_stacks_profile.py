"""Totals count every sample once, marks say where stacks are not complete, and the tree keeps every path."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from effort import examples
from profiles import Recording
from walkback.base.arrays import Numbers
from walkback.stacks.profile import Profile, Totals, chosen_stacks, unit_of_periods
from walkback.stacks.stacks import End
from walkback.stacks.tree import PrefixTree

pytestmark = pytest.mark.kernel

SAMPLES = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 4), st.integers(0, 2**40), st.sampled_from(list(End)), st.integers(-1, 3)
    ),
    max_size=40,
)


@settings(max_examples=examples(60), deadline=None)
@given(SAMPLES, st.integers(0, 40), st.booleans())
def test_totals(samples: list[tuple[int, int, int, End, int]], cut: int, threads: bool) -> None:
    totals = Totals(threads=threads)
    for part in (samples[:cut], samples[cut:]):
        table = np.array(part, np.int64).reshape(-1, 5)
        totals.add(table[:, 0], table[:, 1], table[:, 2], end=table[:, 3], pid=table[:, 4], tid=-table[:, 4])
    weight: Counter[Any]
    count: Counter[Any]
    weight, count = Counter(), Counter()
    for comm, stack, its, end, pid in samples:
        key = (comm, stack, int(end), *((pid, -pid) if threads else ()))
        weight[key] += its
        count[key] += 1
    columns = [totals.comm, totals.stack, totals.end, *((totals.pid, totals.tid) if threads else ())]
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    assert dict(zip(keys, totals.weight.tolist(), strict=True)) == weight
    assert dict(zip(keys, totals.count.tolist(), strict=True)) == count


def test_totals_of_many_rows() -> None:
    totals = Totals()
    for _ in range(2):
        totals.add(np.zeros(1000, np.int32), np.arange(1000))
    assert totals.count.tolist() == totals.weight.tolist() == [2] * 1000


def test_totals_without_samples() -> None:
    totals = Totals(threads=True)
    assert totals.pid is not None
    columns: tuple[Numbers, ...] = (totals.comm, totals.stack, totals.end, totals.pid, totals.weight)
    assert [len(one) for one in columns] == [0] * 5


def stacks_of(profile: Profile) -> list[list[str]]:
    first, frames = profile.stack_first.tolist(), profile.stack_frames.tolist()
    return [
        [profile.frames.label(frame) for frame in frames[first[stack] : first[stack + 1]]]
        for stack in profile.stack.tolist()
    ]


def test_incomplete_stacks_are_marked() -> None:
    samples = [("c", [0, 1]), ("c", [0, 1]), ("c", []), ("c", [1])]
    recording = Recording(["f", "g"], ["", ""], samples, ends=[End.COMPLETE, End.NO_TABLE, End.NO_REGISTERS, 200])
    marked = recording.profile(timeline=True).marked()
    expected = [
        ["f", "g"],
        ["f", "g", "[incomplete: no-table]"],
        ["[incomplete: no-registers]"],
        ["g", "[incomplete: unknown]"],
    ]
    assert stacks_of(marked) == expected
    assert marked.timeline is not None
    assert marked.timeline.stack.tolist() == marked.stack.tolist()


def test_complete_stacks_are_left_alone() -> None:
    profile = Recording(["f"], [""], [("c", [0])]).profile()
    assert profile.marked() is profile


STACKS = st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=15)


@settings(max_examples=examples(60), deadline=None)
@given(STACKS, st.data())
def test_the_tree_has_every_prefix_once(stacks: list[list[int]], data: DataObject) -> None:
    first = np.concatenate(([0], np.cumsum([len(one) for one in stacks]))).astype(np.int64)
    frames = np.array([frame for one in stacks for frame in one], np.int64)
    tree = PrefixTree.of(first, frames)
    paths: list[Any] = []
    for node in range(len(tree)):
        parent = int(tree.parent[node])
        assert parent < node
        paths.append(((*paths[parent],) if parent >= 0 else ()) + (int(tree.frame[node]),))
    prefixes = {tuple(one[::-1][:size]) for one in stacks for size in range(1, len(one) + 1)}
    assert len(set(paths)) == len(paths)
    assert set(paths) == prefixes
    assert [paths[node] if node >= 0 else () for node in tree.node.tolist()] == [tuple(one[::-1]) for one in stacks]
    weight = np.array([data.draw(st.integers(0, 9)) for _ in stacks], np.uint64)
    for path, own in zip(paths, tree.self_weight(weight).tolist(), strict=True):
        assert own == sum(one for one, stack in zip(weight.tolist(), stacks, strict=True) if tuple(stack[::-1]) == path)


def test_chosen_stacks() -> None:
    first, frames = chosen_stacks(np.array([0, 2, 2, 5]), np.array([1, 2, 3, 4, 5]), np.array([2, 0, 1, 2]))
    assert (first.tolist(), frames.tolist()) == ([0, 3, 5, 5, 8], [3, 4, 5, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("symbol", "module", "label"),
    [
        ("f", "/lib/x.so", "f"),
        (None, "/lib/x.so", "[x.so]"),
        ("", "[vdso]", "[vdso]"),
        (None, "", "[unknown]"),
        (None, "/", "[/]"),
    ],
)
def test_labels(symbol: str | None, module: str, label: str) -> None:
    frames = Recording([symbol], [module], []).frames
    assert frames.labels() == [frames.label(0)] == [label]


def test_what_periods_count_follows_from_the_events() -> None:
    assert unit_of_periods(["cpu-clock:u", "task-clock", "nanoseconds"]) == "nanoseconds"
    assert unit_of_periods(["cycles:u"]) == "cycles:u"
    assert unit_of_periods(["cpu-clocks"]) == "cpu-clocks"
    assert unit_of_periods(["cpu-clock", "page-faults"]) == unit_of_periods([]) == "weight"
