"""What is different between two profiles, against counting by hand; and the page that shows it."""

from __future__ import annotations

import io
import json
import random
import shutil
import subprocess
from collections import Counter
from typing import Any

import pytest

from flamepage import Page
from flamescript import PROGRAM
from profiles import Recording
from walkback.export.flamegraph import write_difference
from walkback.pages.scripts import joined_script
from walkback.stacks.changes import difference, table

NAMES = list("fghi")


def recording(chance: random.Random, comms: str = "pq") -> Recording:
    samples = [
        (chance.choice(comms), [chance.randrange(4) for _ in range(chance.randrange(6))])
        for _ in range(chance.randrange(1, 30))
    ]
    order = chance.sample(range(4), 4)
    # The same names have other numbers in each profile.
    symbols = [NAMES[number] for number in order]
    return Recording(symbols, [""] * 4, samples, [chance.randrange(1, 5) for _ in samples])


def paths(one: Recording) -> Counter[tuple[str | None, ...]]:
    found: Counter[tuple[str | None, ...]] = Counter()
    for (comm, stack), weight in zip(one.samples, one.weights, strict=True):
        found[comm, *(one.symbols[frame] for frame in reversed(stack))] += weight
    return found


def functions(one: Recording) -> dict[str | None, tuple[int, int]]:
    own: Counter[str | None] = Counter()
    total: Counter[str | None] = Counter()
    for (_, stack), weight in zip(one.samples, one.weights, strict=True):
        names = [one.symbols[frame] for frame in stack]
        own.update({names[0]: weight} if names else {})
        total.update(dict.fromkeys(names, weight))
    return {name: (own[name], total[name]) for name in NAMES}


@pytest.mark.parametrize("seed", range(20))
def test_functions_before_and_after(seed: int) -> None:
    chance = random.Random(seed)
    before, after = recording(chance), recording(chance)
    found = difference(before.profile(), after.profile())
    assert (found.before, found.after) == (sum(before.weights), sum(after.weights))
    old, new = functions(before), functions(after)
    its = {one.name: ((one.own_before, one.total_before), (one.own_after, one.total_after)) for one in found.functions}
    assert its == {name: (old[name], new[name]) for name in NAMES if old[name][1] or new[name][1]}
    shares = [abs(one.own_after / found.after - one.own_before / found.before) for one in found.functions]
    assert shares == sorted(shares, reverse=True)


def test_table() -> None:
    before = Recording(["f", "g"], ["", "/lib/m.so"], [("c", [0]), ("c", [1, 0])], [3, 1])
    after = Recording(["g", "f"], ["/lib/m.so", ""], [("c", [0, 1]), ("c", [1])], [9, 1])
    assert table(difference(before.profile(), after.profile())) == [
        "before: 4 samples; after: 10 samples",
        "",
        "                 self %                   total %",
        " before   after  change    before   after  change  function",
        "  25.00   90.00  +65.00     25.00   90.00  +65.00  g  m.so",
        "  75.00   10.00  -65.00    100.00  100.00   +0.00  f",
    ]


def test_a_file_may_be_in_another_folder() -> None:
    before = Recording(["f"], ["/opt/1/m.so"], [("c", [0])])
    after = Recording(["f", "f"], ["/opt/2/m.so", "/opt/3/m.so"], [("c", [0, 1]), ("c", [1])])
    (one,) = difference(before.profile(), after.profile()).functions
    assert (one.module, one.own_before, one.own_after, one.total_before, one.total_after) == ("m.so", 1, 2, 1, 2)


def test_nothing_on_one_side() -> None:
    nothing, something = Recording([], [], []), Recording(["f"], [""], [("c", [0])])
    (one,) = difference(nothing.profile(), something.profile()).functions
    assert (one.own_before, one.own_after) == (0, 1)
    assert page(nothing, something)["own"] == [0, 0, 1]


def page(before: Recording, after: Recording) -> dict[str, Any]:
    out = io.BytesIO()
    write_difference(before.profile(), after.profile(), out, title="<two>")
    shown = Page(out.getvalue().decode())
    assert shown.texts["h1"].strip() == "<two>"
    assert shown.leads == ["data:,"]
    data: dict[str, list[int]] = json.loads(shown.texts["data"])
    return data


@pytest.mark.parametrize("seed", range(20))
def test_the_page_has_both_weights_of_every_path(seed: int) -> None:
    chance = random.Random(seed)
    before, after = recording(chance), recording(chance)
    data = page(before, after)
    made: list[tuple[str, ...]] = [()]
    for node, children in enumerate(data["children"]):
        made += [(*made[node], data["names"][name]) for name in data["name"][len(made) : len(made) + children]]
    for side, its in (("before", before), ("own", after)):
        assert +Counter(dict(zip(made, data[side], strict=True))) == paths(its)


def test_a_comm_is_compared_with_another() -> None:
    before = Recording(["f"], [""], [("old", [0])])
    after = Recording(["f"], [""], [("new", [0])])
    data = page(before, after)
    assert [data["names"][name] for name in data["name"]] == ["all", "old \u2192 new", "f"]
    assert (data["before"], data["own"]) == ([0, 0, 1], [0, 0, 1])


SIDES = (
    PROGRAM.partition("console.log")[0]
    + """
const sides = (tree, names) => [paths(tree, names).found, paths(otherSide(tree), names).found];
console.log(JSON.stringify(pages.map((data) => {
  const inverted = invertedTree(callTree(data), data.names.length);
  return [sides(callTree(data), data.names), sides(inverted, data.names)];
})));
"""
)


@pytest.mark.peers
def test_both_sides_of_the_trees_that_the_script_builds() -> None:
    if shutil.which("node") is None:
        pytest.skip("needs node")
    chance = random.Random(8)
    pairs = [(recording(chance), recording(chance)) for _ in range(40)]
    pages = [page(*pair) for pair in pairs]
    given = json.dumps({"script": joined_script("export/flamegraph_tree.js"), "pages": pages})
    done = subprocess.run(["node", "-e", SIDES], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for (before, after), trees in zip(pairs, json.loads(done.stdout), strict=True):
        for tree, turned in zip(trees, (False, True), strict=True):
            for found, its in zip(tree, (after, before), strict=True):
                expected: Counter[tuple[str | None, ...]] = Counter()
                for path, weight in paths(its).items():
                    walk = path[::-1] if turned else path
                    expected.update({walk[:size]: weight for size in range(1, len(walk) + 1)})
                assert +Counter({tuple(path): total for path, total, _, _ in found}) == expected
