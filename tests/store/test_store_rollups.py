"""Sums of days and months, against plain counting over the samples that they are of."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cli.commands import run
from effort import rounds
from store.plainstore import HOUR, NOON, Sample, named, write_segment
from store.test_store_query import exported, folded, folded_text, some_samples
from walkback.base.errors import UnreadableError
from walkback.store.parts import Rollup, live_rollups
from walkback.store.store import Store

DAY = 24 * HOUR
MIDNIGHT = NOON // DAY * DAY
DAYS = 12
"""From 24 November on, so that two months have some."""
COUNT = rounds(40, quick=15, share=40)


def rollups(store: Store) -> dict[str, Rollup]:
    found = live_rollups(store.folder.segments())
    assert len(found) == len({rollup.span for rollup in found})
    return {rollup.span: rollup for rollup in found}


def filled(path: Path, samples: list[Sample], parts: int = 3) -> Store:
    for part in range(parts):
        write_segment(path, samples[part::parts])
    return Store(path)


def days(samples: list[Sample], hours: int) -> list[Sample]:
    """The same over many days, in the first hours of each."""
    chance = random.Random(5)

    return [
        replace(one, time=MIDNIGHT + chance.randrange(DAYS) * DAY + chance.randrange(hours * HOUR)) for one in samples
    ]


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return days(some_samples(2, 1500), 3)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, samples: list[Sample]) -> Store:
    store = filled(tmp_path_factory.mktemp("rollups") / "store", samples)
    done = store.compact()
    assert done.rollups == (
        *(f"2025-11-{day}" for day in range(24, 31)),
        *(f"2025-12-0{day}" for day in range(1, 5)),
        "2025-11",
    )
    return store


def counted(samples: list[Sample], by: str) -> list[tuple[str, int, int]]:
    weight: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for one in samples:
        weight[getattr(one, by)] += one.weight
        count[getattr(one, by)] += 1
    return sorted((value, weight[value], count[value]) for value in count)


def test_days_and_months_that_are_over_are_summed_up(store: Store, samples: list[Sample]) -> None:
    found = rollups(store)
    assert set(found) == {
        *(f"2025-11-{day}" for day in range(24, 31)),
        *(f"2025-12-0{day}" for day in range(1, 5)),
        "2025-11",
    }
    for span, rollup in found.items():
        blocks = {block.name for block in store.blocks() if block.hour.startswith(span)}
        assert rollup.of == blocks
    with store.snapshot() as snapshot:
        assert snapshot.summed.rollups[0].span == "2025-11"
        assert {block.hour[:10] for block in snapshot.summed.blocks} == {"2025-12-05"}
    assert list(store.check()) == []


def test_answers_are_those_of_the_samples(store: Store, samples: list[Sample]) -> None:
    chance = random.Random(7)
    for turn in range(COUNT):
        step = chance.choice([HOUR, DAY, 1])
        since, until = sorted(MIDNIGHT + chance.randrange(-DAY, (DAYS + 1) * DAY) // step * step for _ in range(2))
        asked: dict[str, object] = {"since": since, "until": until} if turn else {}
        chosen = [one for one in samples if not turn or since <= one.time < until]
        if chance.random() < 0.5:
            asked |= {"host": "web1", "labels": {"version": "2"}}
            chosen = [one for one in chosen if one.host == "web1" and ("version", "2") in one.labels]
        selection = store.select(**asked)  # type: ignore[arg-type]
        profile = selection.profile()
        assert folded_text(exported(profile, "folded").decode()) == folded(chosen)
        assert int(profile.count.sum()) == len(chosen)
        assert int(profile.count[profile.incomplete].sum()) == sum(one.end != 0 for one in chosen)
        times = [one.time for one in chosen]
        begins, ends = profile.start, profile.start + profile.duration
        assert (begins, ends) == ((min(times), max(times)) if times else (0, 0))
        for by in ("host", "process"):
            assert sorted((str(one.value), one.weight, one.count) for one in selection.by(by)) == counted(chosen, by)


def test_compaction_with_nothing_new_makes_none_again(store: Store) -> None:
    before = {span: rollup.path for span, rollup in rollups(store).items()}
    done = store.compact()
    assert (done.segment, done.rollups) == (None, ())
    assert {span: rollup.path for span, rollup in rollups(store).items()} == before


def test_what_comes_later_counts_beside_the_sums_until_it_is_in_them(tmp_path: Path) -> None:
    samples = days(some_samples(3, 300), 3)
    store = filled(tmp_path / "store", samples)
    store.compact()
    for late in (MIDNIGHT + 2 * DAY + 5, MIDNIGHT + 3 * DAY + 9 * HOUR):  # in an hour with a block, and in one without
        new = [Sample((named("late"),), time=late, weight=7)]
        write_segment(store.path, new)
        samples += new
        assert folded_text(exported(store.select().profile(), "folded").decode()) == folded(samples)
    assert list(store.check()) == []
    assert set(store.compact().rollups) == {"2025-11-26", "2025-11-27", "2025-11"}
    assert folded_text(exported(store.select().profile(), "folded").decode()) == folded(samples)
    assert all(rollup.path.is_dir() for rollup in rollups(store).values())
    assert list(store.check()) == []


def test_sums_of_hours_that_expire_go(tmp_path: Path) -> None:
    samples = days(some_samples(4, 300), 3)
    store = filled(tmp_path / "store", samples)
    store.compact()
    store.expire(MIDNIGHT + 2 * DAY + HOUR)
    left = [one for one in samples if one.time >= MIDNIGHT + 2 * DAY + HOUR]
    assert folded_text(exported(store.select().profile(), "folded").decode()) == folded(left)
    assert not {"2025-11", "2025-11-24", "2025-11-25", "2025-11-26"} & rollups(store).keys()
    assert {path.name for path in store.path.glob("segment=*/sums/*")} == rollups(store).keys()
    assert list(store.check()) == []
    assert set(store.compact().rollups) == {"2025-11", "2025-11-26"}
    store.expire(MIDNIGHT + 40 * DAY)
    assert [path.name for path in store.path.glob("segment=*")] == []


def test_weights_that_are_too_much_together_have_no_sums(tmp_path: Path) -> None:
    times = [MIDNIGHT, MIDNIGHT + HOUR, MIDNIGHT + 2 * DAY]
    store = filled(tmp_path / "store", [Sample((named("a"),), time=time, weight=2**62) for time in times], 1)
    assert store.compact().rollups == ()
    assert len(store.select(until=MIDNIGHT + HOUR).top()) == 1


@pytest.mark.parametrize("table", ["sums", "times", "sources", "nodes", "frames", "modules"])
def test_a_damaged_rollup_is_an_error_with_its_name(table: str, tmp_path: Path) -> None:
    store = filled(tmp_path / "store", days(some_samples(6, 200), 2))
    store.compact()
    rollup = rollups(store)["2025-11"]
    rollup.file(table).write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(UnreadableError, match=f"{table}.parquet"):
        store.select().profile()
    [problem] = store.check()
    assert problem.file == str(rollup.file(table))
    store.select(since=MIDNIGHT + 9 * DAY).profile()
    rollup.file(table).unlink()
    rollup.path.rename(tmp_path / "elsewhere")
    [problem] = store.check()
    assert (problem.file, problem.message) == (str(rollup.path), "this rollup is missing")
    with pytest.raises(UnreadableError, match="this rollup is missing"):
        store.select().profile()


def test_sums_that_are_not_those_of_their_blocks_are_found(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", days(some_samples(8, 200), 2))
    store.compact()
    one, other = rollups(store)["2025-11-24"], rollups(store)["2025-11-25"]
    for table in one.tables:
        one.file(table).write_bytes(other.file(table).read_bytes())
    problems = list(store.check())
    assert {problem.file for problem in problems} == {str(one.path)}
    assert {problem.message.split(" as its ")[1].split(",")[0] for problem in problems} >= {"samples", "first", "last"}


@pytest.mark.parametrize(
    "sums",
    [
        {"2025-11-24": {}},
        {"2025-11-24T16": {"sums": 1, "of": []}},
        {"../../x": {"sums": 1, "of": []}},
        {"2025-11": {"sums": -1, "of": []}},
        {"2025-11": {"sums": 1, "of": [["..", "2025-11-24T16"]]}},
        {"2025-11": {"sums": 1, "of": [1]}},
        {"2025-11": [1]},
    ],
)
def test_a_wrong_description_is_refused(sums: object, tmp_path: Path) -> None:
    store = filled(tmp_path / "store", some_samples(9, 20), 1)
    [file] = store.path.glob("segment=*/segment.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"sums": sums}))
    with pytest.raises(UnreadableError, match=r"segment\.json"):
        Store(store.path).select().profile()


def test_the_command_says_what_was_summed_up(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", days(some_samples(10, 200), 1), 1)
    assert run("store", store.path, "compact").stdout.decode().splitlines() == [f"{store.path}: summed up 2025-11"]
    size = sum(file.stat().st_size for file in rollups(store)["2025-11"].path.iterdir())
    assert f" bytes, and {size} bytes of sums\n" in run("store", store.path).stdout.decode()
    assert json.loads(run("store", store.path, "--json").stdout)["rollups"] == size
    again = json.loads(run("store", store.path, "compact", "--json").stdout)
    assert (again["rollups"], again["segment"]) == ([], None)
