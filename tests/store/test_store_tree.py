"""The kernels of the store: trees of stacks that grow, take their order, and are read back."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from effort import rounds
from walkback.base.arrays import I64, Numbers
from walkback.base.errors import UnreadableError
from walkback.store.tree import GrowingTree, StackTree, from_preorder, in_preorder

pytestmark = pytest.mark.kernel


@pytest.fixture
def count(interpreted: bool) -> int:
    """How many trees are tried."""
    return rounds(40 if interpreted else 300, quick=10 if interpreted else 30, share=20)


def csr(stacks: list[list[int]]) -> tuple[I64, I64]:
    first = np.cumsum([0, *map(len, stacks)])
    return first, np.array([frame for stack in stacks for frame in stack], np.int64)


def random_stacks(rng: random.Random, most: int = 60, frames: int = 6, deepest: int = 9) -> list[list[int]]:
    """Stacks that have much in common; some are empty, and some twice there."""
    return [[rng.randrange(frames) for _ in range(rng.randrange(deepest))] for _ in range(rng.randrange(1, most))]


def expanded(tree: StackTree, nodes: Numbers | list[int]) -> list[list[int]]:
    first, frames = tree.stacks(np.asarray(nodes))
    return [frames[begin:end].tolist() for begin, end in pairwise(first.tolist())]


def plain_preorder(stacks: list[list[int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """The tree of stacks, made of dictionaries: depth and frame of its nodes, and of each stack its node."""
    root: dict[Any, Any] = {}
    for stack in stacks:
        node = root
        for frame in reversed(stack):
            node = node.setdefault(frame, {})
    rows: list[tuple[int, int]] = []
    place: dict[tuple[int, ...], int] = {(): -1}

    def walk(node: dict[int, Any], path: tuple[int, ...]) -> None:
        for frame in sorted(node):
            place[(*path, frame)] = len(rows)
            rows.append((len(path), frame))
            walk(node[frame], (*path, frame))

    walk(root, ())
    return rows, [place[tuple(reversed(stack))] for stack in stacks]


def test_stacks_come_back_as_they_went_in(count: int) -> None:
    rng = random.Random(1)
    for _ in range(count):
        stacks = random_stacks(rng)
        growing = GrowingTree()
        nodes = growing.add(*csr(stacks))
        assert expanded(growing.tree(), nodes) == stacks


def test_equal_stacks_have_one_node_and_different_ones_two_whenever_they_come(count: int) -> None:
    rng = random.Random(2)
    for _ in range(count):
        stacks = random_stacks(rng)
        nodes: dict[Any, Any]
        growing, nodes = GrowingTree(), {}
        while stacks:
            some, stacks = stacks[: rng.randrange(1, 9)], stacks[rng.randrange(1, 9) :]
            for stack, node in zip(some, growing.add(*csr(some)).tolist(), strict=True):
                assert nodes.setdefault(tuple(stack), node) == node
        assert len(set(nodes.values())) == len(nodes)
        assert nodes.get((), -1) == -1


def test_the_tree_has_a_node_for_each_different_beginning(count: int) -> None:
    rng = random.Random(3)
    for _ in range(count):
        stacks = random_stacks(rng)
        growing = GrowingTree()
        growing.add(*csr(stacks))
        assert len(growing) == len({tuple(stack[at:]) for stack in stacks for at in range(len(stack))})


def test_growing_over_its_room_again_and_again_changes_nothing(interpreted: bool) -> None:
    rng = random.Random(4)
    many = 1_500 if interpreted else 20_000
    stacks = [[rng.randrange(50), *(rng.randrange(9) for _ in range(rng.randrange(6)))] for _ in range(many)]
    growing = GrowingTree()
    nodes = growing.add(*csr(stacks))
    assert len(growing) > 1024
    assert expanded(growing.tree(), nodes) == stacks


def test_a_stack_deeper_than_all_the_room_that_there_is() -> None:
    stack = list(range(5000))
    growing = GrowingTree()
    nodes = growing.add(*csr([stack, stack[1:], [7]]))
    assert expanded(growing.tree(), nodes) == [stack, stack[1:], [7]]


def test_preorder_is_that_of_a_plain_walk(count: int) -> None:
    rng = random.Random(5)
    for _ in range(count):
        stacks = random_stacks(rng)
        growing = GrowingTree()
        nodes = growing.add(*csr(stacks))
        tree, depth, place = in_preorder(growing.tree())
        rows, plain = plain_preorder(stacks)
        assert list(zip(depth.tolist(), tree.frame.tolist(), strict=True)) == rows
        assert np.append(place, -1)[nodes].tolist() == plain
        assert tree.depth.tolist() == depth.tolist()


def test_preorder_goes_by_the_rank_of_frames_where_one_is_given(count: int) -> None:
    rng = random.Random(6)
    for _ in range(count):
        stacks = random_stacks(rng)
        rank = list(range(6))
        rng.shuffle(rank)
        growing = GrowingTree()
        growing.add(*csr(stacks))
        tree, depth, _ = in_preorder(growing.tree(), np.array(rank))
        rows, _ = plain_preorder([[rank[frame] for frame in stack] for stack in stacks])
        assert list(zip(depth.tolist(), tree.frame.tolist(), strict=True)) == rows


def test_a_part_of_a_tree_is_the_tree_of_that_part_of_the_stacks(count: int) -> None:
    rng = random.Random(7)
    for _ in range(count):
        stacks = random_stacks(rng)
        growing = GrowingTree()
        nodes = growing.add(*csr(stacks))
        chosen = [number for number in range(len(stacks)) if rng.random() < 0.3]
        wanted = growing.tree().with_outer(nodes[chosen])
        tree, depth, place = in_preorder(growing.tree(), wanted=wanted)
        rows, plain = plain_preorder([stacks[number] for number in chosen])
        assert list(zip(depth.tolist(), tree.frame.tolist(), strict=True)) == rows
        assert np.append(place, -1)[nodes[chosen]].tolist() == plain


def test_what_was_written_in_preorder_is_read_back_as_the_same_tree(count: int) -> None:
    rng = random.Random(8)
    for _ in range(count):
        growing = GrowingTree()
        growing.add(*csr(random_stacks(rng)))
        tree, depth, _ = in_preorder(growing.tree())
        back = from_preorder(depth, tree.frame, 6)
        assert back.parent.tolist() == tree.parent.tolist()


def test_a_tree_put_into_another_keeps_its_stacks(count: int) -> None:
    rng = random.Random(9)
    for _ in range(count):
        one, two = random_stacks(rng), random_stacks(rng)
        growing, other = GrowingTree(), GrowingTree()
        ones, twos = growing.add(*csr(one)), other.add(*csr(two))
        called = np.array([3, 4, 5, 6, 7, 8])
        nodes = growing.add_tree(other.tree(), called)
        assert expanded(growing.tree(), ones) == one
        there = np.append(nodes, np.int32(-1))[twos]
        assert expanded(growing.tree(), there) == [[frame + 3 for frame in stack] for stack in two]
        assert growing.add(*csr([[frame + 3 for frame in stack] for stack in two])).tolist() == there.tolist()


def test_sums_are_of_a_node_and_all_below_it(count: int) -> None:
    rng = random.Random(10)
    for _ in range(count):
        stacks = random_stacks(rng)
        growing = GrowingTree()
        nodes = growing.add(*csr(stacks))
        tree = growing.tree()
        own = np.zeros(len(tree), np.int64)
        np.add.at(own, nodes[nodes >= 0], 3)
        below: dict[Any, Any] = {}
        for stack in stacks:
            for at in range(len(stack)):
                below[tuple(stack[at:])] = below.get(tuple(stack[at:]), 0) + 3
        everyone = expanded(tree, np.arange(len(tree)))
        assert tree.sums(own).tolist() == [below[tuple(stack)] for stack in everyone]


@pytest.mark.parametrize(
    ("depth", "frame", "message"),
    [
        ([1], [0], "node 0 cannot have the depth 1"),
        ([0, 2], [0, 0], "node 1 cannot have the depth 2"),
        ([0, 1, -1], [0, 0, 0], "node 2 cannot have the depth -1"),
        ([0, 1, 2**31 - 1], [0, 0, 0], "node 2 cannot have the depth 2147483647"),
        ([0, 1], [0, 2], "node 1 cannot have the frame 2"),
        ([0, 1], [-1, 0], "node 0 cannot have the frame -1"),
    ],
)
def test_columns_that_are_no_tree_are_refused(depth: list[int], frame: list[int], message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        from_preorder(np.array(depth, np.int32), np.array(frame, np.int32), 2)


def test_damaged_columns_are_refused_or_are_another_tree_and_nothing_else_happens(count: int) -> None:
    rng = random.Random(11)
    for _ in range(count):
        growing = GrowingTree()
        growing.add(*csr(random_stacks(rng)))
        tree, depth, _ = in_preorder(growing.tree())
        depth, frame = depth.copy(), tree.frame.copy()
        if not len(depth):
            continue
        for _ in range(rng.randrange(1, 4)):
            column = rng.choice((depth, frame))
            column[rng.randrange(len(column))] = rng.choice((-1, 0, 1, 2, 5, 6, 2**31 - 1, -(2**31)))
        try:
            back = from_preorder(depth, frame, 6)
        except UnreadableError:
            continue
        assert back.depth.tolist() == depth.tolist()
        assert (back.frame < 6).all()


@pytest.mark.parametrize("first", [[], [1, 0], [0, 3], [-1, 2]])
def test_offsets_that_do_not_fit_are_refused(first: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets of stacks"):
        GrowingTree().add(np.array(first, np.int64), np.array([1, 2]))


@pytest.mark.parametrize("frame", [-1, 2**31, 2**40])
def test_frames_that_are_no_numbers_of_frames_are_refused(frame: int) -> None:
    with pytest.raises(ValueError, match="numbers of frames"):
        GrowingTree().add(np.array([0, 1]), np.array([frame]))


@pytest.mark.parametrize("node", [-2, 1])
def test_nodes_that_there_are_not_are_refused(node: int) -> None:
    growing = GrowingTree()
    growing.add(*csr([[5]]))
    with pytest.raises(ValueError, match="no such node"):
        growing.tree().stacks(np.array([node]))


def test_a_tree_of_nothing() -> None:
    growing = GrowingTree()
    assert growing.add(*csr([[], []])).tolist() == [-1, -1]
    tree, depth, place = in_preorder(growing.tree())
    assert (len(tree), len(depth), len(place)) == (0, 0, 0)
    assert expanded(tree, [-1]) == [[]]
    assert tree.sums(np.zeros(0)).tolist() == []
    assert isinstance(from_preorder(depth, tree.frame, 0), StackTree)
