"""The trees that the flame graph's script builds, where there is a program to run it."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from flamescript import PROGRAM
from profiles import Recording, written
from walkback.export import flamegraph
from walkback.pages.scripts import joined_script

pytestmark = pytest.mark.peers


def recordings() -> Iterator[Recording]:
    chance = random.Random(5)
    yield Recording([], [], [])
    for _ in range(60):
        samples = [
            (chance.choice("pq"), [chance.randrange(4) for _ in range(chance.randrange(6))])
            for _ in range(chance.randrange(1, 30))
        ]
        yield Recording(list("fghi"), [""] * 4, samples, [chance.randrange(1, 5) for _ in samples])


def expected(stacks: list[tuple[tuple[str, ...], int]]) -> dict[tuple[str, ...], tuple[int, int]]:
    """The weight of every prefix, all that begin with it and its own."""
    total: Counter[Any]
    own: Counter[Any]
    total, own = Counter(), Counter()
    for path, weight in stacks:
        own[path] += weight
        for size in range(1, len(path) + 1):
            total[path[:size]] += weight
    return {path: (weight, own[path]) for path, weight in total.items()}


def check_order(found: list[tuple[Any, ...]], first: list[int], *, heaviest_first: bool) -> None:
    """Levels come one after the other, children within their parent, and each begins where the one before it ends."""
    levels = [len(path) for path, *_ in found]
    assert [0, *(levels.index(level) + 1 for level in range(1, len(first) - 1)), len(found) + 1] == first
    end = {(): 0}
    place = {(): 0}
    before: dict[tuple[str, ...], float] = {}
    for path, total, _, x in found:
        parent = tuple(path[:-1])
        assert x == end[parent]
        end[parent] += total
        end[tuple(path)] = place[tuple(path)] = x
        if heaviest_first:
            assert total <= before.get(parent, total)
            before[parent] = total


def test_the_call_tree_and_the_inverted_tree() -> None:
    if shutil.which("node") is None:
        pytest.skip("needs node")
    made = list(recordings())
    pages = []
    for one in made:
        text = written(flamegraph.write, one.profile()).decode()
        pages.append(json.loads(text.partition('type="application/json">')[2].partition("</script>")[0]))
    given = json.dumps({"script": joined_script("export/flamegraph_tree.js"), "pages": pages})
    done = subprocess.run(["node", "-e", PROGRAM], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for one, (calls, inverted) in zip(made, json.loads(done.stdout), strict=True):
        labels = one.frames.labels()
        stacks = [
            ((comm, *(labels[frame] for frame in reversed(stack))), weight)
            for (comm, stack), weight in zip(one.samples, one.weights, strict=True)
        ]
        for tree, its in ((calls, stacks), (inverted, [(path[::-1], weight) for path, weight in stacks])):
            found = {tuple(path): (total, own) for path, total, own, _ in tree["found"]}
            assert len(found) == len(tree["found"])
            assert found == expected(its)
            check_order(tree["found"], tree["first"], heaviest_first=tree is inverted)
