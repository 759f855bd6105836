"""speedscope, the Firefox Profiler and the flame graph: what is in their files is what was recorded."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from flamepage import Page
from profiles import Recording, nasty, written
from walkback.export import firefox, flamegraph, speedscope
from walkback.export.formats import FORMATS
from walkback.stacks.profile import CodeMapping, Profile, SampleBatch
from walkback.stacks.stacks import End

pytestmark = pytest.mark.kernel


def recording() -> Recording:
    return Recording(
        ["leaf", None, "main", "leaf"],
        ["/bin/p", "/lib/l.so", "/bin/p", "/bin/p"],
        [("p", [0, 2]), ("q", [1, 2]), ("q", [0, 2]), ("p", [3, 2]), ("q", [])],
        weights=[5, 6, 7, 8, 9],
        threads=[(1, 2), (1, 1), (3, 3), (1, 2), (1, 1)],
        times=[9_000_000, 2_000_000, 3_000_000, 4_500_000, 2_000_500],
        kernel=[False, False, False, True],
        files=["a.c", None, "a.c", None],
        lines=[10, 0, 20, 0],
    )


def weights_of_paths(recording: Recording) -> Counter[tuple[str, ...]]:
    """The weight of each stack of names, outermost first, with its comm."""
    labels = recording.frames.labels()
    found: Counter[tuple[str, ...]] = Counter()
    for (comm, stack), weight in zip(recording.samples, recording.weights, strict=True):
        found[comm, *(labels[frame] for frame in reversed(stack))] += weight
    return found


def test_speedscope_of_threads() -> None:
    made = json.loads(written(speedscope.write, recording().profile(timeline=True, title="it")))
    assert made["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert made["name"] == "it"
    names = [frame["name"] for frame in made["shared"]["frames"]]
    assert made["shared"]["frames"][0] == {"name": "leaf", "file": "a.c"}
    found = {
        one["name"]: [
            ([names[frame] for frame in stack], weight)
            for stack, weight in zip(one["samples"], one["weights"], strict=True)
        ]
        for one in made["profiles"]
    }
    assert found == {
        "q (1/1)": [(["main", "[l.so]"], 6), ([], 9)],
        "p (1/2)": [(["main", "leaf"], 8), (["main", "leaf"], 5)],
        "q (3/3)": [(["main", "leaf"], 7)],
    }
    for one in made["profiles"]:
        assert (one["type"], one["unit"], one["startValue"], one["endValue"]) == (
            "sampled",
            "none",
            0,
            sum(one["weights"]),
        )


def test_speedscope_of_comms() -> None:
    made = json.loads(written(speedscope.write, recording().profile(unit="nanoseconds")))
    names = [frame["name"] for frame in made["shared"]["frames"]]
    found: Counter[tuple[str, ...]] = Counter()
    for one in made["profiles"]:
        assert one["unit"] == "nanoseconds"
        for stack, weight in zip(one["samples"], one["weights"], strict=True):
            found[one["name"], *(names[frame] for frame in stack)] += weight
    assert found == weights_of_paths(recording())


def check_columns(table: dict[str, Any]) -> None:
    """All columns of a table of the Firefox Profiler are as long as it says."""
    for name, column in table.items():
        if isinstance(column, list):
            assert len(column) == table["length"], name


def firefox_samples(made: dict[str, Any]) -> Iterator[tuple[tuple[str, str, str], float, list[str], float]]:
    """Thread, time, stack of names and weight of each sample."""
    shared = made["shared"]
    for name, table in shared.items():
        if name != "stringArray":
            check_columns(table)
    strings, frames, functions, stacks = (
        shared[name] for name in ("stringArray", "frameTable", "funcTable", "stackTable")
    )
    paths: list[list[str]] = []
    for prefix, frame in zip(stacks["prefix"], stacks["frame"], strict=True):
        name = strings[functions["name"][frames["func"][frame]]]
        paths.append([*(paths[prefix] if prefix is not None else []), name])
    for thread in made["threads"]:
        samples = thread["samples"]
        check_columns(samples)
        check_columns(thread["markers"])
        for time, stack, weight in zip(samples["time"], samples["stack"], samples["weight"], strict=True):
            yield (
                (thread["pid"], thread["tid"], thread["name"]),
                time,
                paths[stack] if stack is not None else [],
                weight,
            )


def test_firefox_of_threads() -> None:
    mapping = CodeMapping("/bin/p", bytes(range(20)))
    made = json.loads(
        written(firefox.write, recording().profile(timeline=True, start=5_000_000_000, mappings=[mapping]))
    )
    assert list(firefox_samples(made)) == [
        (("1", "1", "q"), 0, ["main", "[l.so]"], 6),
        (("1", "1", "q"), 0.0005, [], 9),
        (("1", "2", "p"), 2.5, ["main", "leaf"], 8),
        (("1", "2", "p"), 7, ["main", "leaf"], 5),
        (("3", "3", "q"), 1, ["main", "leaf"], 7),
    ]
    assert [thread["isMainThread"] for thread in made["threads"]] == [True, False, True]
    assert made["meta"]["startTime"] == 5000
    assert made["meta"]["symbolicated"] is True
    library = made["libs"][0]
    assert library["codeId"] == bytes(range(20)).hex()
    assert library["breakpadId"] == "0302010005040706" + bytes(range(8, 16)).hex().upper() + "0"
    shared = made["shared"]
    assert shared["frameTable"]["category"] == [0, 0, 0, 1]
    assert shared["frameTable"]["line"] == [10, None, 20, None]
    assert shared["frameTable"]["address"] == [0x1000, 0x1010, 0x1020, 0x1030]
    source = shared["funcTable"]["source"][shared["frameTable"]["func"][0]]
    assert shared["stringArray"][shared["sources"]["filename"][source]] == "a.c"


def test_firefox_of_comms_with_time_as_weight() -> None:
    made = json.loads(written(firefox.write, recording().profile(unit="nanoseconds")))
    found: Counter[tuple[str, ...]] = Counter()
    for (_, _, comm), _, stack, weight in firefox_samples(made):
        found[comm, *stack] += round(weight * 1e6)
    assert found == weights_of_paths(recording())
    assert {thread["samples"]["weightType"] for thread in made["threads"]} == {"tracing-ms"}


def graph_of(text: str) -> tuple[Counter[tuple[str, ...]], dict[str, Any]]:
    """The weight of each path of names that a flame graph has."""
    data = json.loads(Page(text).texts["data"])
    count = len(data["name"])
    assert len(data["own"]) == len(data["children"]) == data["first"][-1] == count
    assert sum(data["children"]) == count - 1
    assert len(data["kind"]) == len(data["module"]) == len(data["names"])
    paths: list[tuple[str, ...]] = [()]
    for node, children in enumerate(data["children"]):
        names = [data["names"][name] for name in data["name"][len(paths) : len(paths) + children]]
        assert names == sorted(names)
        paths += [(*paths[node], name) for name in names]
    levels = [len(path) for path in paths]
    assert [levels.index(level) for level in range(len(data["first"]) - 1)] == data["first"][:-1]
    found: Counter[tuple[str, ...]] = Counter()
    for path, own in zip(paths, data["own"], strict=True):
        found[path] += own
    return +found, data


def test_flame_graph() -> None:
    made = recording()
    text = written(flamegraph.write, made.profile(title="it & <more>")).decode()
    found, data = graph_of(text)
    expected = weights_of_paths(made)
    assert found == expected
    assert data["unit"] == "samples"
    page = Page(text)
    assert page.texts["h1"].strip() == "it & <more>"
    assert page.texts["p"].startswith("5 samples \u00b7 4 distinct stacks")
    assert page.leads == ["data:,"]


STACKS = st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 4), max_size=6)), max_size=15)


@settings(max_examples=examples(40), deadline=None)
@given(STACKS)
def test_flame_graph_has_every_path(samples: list[tuple[str, list[int]]]) -> None:
    made = Recording(list("fghfi"), [""] * 5, samples)
    assert graph_of(written(flamegraph.write, made.profile()).decode())[0] == weights_of_paths(made)


def test_flame_graph_shows_what_is_incomplete() -> None:
    made = Recording(["f"], [""], [("c", [0]), ("c", [0])], ends=[End.COMPLETE, End.STACK_CUT])
    text = written(flamegraph.write, made.profile()).decode()
    found, data = graph_of(text)
    assert found == {("c", "f"): 1, ("c", "[incomplete: stack-cut]", "f"): 1}
    assert data["kind"][data["names"].index("[incomplete: stack-cut]")] == 3
    assert "1 incomplete (50.00 %)" in Page(text).texts["p"]


def test_flame_graph_needs_nothing_else() -> None:
    text = written(flamegraph.write, recording().profile()).decode()
    assert not re.search(r"https?:|//[a-z]|@import|url\(|fetch|XMLHttp", text)
    assert "default-src 'none'" in text


def test_nasty_names() -> None:
    made = nasty().profile(timeline=True, title="</script>\udcff\n")
    for one in (speedscope, firefox):
        text = written(one.write, made)
        text.decode("ascii")
        assert json.loads(text)
    page = written(flamegraph.write, made).decode()
    assert sum(graph_of(page)[0].values()) == 78
    assert page.count("</script>") == 2
    assert [tag for tag, _ in Page(page).tags].count("script") == 2


@pytest.mark.parametrize("name", [name for name, one in FORMATS.items() if not one.streamed])
@pytest.mark.parametrize("timeline", [False, True])
def test_every_format_takes_an_empty_profile_and_a_full_one(name: str, timeline: bool) -> None:
    import io

    empty = Recording([], [], [])
    for made in (empty.profile(), recording().profile(timeline=timeline), recording().profile(threads=True).marked()):
        FORMATS[name].export(made, io.BytesIO())


@pytest.mark.parametrize("name", FORMATS)
def test_equal_profiles_are_written_equally(name: str) -> None:
    one = FORMATS[name]

    def source() -> list[SampleBatch] | Profile:
        return recording().batches() if one.streamed else recording().profile(timeline=True)

    assert written(one.export, source()) == written(one.export, source())
    assert one.name == name
