"""What is asked of a store, against plain counting over the samples that a test has put in."""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

from store.plainstore import FRAMES, HOUR, NOON, Frame, Sample, write_segment
from walkback.base.errors import ArgumentError
from walkback.export.formats import FORMATS
from walkback.stacks.profile import Profile
from walkback.stacks.stacks import END_WORDS, End
from walkback.store.store import Store


def label_of(frame: Frame) -> str:
    """The name of a frame, where no file can be had."""
    return frame[3] or f"[{(frame[1] or 'unknown').rpartition('/')[2]}]"


def some_samples(seed: int, count: int, hours: int = 3) -> list[Sample]:
    chance = random.Random(seed)
    return [
        Sample(
            tuple(chance.choice(FRAMES) for _ in range(chance.randrange(7))),
            time=NOON + chance.randrange(hours * HOUR),
            weight=chance.choice([1, 1, 1, 5, 1000]),
            process=chance.choice(["server", "client"]),
            host=chance.choice(["web1", "web2", "db"]),
            tid=chance.randrange(3),
            labels=chance.choice([(), (("version", "1"),), (("version", "2"), ("zone", "a"))]),
            end=chance.choice([0, 0, int(End.STACK_CUT)]),
        )
        for _ in range(count)
    ]


def folded(samples: Iterable[Sample]) -> Counter[tuple[str, ...]]:
    """The weight of each stack of names, the process outermost."""
    found: Counter[tuple[str, ...]] = Counter()
    for sample in samples:
        found[sample.process, *(label_of(frame) for frame in reversed(sample.frames))] += sample.weight
    return found


def folded_text(text: str) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        found[tuple(stack.split(";"))] += int(weight)
    return found


def exported(profile: Profile, form: str) -> bytes:
    out = io.BytesIO()
    FORMATS[form].export(profile, out)
    return out.getvalue()


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return some_samples(1, 900)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, samples: list[Sample]) -> Store:
    """The samples in several segments, so that every hour has several blocks."""
    path = tmp_path_factory.mktemp("query") / "store"
    for part in range(4):
        write_segment(path, samples[part::4])
    return Store(path)


