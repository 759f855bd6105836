"""The prefix tree of stacks, against one made of dictionaries."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from effort import rounds
from walkback.stacks.tree import PrefixTree

REST = 99
Path = tuple[int, ...]


def some_stacks(rng: random.Random) -> list[Path]:
    """Stacks, innermost first."""
    kinds = rng.choice((1, 2, 5))
    return list({tuple(rng.choices(range(kinds), k=rng.randrange(7))) for _ in range(rng.randrange(1, 40))})


def tree_of(stacks: list[Path]) -> PrefixTree:
    first = np.cumsum([0, *map(len, stacks)])
    return PrefixTree.of(first, np.array([frame for stack in stacks for frame in stack], np.int64))


def paths(tree: PrefixTree) -> list[Path]:
    """Of each node the frames from the outermost one to its own."""
    found: list[Path] = []
    for parent, frame in zip(tree.parent.tolist(), tree.frame.tolist(), strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), frame))
    return found


def weigh(stacks: list[Path], weights: list[int]) -> Counter[Path]:
    """What each node weighs with all below it."""
    found: Counter[Path] = Counter()
    for stack, weight in zip(stacks, weights, strict=True):
        outer = stack[::-1]
        for depth in range(1, len(outer) + 1):
            found[outer[:depth]] += weight
    return found


def test_each_prefix_is_there_once() -> None:
    rng = random.Random(1)
    for _ in range(rounds(200, 40)):
        stacks = some_stacks(rng)
        tree = tree_of(stacks)
        found = paths(tree)
        assert Counter(found) == Counter(
            {stack[::-1][:depth] for stack in stacks for depth in range(1, len(stack) + 1)}
        )
        assert [found[node] if node >= 0 else () for node in tree.node.tolist()] == [stack[::-1] for stack in stacks]


def test_groups_stand_around_the_stacks_that_they_have() -> None:
    rng = random.Random(2)
    for _ in range(rounds(300, 60)):
        stacks, groups = some_stacks(rng), rng.choice((1, 2, 7))
        pairs = [(stack, group) for stack in range(len(stacks)) for group in range(groups)]
        pairs = rng.sample(pairs, rng.randrange(len(pairs) + 1))
        stack, group = np.array(pairs, np.int64).reshape(-1, 2).T
        tree = tree_of(stacks).divided(stack, group, groups, 50)
        # The same from stacks that have their group as another frame.
        whole = tree_of([(*stacks[stack], 50 + group) for stack, group in pairs])
        found, expected = paths(tree), paths(whole)
        assert Counter(found) == Counter(expected)
        assert [found[node] for node in tree.node.tolist()] == [expected[node] for node in whole.node.tolist()]
        assert tree.depth_first.tolist() == whole.depth_first.tolist()
        assert [len(path) for path in found] == sorted(len(path) for path in found)


@pytest.mark.parametrize("most", [0, 1, 3, 10, 1000])
def test_the_heaviest_nodes_stay_and_the_others_of_a_parent_are_one(most: int) -> None:
    rng = random.Random(most)
    for _ in range(rounds(200, 40)):
        stacks = some_stacks(rng)
        weights = [rng.choice((0, 1, 2, 10)) for _ in stacks]
        whole, totals = tree_of(stacks), weigh(stacks, weights)
        tree = whole.heaviest(np.array(weights, np.uint64), most, REST)
        found = paths(tree)
        assert len(set(found)) == len(found)
        kept = {path for path in found if REST not in path}
        rests = [path for path in found if REST in path]
        if len(totals) <= most:
            assert tree is whole
            continue
        least = sorted(totals.values(), reverse=True)[most]
        assert kept == {path for path, total in totals.items() if total > least}
        # Each stack is where its frames stay, and then in what stands for the others.
        expected: Counter[Path] = Counter()
        for stack, weight in zip(stacks, weights, strict=True):
            outer = stack[::-1]
            depth = next((depth for depth in range(len(outer)) if outer[: depth + 1] not in kept), len(outer))
            expected[outer if depth == len(outer) else (*outer[:depth], REST)] += weight
        own = tree.self_weight(np.array(weights, np.uint64)).tolist()
        assert {path: weight for path, weight in zip(found, own, strict=True) if weight} == {
            path: weight for path, weight in expected.items() if weight and path
        }
        assert set(rests) == {path for path in expected if REST in path}
        depths = [len(path) for path in found]
        assert depths == sorted(depths)
        assert tree.depth_first.tolist() == [
            sum(depth <= level for depth in depths) for level in range(max(depths, default=0) + 1)
        ]
