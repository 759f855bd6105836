"""What a server answers is what the command prints for the same samples."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cli.inprocess import run
from effort import rounds
from flamepage import Page
from serving.madestore import HOSTS, PROCESSES, VERSIONS, fill, samples
from serving.served import Served, served
from store.made import HOUR, NOON, put
from walkback.serving import answers
from walkback.serving.answers import Answers
from walkback.serving.question import question
from walkback.store.naming import Naming
from walkback.store.store import Store

Pairs = list[tuple[str, str]]
LIMIT = ("--limit", "300")


def chosen(rng: random.Random) -> Pairs:
    """Samples that somebody may ask for, as parameters and, with -- before each name, as options."""
    values = {"host": HOSTS, "process": (*PROCESSES, "nobody"), "label": [f"version={one}" for one in VERSIONS]}
    pairs = [(name, rng.choice(its)) for name, its in values.items() for _ in range(rng.choice((0, 0, 1, 2)))]
    since, until = sorted(rng.randrange(3 * 3600) for _ in range(2))
    times = [("since", since), ("until", until)]
    pairs += [
        (name, f"2025-11-24T{16 + at // 3600}:{at // 60 % 60:02}:{at % 60:02}")
        for name, at in times
        if rng.random() < 0.5
    ]
    rng.shuffle(pairs)
    return pairs


def options(pairs: Pairs) -> list[str]:
    return [word for name, value in pairs for word in (f"--{name}", value)]


def graph_of(page: str) -> tuple[str, object]:
    """What is written above a flame graph, and what it draws."""
    found = Page(page)
    return found.texts["p"].splitlines()[0], json.loads(found.texts["data"])


def test_a_choice_is_answered_as_the_command_does(store: Path, server: Served) -> None:
    rng = random.Random(1)
    seen = Counter[bool]()
    for _ in range(rounds(60, 12)):
        pairs = chosen(rng)
        answer = server.found("stacks", *pairs)
        top = run("store", store, "top", *options(pairs), *LIMIT, "--json")
        seen["missing" in answer] += 1
        if "missing" in answer:
            assert (top.exit_code, top.stderr) == (1, f"walkback: {store}: {answer['missing']}\n")
            continue
        assert answer["functions"] == [json.loads(line) for line in top.stdout.splitlines()]
        page = run("store", store, "flame", *options(pairs)).stdout
        about, graph = graph_of(page)
        assert answer["graph"] == graph
        assert about == answer["about"]
        assert f": {answer['title']}</title>" in page
    assert seen[True]
    assert seen[False]


@pytest.mark.whole
def test_a_comparison_is_answered_as_the_command_does(store: Path, server: Served) -> None:
    rng = random.Random(2)
    seen = 0
    for _ in range(rounds(30, 6)):
        both = [("process", rng.choice(PROCESSES))]
        sides: list[Pairs] = [[("label", f"version={rng.choice(VERSIONS)}")], [("host", rng.choice(HOSTS))]]
        rng.shuffle(sides)
        before, after = sides
        asked = [*both, *after, *((f"before-{name}", value) for name, value in (*both, *before))]
        words = [",".join(value if name == "label" else f"{name}={value}" for name, value in side) for side in sides]
        answer = server.found("stacks", *asked)
        lines = run("store", store, "diff", *words, *options(both), *LIMIT, "--json").stdout.splitlines()
        whole = {name: answer[name] for name in ("before", "after")}
        assert [{**one, **whole} for one in answer["functions"]] == [json.loads(line) for line in lines]
        page = run("store", store, "diff", *words, *options(both), "--format", "html").stdout
        assert (answer["about"], answer["graph"]) == graph_of(page)
        seen += bool(lines)
    assert seen


def test_bars_count_the_samples_of_their_times(store: Path, server: Served) -> None:
    rng = random.Random(3)
    for _ in range(rounds(20, 5)):
        pairs = chosen(rng)
        found = server.found("timeline", *pairs)
        first, step, counts = found["first"], found["step"], found["counts"]
        assert 0 < len(counts) <= 300
        where = [f"process = '{value}'" for name, value in pairs if name == "process"]
        hosts = [f"host = '{value}'" for name, value in pairs if name == "host"]
        labels = [f"labels['version'] = '{value.partition('=')[2]}'" for name, value in pairs if name == "label"]
        condition = " AND ".join(f"({' OR '.join(some)})" for some in (where, hosts, labels) if some) or "true"
        times = options([pair for pair in pairs if pair[0] in {"since", "until"}])
        query = (
            f"SELECT epoch_ns(time) // 1000000 AS moment, count(*) AS n FROM samples WHERE {condition} GROUP BY moment"
        )
        plain = Counter[int]()
        asked = run("store", store, "sql", query, *times, "--json")
        assert asked.exit_code == 0, asked.stderr
        for line in asked.stdout.splitlines():
            row = json.loads(line)
            plain[int((row["moment"] - first) // step)] += row["n"]
        assert Counter({place: count for place, count in enumerate(counts) if count}) == plain


@pytest.mark.parametrize(
    ("since", "until", "step"),
    [
        ("2025-11-24T16:00", "2025-11-24T16:00:00.100", 1),
        ("2025-11-24T16:00", "2025-11-24T16:05", 1000),
        ("2025-11-24", "2025-11-25", 300_000),
        ("2025-01-01", "2026-01-01", 2 * 86_400_000),
        ("1970-01-01", "9999-12-31", 364 * 86_400_000),
        ("2025-11-25", "2025-11-24", 1),
    ],
)
def test_bars_have_lengths_that_people_know(server: Served, since: str, until: str, step: int) -> None:
    found = server.found("timeline", ("since", since), ("until", until))
    assert found["step"] == step
    assert len(found["counts"]) <= 300


def test_the_store_is_told_of(store: Path, server: Served) -> None:
    told = json.loads(run("store", store, "--json").stdout)
    found = server.found("store")
    for name in ("samples", "stacks", "bytes", "hosts", "processes", "labels"):
        assert found[name] == told[name]
    assert found["store"] == str(store)


@pytest.mark.whole
def test_what_is_appended_while_it_runs_is_there(tmp_path: Path) -> None:
    rng = random.Random(4)
    folder = tmp_path / "stacks"
    store = Store(folder, create=True)
    with served(folder, "--port", "0") as server:
        assert server.found("stacks") == {"missing": "there are no such samples"}
        assert server.found("timeline")["counts"] == [0]
        fill(folder, rng, 60)
        assert server.found("store")["samples"] == 60
        assert sum(server.found("timeline")["counts"]) == 60
        whole = server.found("stacks")["whole"]
        with store.append() as new:
            put(new, samples(rng, 10, NOON + 5 * HOUR), process="late")
        assert server.found("store")["processes"][-1] == max(*PROCESSES, "late")
        assert server.found("stacks")["whole"] > whole
        store.compact()
        assert server.found("store")["samples"] == 70


def test_samples_of_the_last_hours_are_those_of_now(tmp_path: Path) -> None:
    folder = tmp_path / "stacks"
    (tmp_path / "new.folded").write_text("hello;main 1\n")
    run("store", folder, "append", tmp_path / "new.folded", "--time", "30m")
    with served(folder, "--port", "0") as server:
        assert server.found("stacks", ("since", "1h"))["whole"] == 1
        assert "missing" in server.found("stacks", ("since", "1h"), ("until", "50m"))


def test_a_graph_of_many_frames_is_smaller_and_weighs_the_same(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(query: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(Answers(Store(store), Naming).answer(question("stacks", query)))
        return found

    for query in ("", "before-host=web1&host=web2"):
        whole = answer(query)
        with monkeypatch.context() as less:
            less.setattr(answers, "_MOST_FRAMES", 20)
            part = answer(query)
        assert part["notes"] == ["the graph draws what weighs least together: it has 20 frames at most"]
        assert whole["notes"] == []
        assert len(part["graph"]["name"]) < len(whole["graph"]["name"])
        for side in ("own", "before") if "host" in query else ("own",):
            assert sum(part["graph"][side]) == sum(whole["graph"][side])
        assert "[many that weigh little]" in part["graph"]["names"]
        for found in (whole, part):
            del found["graph"], found["notes"]
        assert part == whole
