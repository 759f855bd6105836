"""The prefix tree of stacks: what stacks have in common from the outermost frame on is there once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from walkback.base.arrays import I64, U64, Numbers, distinct, ranked, sums
from walkback.base.dataclass import dataclass
from walkback.stacks.distinct import Distinct


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """Nodes in the order of their depth, so that a parent comes before its children."""

    parent: I64
    """-1 for the outermost frames."""
    frame: I64
    node: I64
    """Of each stack the node of its innermost frame; -1 for a stack without frames."""
    depth_first: I64
    """Where the nodes of each depth begin; one more than there are depths."""

    @classmethod
    def of(cls, first: I64, frames: Numbers) -> PrefixTree:
        """The tree of stacks whose frames stand innermost first."""
        sizes = np.diff(first)
        node = np.full(len(sizes), -1, np.int64)
        nodes = Distinct()
        depth_first = [0]
        alive = np.flatnonzero(sizes > 0)
        depth = 0
        while len(alive):
            # A node is the pair of its parent and its frame; counting from 1 makes room for no parent.
            here = frames[first[1:][alive] - 1 - depth]
            node[alive] = nodes.add_records(np.stack((node[alive] + 1, here), axis=1))
            depth_first.append(len(nodes))
            depth += 1
            alive = alive[sizes[alive] > depth]
        table = nodes.table.astype(np.int64).reshape(-1, 2)
        return cls(table[:, 0] - 1, table[:, 1].copy(), node, np.array(depth_first, np.int64))

    def __len__(self) -> int:
        return len(self.parent)

    def self_weight(self, weight: U64) -> U64:
        """The weight of each node's own stacks, from the weight of each stack."""
        some = self.node >= 0
        return sums(self.node[some], weight[some], len(self))

    def divided(self, stack: I64, group: I64, groups: int, first: int) -> PrefixTree:
        """The same with a frame around all others, for each group its own: `first` is that of group 0.

        The stacks of the new tree are pairs of a stack of this one and a group, each pair once.
        """
        # A node is its number here, counting from 1, and its group: the numbers of both together are in their order.
        # What is outermost has none here.
        pairs = (self.node[stack] + 1) * groups + group
        order = np.argsort(pairs)
        ordered = pairs[order]
        begins = np.concatenate((np.zeros(1, np.int64), self.depth_first + 1)) * groups
        parent = np.concatenate((np.zeros(1, np.int64), self.parent + 1))
        # From the innermost out: what stands around a node is there once.
        levels: list[I64] = []
        places: list[I64] = []
        outer = ordered[:0]
        for begin, end in reversed(list(pairwise(np.searchsorted(ordered, begins).tolist()))):
            level = distinct(np.concatenate((ordered[begin:end], outer)))
            levels.append(level)
            places.append(np.searchsorted(level, outer).astype(np.int64))
            outer = parent[level // groups] * groups + level % groups
        levels.reverse()
        depth_first = np.cumsum([0, *map(len, levels)]).astype(np.int64)
        around = [begin + place for begin, place in zip(depth_first.tolist(), reversed(places), strict=False)]
        nodes = np.concatenate(levels)
        number, its_group = np.divmod(nodes, groups)
        node = np.empty(len(pairs), np.int64)
        node[order] = np.searchsorted(nodes, ordered)
        return PrefixTree(
            np.concatenate((np.full(len(levels[0]), -1, np.int64), *around)),
            np.where(number, np.concatenate((np.zeros(1, np.int64), self.frame))[number], first + its_group),
            node,
            distinct(depth_first),
        )

    def heaviest(self, weight: U64, most: int, rest: int) -> PrefixTree:
        """The tree of at most `most` nodes: those that weigh most together with what is below them.

        The others of a parent become one child, whose frame is `rest`. `weight` is that of each stack.
        """
        if len(self) <= most:
            return self
        total = self.self_weight(weight)
        levels = list(zip(self.depth_first[:-1].tolist(), self.depth_first[1:].tolist(), strict=True))
        for begin, end in reversed(levels[1:]):
            np.add.at(total, self.parent[begin:end], total[begin:end])
        stays = total > np.partition(total, len(self) - most - 1)[len(self) - most - 1]
        # Of each node the next one further out that stays.
        above = self.parent.copy()
        for begin, end in levels[1:]:
            outer = self.parent[begin:end]
            above[begin:end] = np.where(stays[outer], outer, above[outer])
        kept, (rests, rest_of) = np.flatnonzero(stays), ranked(above[~stays])
        depth = np.repeat(np.arange(len(levels)), np.diff(self.depth_first))
        depths = np.concatenate((depth[kept], np.where(rests >= 0, depth[rests] + 1, 0)))
        order = np.argsort(depths, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        # The last is the parent of outermost frames, which -1 finds.
        number = np.full(len(self) + 1, -1, np.int64)
        number[kept] = place[: len(kept)]
        number[np.flatnonzero(~stays)] = place[len(kept) + rest_of]
        return PrefixTree(
            number[np.concatenate((self.parent[kept], rests))[order]],
            np.concatenate((self.frame[kept], np.full(len(rests), rest)))[order],
            number[self.node],
            np.searchsorted(depths[order], np.arange(int(depths.max()) + 2)).astype(np.int64),
        )