CHOICES: list[tuple[dict[str, object], Callable[[Sample], bool]]] = [
    ({}, lambda one: True),
    ({"host": "web1"}, lambda one: one.host == "web1"),
    ({"host": ["web1", "db"]}, lambda one: one.host in {"web1", "db"}),
    ({"process": "client", "host": "web2"}, lambda one: (one.process, one.host) == ("client", "web2")),
    ({"labels": {"version": "2"}}, lambda one: ("version", "2") in one.labels),
    ({"labels": {"version": ["1", "2"]}}, lambda one: bool(one.labels)),
    ({"labels": {"version": "2", "zone": "b"}}, lambda one: False),
    ({"labels": {"it's": "'; DROP"}}, lambda one: False),
    ({"since": NOON + HOUR}, lambda one: one.time >= NOON + HOUR),
    ({"until": NOON + HOUR // 2}, lambda one: one.time < NOON + HOUR // 2),
    (
        {"since": NOON + HOUR // 3, "until": NOON + 2 * HOUR + 5, "process": "server"},
        lambda one: NOON + HOUR // 3 <= one.time < NOON + 2 * HOUR + 5 and one.process == "server",
    ),
    ({"since": NOON + 3 * HOUR}, lambda one: False),
    ({"since": -1, "until": 2**70}, lambda one: True),
    ({"since": 2**70}, lambda one: False),
    ({"host": "\udcff", "labels": {"\udcff": "\udcff"}}, lambda one: False),
    ({"since": "2025-11-24T17:00"}, lambda one: one.time >= NOON + HOUR),
]


@pytest.mark.parametrize(("asked", "wanted"), CHOICES, ids=lambda one: str(one) if isinstance(one, dict) else "")
def test_a_selection_has_the_samples_that_were_asked_for(
    store: Store, samples: list[Sample], asked: dict[str, Any], wanted: Callable[..., object]
) -> None:
    chosen = [one for one in samples if wanted(one)]
    profile = store.select(**asked).profile()
    assert folded_text(exported(profile, "folded").decode()) == folded(chosen)
    assert int(profile.count.sum()) == len(chosen)
    assert int(profile.count[profile.incomplete].sum()) == sum(one.end != 0 for one in chosen)
    if chosen:
        times = [one.time for one in chosen]
        assert (profile.start, profile.start + profile.duration) == (min(times), max(times))


def test_what_several_blocks_have_is_there_once(store: Store, samples: list[Sample]) -> None:
    profile = store.select().profile()
    rows = {(one.process, one.frames, one.end) for one in samples}
    assert len(profile.weight) == len(rows)
    assert len(profile.stack_first) - 1 == len({one.frames for one in samples})


def test_every_format_takes_a_selection(store: Store) -> None:
    profile = store.select(process="server").profile()
    for name, form in FORMATS.items():
        if not form.streamed:
            assert exported(profile, name)


def weights(samples: Iterable[Sample]) -> dict[str, tuple[int, int]]:
    """Own and total weight of each function."""
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for one in samples:
        names = [label_of(frame) for frame in one.frames]
        own.update({names[0]: one.weight} if names else {})
        total.update(dict.fromkeys(names, one.weight))
    return {name: (own[name], total[name]) for name in total}


def test_top(store: Store, samples: list[Sample]) -> None:
    found = store.select(host="db").top()
    assert {one.name: (one.own, one.total) for one in found} == weights(one for one in samples if one.host == "db")
    assert [one.own for one in found] == sorted((one.own for one in found), reverse=True)
    assert store.select(host="db").top(2) == found[:2]


def through_by_hand(
    samples: Iterable[Sample], wanted: Callable[[str], bool]
) -> tuple[int, int, Counter[str], Counter[str]]:
    weight = own = 0
    callers: Counter[str] = Counter()
    callees: Counter[str] = Counter()
    for one in samples:
        names = [label_of(frame) for frame in one.frames]
        if not any(map(wanted, names)):
            continue
        weight += one.weight
        own += one.weight * wanted(names[0])
        pairs = list(pairwise(names))
        callers.update(dict.fromkeys({outer for inner, outer in pairs if wanted(inner)}, one.weight))
        callees.update(dict.fromkeys({inner for inner, outer in pairs if wanted(outer)}, one.weight))
    return weight, own, callers, callees


@pytest.mark.parametrize("asked", ["a", "do_syscall", re.compile("[a-c]$"), re.compile("strange")])
def test_through(store: Store, samples: list[Sample], asked: str | re.Pattern[str]) -> None:
    wanted = asked.__eq__ if isinstance(asked, str) else lambda name: asked.search(name) is not None
    found = store.select().through(asked)
    weight, own, callers, callees = through_by_hand(samples, wanted)
    assert (found.weight, found.own, found.whole) == (weight, own, sum(one.weight for one in samples))
    assert {one.name: one.weight for one in found.callers} == callers
    assert {one.name: one.weight for one in found.callees} == callees
    assert [one.weight for one in found.callers] == sorted(callers.values(), reverse=True)
    of_it = [one for one in samples if any(wanted(label_of(frame)) for frame in one.frames)]
    assert folded_text(exported(found.profile, "folded").decode()) == folded(of_it)


def test_through_what_is_not_there(store: Store) -> None:
    found = store.select().through("nothing")
    assert (found.functions, found.weight, found.own, found.callers, found.callees) == ([], 0, 0, [], [])


def test_a_store_without_samples(tmp_path: Path) -> None:
    store = Store(tmp_path / "new", create=True)
    chosen = store.select()
    assert (len(chosen.profile().stack), chosen.top(), chosen.through("a").weight) == (0, [], 0)
    assert exported(chosen.profile(), "folded") == b""
    found = store.overview()
    assert (found.samples, found.hours, found.hosts) == (0, [], [])


def test_overview(store: Store, samples: list[Sample]) -> None:
    found = store.overview()
    assert [(hour.hour, hour.blocks) for hour in found.hours] == [(f"2025-11-24T{hour}", 4) for hour in (16, 17, 18)]
    assert found.samples == len(samples)
    assert found.bytes == sum(file.stat().st_size for file in store.path.rglob("*.parquet"))
    assert (list(found.hosts), list(found.processes)) == (["db", "web1", "web2"], ["client", "server"])
    assert found.labels == {"version": ["1", "2"], "zone": ["a"]}


def test_blocks_that_are_replaced_do_not_count(tmp_path: Path, samples: list[Sample]) -> None:
    old = write_segment(tmp_path / "store", samples[:10])
    hours = {path.name.removeprefix("hour=") for path in (tmp_path / "store").glob("segment=*/hour=*")}
    write_segment(tmp_path / "store", samples[:10], replaces=[(old, hour) for hour in hours])
    profile = Store(tmp_path / "store").select().profile()
    assert int(profile.count.sum()) == 10


def test_sql_samples(store: Store, samples: list[Sample]) -> None:
    found = store.sql('SELECT host, process, "end", labels, sum(weight) AS weight FROM samples GROUP BY ALL')
    expected: Counter[tuple[object, ...]] = Counter()
    for one in samples:
        expected[one.host, one.process, END_WORDS[End(one.end)], tuple(sorted(one.labels))] += one.weight
    rows = zip(*(found[name].tolist() for name in ("host", "process", "end", "labels", "weight")), strict=True)
    assert {(*row[:3], tuple(sorted(row[3].items()))): row[4] for row in rows} == expected


def test_sql_stacks_have_one_number_in_all_blocks(store: Store, samples: list[Sample]) -> None:
    found = store.sql("SELECT stack, sum(weight) AS weight FROM samples WHERE stack IS NOT NULL GROUP BY ALL")
    by_stack: Counter[tuple[Frame, ...]] = Counter()
    for one in samples:
        by_stack[one.frames] += one.weight
    by_stack.pop((), None)
    assert sorted(found["weight"].tolist()) == sorted(by_stack.values())
    frames = store.sql(
        "SELECT stack, list(coalesce(function, module) ORDER BY depth) AS names "
        "FROM stack_frames JOIN frames USING (frame) GROUP BY stack"
    )
    names = [frame[3] or frame[1] for frame in FRAMES]
    assert {tuple(its) for its in frames["names"].tolist()} == {
        tuple(names[FRAMES.index(frame)] for frame in stack) for stack in by_stack
    }
    assert sorted(frames["stack"].tolist()) == sorted(found["stack"].tolist())


def test_sql_of_times(store: Store, samples: list[Sample]) -> None:
    found = store.sql("SELECT count(*) AS n FROM samples", since=NOON + HOUR, until=NOON + HOUR + HOUR // 2)
    assert found["n"].tolist() == [sum(NOON + HOUR <= one.time < NOON + HOUR + HOUR // 2 for one in samples)]


def test_sql_blocks(store: Store, samples: list[Sample]) -> None:
    found = store.sql("SELECT sum(samples) AS samples, sum(bytes) AS bytes, count(*) AS n FROM blocks")
    assert [int(found[name][0]) for name in ("samples", "bytes", "n")] == [len(samples), store.overview().bytes, 12]


def test_sql_of_a_store_without_samples(tmp_path: Path) -> None:
    store = Store(tmp_path / "new", create=True)
    for table in ("samples", "stack_frames", "frames", "blocks"):
        filled = write_segment(tmp_path / "filled", [Sample((FRAMES[0],))])
        assert filled
        asked = f"SELECT column_name, column_type FROM (DESCRIBE {table})"
        none, some = (one.sql(asked) for one in (store, Store(tmp_path / "filled")))
        assert none["column_name"].tolist() == some["column_name"].tolist()
        assert store.sql(f"SELECT count(*) AS n FROM {table}")["n"].tolist() == [0]


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1) TO '{}/stolen'",
        "CREATE TABLE t (a INTEGER)",
        "SELECT 1; SELECT 2",
        "SET memory_limit = '1GB'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{}/stolen'",
        "ATTACH '{}/stolen' AS other",
        "EXPORT DATABASE '{}/stolen'",
        "INSTALL httpfs",
        "DELETE FROM samples",
        "WITH x AS (COPY (SELECT 1) TO '{}/stolen') FROM x",
        """WITH "\u00e4\u00e4" AS (SELECT 1), x AS (cOPY (SELECT 1) TO '{}/stolen') FROM x""",
        "FROM query('COPY (SELECT 1) TO ''{}/stolen''')",
        "",
        "SELEC 1",
        "FROM nowhere",
        "SELECT FROM samples WHERE",
    ],
)
def test_sql_that_writes_or_is_wrong_is_refused(store: Store, tmp_path: Path, query: str) -> None:
    before = sorted(store.path.rglob("*"))
    with pytest.raises(ValueError, match=r"[a-z]"):
        store.sql(query.format(tmp_path))
    assert sorted(store.path.rglob("*")) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "query",
    [
        "FROM '{}/other.csv'",
        "FROM read_csv('{}/other.csv')",
        "FROM read_text('{}/*.csv')",
        "FROM glob('{}/*')",
        "FROM read_parquet('{}/other.parquet')",
        "FROM query('FROM read_csv(''{}/other.csv'')')",
        "SELECT (SELECT content FROM read_text('{}/other.csv'))",
    ],
)
def test_sql_reads_other_files_only_where_that_is_allowed(store: Store, tmp_path: Path, query: str) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    duckdb.sql(f"COPY (SELECT 1 AS a) TO '{tmp_path}/other.parquet' (FORMAT parquet)")
    query = query.format(tmp_path)
    with pytest.raises(ArgumentError, match="allow_files"):
        store.sql(query)
    assert store.sql(query, allow_files=True)
    assert store.sql(f"FROM '{next(store.path.rglob('samples.parquet'))}'")


def test_words_that_write_are_fine_as_names(store: Store) -> None:
    assert store.sql("""SELECT 'copy' AS "copy" -- copy""")["copy"].tolist() == ["copy"]


def test_sql_knows_nothing_of_variables(store: Store) -> None:
    samples_of_mine = {"a": [1]}
    assert samples_of_mine
    with pytest.raises(ValueError, match="samples_of_mine"):
        store.sql("FROM samples_of_mine")


@pytest.mark.parametrize("by", ["host", "process", "version", "zone", "no 'such"])
def test_groups_weigh_what_their_samples_do(store: Store, samples: list[Sample], by: str) -> None:
    wanted = [sample for sample in samples if sample.process == "server" and sample.time >= NOON + HOUR]
    weight: Counter[str | None] = Counter()
    count: Counter[str | None] = Counter()
    for sample in wanted:
        value = {"host": sample.host, "process": sample.process, **dict(sample.labels)}.get(by)
        weight[value] += sample.weight
        count[value] += 1
    found = store.select(since=NOON + HOUR, process="server").by(by)
    assert {group.value: (group.weight, group.count) for group in found} == {
        value: (weight[value], count[value]) for value in weight
    }
    assert [group.weight for group in found] == sorted(weight.values(), reverse=True)


def test_groups_of_a_store_without_samples(tmp_path: Path) -> None:
    assert Store(tmp_path / "empty", create=True).select().by("host") == []
