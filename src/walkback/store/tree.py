"""The tree of stacks: what stacks have in common from the outermost frame on is there once.

growing = GrowingTree()
nodes = growing.add(first, frames)      # of each stack its innermost node
first, frames = growing.tree().stacks(nodes)
"""

from __future__ import annotations

import os

import numpy as np

from walkback.base.arrays import I32, I64, Bools, Numbers, longer
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, UnreadableError
from walkback.store import _tree

_NODES = 1 << 10
"""The number of nodes that there is room for at first."""
_MOST = 2**31 - 1
_MIX = int.from_bytes(os.urandom(8), "little") | 1


@dataclass(frozen=True, slots=True)
class StackTree:
    """A tree whose parents come before their children; -1 is the parent of outermost frames."""

    parent: I32
    frame: I32

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def depth(self) -> I32:
        """How many frames are further out than each node."""
        depth = np.empty(len(self), np.int32)
        _tree.depths(self.parent, depth)
        return depth

    def sums(self, own: Numbers) -> I64:
        """For each node the sum of its own weight and of those of all nodes below it."""
        totals: I64 = np.array(own, np.int64)
        if totals.shape != self.parent.shape:
            raise ArgumentError("each node has one weight")
        _tree.sums(self.parent, totals)
        return totals

    def stacks(self, nodes: Numbers) -> tuple[I64, I64]:
        """Where the frames of each stack begin, and the frames, innermost first; -1 is a stack without frames."""
        chosen = self._checked(nodes)
        sizes = np.where(chosen >= 0, self.depth[chosen] + 1, 0) if len(self) else np.zeros(len(chosen), np.int64)
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
        frames = np.empty(int(first[-1]), np.int64)
        _tree.stacks(chosen, self.parent, self.frame, first, frames)
        return first, frames

    def with_outer(self, nodes: Numbers) -> Bools:
        """Which nodes are among these or further out than one of them."""
        marks = np.zeros(len(self), np.bool_)
        _tree.mark(self._checked(nodes), self.parent, marks.view(np.uint8))
        return marks

    def _checked(self, nodes: Numbers) -> I32:
        if len(nodes) and (int(nodes.min()) < -1 or int(nodes.max()) >= len(self)):
            raise ArgumentError("there is no such node")
        return np.ascontiguousarray(nodes, np.int32)


class GrowingTree:
    """A tree that takes more and more stacks."""

    def __init__(self) -> None:
        self._state = np.zeros(2, np.int64)
        self._parent = np.empty(_NODES, np.int32)
        self._frame = np.empty(_NODES, np.int32)
        self._slots = np.full(2 * _NODES, -1, np.int32)

    def __len__(self) -> int:
        return int(self._state[1])

    def tree(self) -> StackTree:
        """All nodes, in the order in which they were met. Valid until more is added."""
        return StackTree(self._parent[: len(self)], self._frame[: len(self)])

    def add(self, first: I64, frames: Numbers) -> I32:
        """Of each stack its innermost node, or -1; stack i has the frames from `first[i]` on, innermost first."""
        first = np.ascontiguousarray(first, np.int64)
        if not len(first) or first[0] < 0 or first[-1] > len(frames) or (np.diff(first) < 0).any():
            raise ArgumentError("offsets of stacks must rise from 0 to at most the number of frames")
        frames = _frames(frames)
        nodes = np.empty(len(first) - 1, np.int32)
        deepest = int(np.diff(first).max(initial=0))
        path = np.empty(deepest, np.int32)
        self._state[0] = 0
        while _tree.add_stacks(
            first, frames, nodes, path, self._state, self._parent, self._frame, self._slots, _MIX
        ):  # fmt: skip
            self._make_room(deepest)
        return nodes

    def add_tree(self, tree: StackTree, frames: Numbers | None = None) -> I32:
        """The number here of each node of another tree; `frames` has what its frames are called here."""
        its = tree.frame if frames is None else _frames(frames[tree.frame])
        nodes = np.empty(len(tree), np.int32)
        self._state[0] = 0
        while _tree.add_nodes(
            tree.parent, its, nodes, self._state, self._parent, self._frame, self._slots, _MIX
        ):  # fmt: skip
            self._make_room(1)
        return nodes

    def _make_room(self, wanted: int) -> None:
        room = max(2 * len(self._parent), len(self) + wanted)
        if room > _MOST:
            raise MemoryError("too many distinct stacks")
        self._parent, self._frame = (longer(column, room) for column in (self._parent, self._frame))
        self._slots = np.full(1 << (2 * room - 1).bit_length(), -1, np.int32)
        _tree.fill(self._parent, self._frame, self._slots, len(self), _MIX)


def in_preorder(
    tree: StackTree, rank: Numbers | None = None, wanted: Bools | None = None
) -> tuple[StackTree, I32, I32]:
    """A tree, or the wanted nodes of it, in preorder: the new tree, the depths, and where each old node is now.

    Siblings are in the order of their frames, or of the `rank` of these, which the new tree has in their place. With a
    wanted node the nodes further out are wanted too. A node that was not wanted is at -1.
    """
    parent, frame = tree.parent, tree.frame
    place = np.full(len(tree), -1, np.int32)
    if wanted is not None:
        number = np.cumsum(wanted, dtype=np.int32) - 1
        parent, frame = parent[wanted], frame[wanted]
        parent = np.where(parent >= 0, number[parent], np.int32(-1)).astype(np.int32, copy=False)
    if rank is not None:
        frame = _frames(rank[frame])
    count = len(parent)
    order = np.argsort((parent.astype(np.int64) << 32) | frame)
    new, depth = np.empty(count, np.int32), np.empty(count, np.int32)
    _tree.preorder(parent, order, np.zeros(count, np.int32), np.zeros(count, np.int32), new, depth)
    place[... if wanted is None else wanted] = new
    ordered = np.empty(count, np.int64)
    ordered[new] = np.arange(count)
    above = parent[ordered]
    above[above >= 0] = new[above[above >= 0]]
    return StackTree(above, frame[ordered]), depth[ordered], place


def from_preorder(depth: Numbers, frame: Numbers, frames: int) -> StackTree:
    """The tree that columns describe, which may come from anywhere; `frames` is the number of frames."""
    depth, frame = np.ascontiguousarray(depth, np.int32), np.ascontiguousarray(frame, np.int32)
    parent, state = np.empty(len(depth), np.int32), np.zeros(1, np.int64)
    wrong = _tree.parents(depth, frame, frames, np.empty(len(depth), np.int32), parent, state)
    if wrong:
        what = f"the depth {depth[state[0]]}" if wrong == _tree.BAD_DEPTH else f"the frame {frame[state[0]]}"
        raise UnreadableError(f"node {state[0]} cannot have {what}")
    return StackTree(parent, frame)


def _frames(frames: Numbers) -> I32:
    """Numbers of frames as the kernels want them."""
    if len(frames) and (int(frames.min()) < 0 or int(frames.max()) > _MOST):
        raise ArgumentError("numbers of frames are from 0 to 2147483647")
    return np.ascontiguousarray(frames, np.int32)
