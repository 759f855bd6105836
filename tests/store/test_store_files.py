"""What a store writes: whole, readable without walkback, and the same after a compaction."""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from store import plainreader
from store.made import HOUR, NOON, Sample, named, put, random_samples, told_sample
from walkback.base.errors import UnreadableError
from walkback.store import layout
from walkback.store.store import Store

SOME = [(NOON, named("leaf", "main"), 1), (NOON + 5, named("main"), 2), (NOON + HOUR, named("other", "main"), 3)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", create=True)


def filled(
    store: Store,
    samples: Sequence[Sample] = SOME,
    **origin: Any,
) -> Counter[
    tuple[int, tuple[tuple[str | None, int, str | None], ...], int, int, None, None, None, None, None, tuple[()]]
]:
    with store.append() as new:
        return put(new, samples, **origin)


def tables_of(store: Store) -> dict[tuple[str, str], bytes]:
    """The bytes of all tables of blocks that count."""
    return {(block.hour, name): block.file(name).read_bytes() for block in store.blocks() for name in layout.TABLES}


# What is written


@pytest.mark.whole
def test_another_reader_finds_every_sample_with_its_stack(store: Store) -> None:
    rng = random.Random(1)
    expected: Counter[Any] = Counter()
    for number in range(20):
        origin: dict[str, Any]
        origin = {"host": rng.choice(("web", None)), "process": "server", "pid": number or -1, "tid": 7, "event": None}
        origin["labels"] = rng.choice(((), (("version", "1"), ("zone", "é'\""))))
        expected += filled(store, random_samples(rng, rng.randrange(60)), **origin)
    assert plainreader.samples(store.path) == expected
    assert store.check() == []


def test_a_block_has_the_samples_of_one_hour_of_utc(store: Store) -> None:
    filled(store)
    assert [(block.hour, block.counts.samples) for block in store.blocks()] == [
        ("2025-11-24T16", 2),
        ("2025-11-24T17", 1),
    ]
    assert [path.name for path in plainreader.live_blocks(store.path)] == ["hour=2025-11-24T16", "hour=2025-11-24T17"]


@pytest.mark.parametrize(
    ("time", "hour"), [(0, "1970-01-01T00"), (layout.LAST_NS, "2262-04-11T22"), (NOON - 1, "2025-11-24T15")]
)
def test_the_first_and_the_last_moment_have_their_hour(store: Store, time: int, hour: str) -> None:
    expected = filled(store, [(time, named("f"), 1)])
    assert [block.hour for block in store.blocks()] == [hour]
    assert plainreader.samples(store.path) == expected
    assert store.check() == []


@pytest.mark.parametrize("time", [-1, -(2**62), layout.LAST_NS + 1, 2**63 - 1])
def test_a_time_before_1970_or_after_2262_is_refused(store: Store, time: int) -> None:
    with pytest.raises(UnreadableError, match="from the years 1970 to 2262"):
        filled(store, [(time, named("f"), 1)])
    assert plainreader.samples(store.path) == Counter()


def test_samples_of_more_hours_than_a_year_has_are_refused(store: Store) -> None:
    with pytest.raises(UnreadableError, match="of 9000 different hours, and at most 8784"):
        filled(store, [(number * HOUR, named("f"), 1) for number in range(9000)])
    assert store.blocks() == ()
    assert list(store.folder.staging.iterdir()) == []


def test_the_counts_of_a_block_are_those_of_its_tables(store: Store) -> None:
    filled(store, [(NOON + 9, named("a", "b"), 5), (NOON, named("a", "b"), 2**62), (NOON, named("c", "b"), 2**62)])
    (block,) = store.blocks()
    counts = block.counts
    assert (counts.samples, counts.stacks, counts.nodes, counts.frames) == (3, 2, 3, 3)
    assert (counts.first, counts.last, counts.weight) == (NOON, NOON + 9, 2**63 + 5)


def test_the_columns_have_the_documented_types(store: Store) -> None:
    import duckdb

    filled(store)
    for block in store.blocks():
        for table, columns in layout.COLUMNS.items():
            rows = duckdb.execute(
                f"DESCRIBE FROM read_parquet('{block.file(table)}', hive_partitioning=false)"
            ).fetchall()
            assert {row[0]: row[1] for row in rows} == columns


def test_the_names_of_folders_are_columns_for_who_reads_all_files_at_once(store: Store) -> None:
    import duckdb

    filled(store)
    rows = duckdb.execute(
        "SELECT segment, hour, count(*), sum(weight)"
        f" FROM '{store.path}/segment=*/hour=*/samples.parquet' GROUP BY ALL ORDER BY 2"
    ).fetchall()
    (segment,) = {block.segment for block in store.blocks()}
    assert rows == [(segment, "2025-11-24T16", 2, 3), (segment, "2025-11-24T17", 1, 3)]


def test_rows_have_the_documented_order(store: Store) -> None:
    rng = random.Random(2)
    filled(store, random_samples(rng, 300))
    for block in plainreader.live_blocks(store.path):
        times = [row["time"] for row in plainreader.table(block, "samples")]
        assert times == sorted(times)
        frames = [
            (row["module"] is not None, row["module"] or 0, row["address"])
            for row in plainreader.table(block, "frames")
        ]
        assert frames == sorted(frames)
        last: dict[Any, Any]
        paths, last = [], {}
        for row in plainreader.table(block, "nodes"):
            depth, frame = row["depth"], row["frame"]
            assert frame > last.get(depth, -1)
            last = {one: its for one, its in last.items() if one < depth} | {depth: frame}
            paths.append(tuple(last.values()))
        assert len(set(paths)) == len(paths)


def test_only_what_samples_refer_to_is_written(store: Store) -> None:
    with store.append() as new:
        put(new, [(NOON, named("a"), 1)], process="one")
        put(new, [(NOON + HOUR, [("ab" * 20, "/lib", 5, None)], 1)], process="two")
    first, second = plainreader.live_blocks(store.path)
    assert [row["name"] for row in plainreader.table(first, "frames")] == ["a"]
    assert plainreader.table(first, "modules") == []
    assert [row["process"] for row in plainreader.table(second, "sources")] == ["two"]
    assert [row["path"] for row in plainreader.table(second, "modules")] == ["/lib"]


def test_a_file_with_a_build_id_is_one_wherever_it_lies(store: Store) -> None:
    with store.append() as new:
        put(new, [(NOON, [("ab" * 20, "/lib/x", 5, None)], 1), (NOON, [("ab" * 20, "/mnt/lib/x", 5, None)], 1)])
    (block,) = store.blocks()
    assert block.counts.stacks == 1


def test_equal_samples_are_written_as_equal_bytes(tmp_path: Path) -> None:
    one, two = (Store(tmp_path / name, create=True) for name in ("one", "two"))
    samples = random_samples(random.Random(3), 200)
    filled(one, samples)
    filled(two, samples)
    assert tables_of(one) == tables_of(two)


def test_an_append_without_samples_leaves_nothing(store: Store) -> None:
    filled(store, [])
    assert sorted(path.name for path in store.path.iterdir()) == [
        "compact.lock",
        "lock",
        "staging",
        "walkback-store.json",
    ]
    assert list(store.folder.staging.iterdir()) == []


def test_an_append_that_fails_leaves_nothing(store: Store) -> None:
    def work() -> None:
        with store.append() as new:
            put(new, SOME)
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert store.blocks() == ()
    assert list(store.folder.staging.iterdir()) == []


def test_an_append_is_published_once(store: Store) -> None:
    with store.append() as new:
        put(new, SOME)
    with pytest.raises(ValueError, match="this is finished"):
        new.publish()


def test_a_store_that_may_only_be_read_is_read(store: Store, tmp_path: Path) -> None:
    expected = filled(store)
    copy = tmp_path / "copy"
    # As some tools copy: without empty files and folders.
    shutil.copytree(store.path, copy, ignore=lambda _, names: [one for one in names if one in {"lock", "staging"}])
    assert len(Store(copy).blocks()) == 2
    expected += filled(Store(copy))
    assert plainreader.samples(copy) == expected


def test_files_have_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    former = os.umask(0o027)
    try:
        store = Store(tmp_path / "store", create=True)
        filled(store)
    finally:
        os.umask(former)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in store.path.rglob("*") if path.is_file()}
    assert modes == {0o640}


@pytest.mark.whole
@pytest.mark.parametrize("name", ["it's", "a [b] *c?", 'd"e', "née", "x;y--z"])
def test_a_store_may_have_any_name(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / name, create=True)
    expected = filled(store) + filled(store)
    store.compact()
    assert plainreader.samples(store.path) == expected
    assert store.check() == []


# Compaction and expiry


@pytest.mark.whole
def test_a_compaction_changes_no_sample(store: Store) -> None:
    rng = random.Random(4)
    expected: Counter[Any] = Counter()
    for number in range(12):
        labels = (("run", str(number)),)
        expected += filled(store, random_samples(rng, 50), process=f"p{number}", host="h", pid=number, labels=labels)
    done = store.compact()
    assert len(done.old) > len(done.blocks) == len(store.blocks())
    assert done.waiting == 0
    assert plainreader.samples(store.path) == expected
    assert store.check() == []
    assert [path.name for path in store.path.glob("segment=*")] == [f"segment={done.segment}"]
    assert list(store.folder.staging.iterdir()) == []


@pytest.mark.whole
def test_a_compaction_is_what_one_append_would_have_written(tmp_path: Path) -> None:
    rng = random.Random(5)
    parts = [random_samples(rng, 40) for _ in range(6)]
    one, many = (Store(tmp_path / name, create=True) for name in ("one", "many"))
    filled(one, [sample for part in parts for sample in part])
    for part in parts:
        filled(many, part)
    many.compact()
    one.compact(every=True)
    # The order of samples of one time is that of the segments.
    assert {key: its for key, its in tables_of(one).items() if key[1] != "samples"} == {
        key: its for key, its in tables_of(many).items() if key[1] != "samples"
    }


def test_a_compaction_leaves_hours_of_one_block_alone_unless_all_are_wanted(store: Store) -> None:
    filled(store)
    assert store.compact().segment is None
    before = store.blocks()
    assert store.compact(every=True).old == before
    assert {block.hour for block in store.blocks()} == {block.hour for block in before}


@pytest.mark.whole
def test_compactions_after_compactions(store: Store) -> None:
    rng = random.Random(6)
    expected: Counter[Any] = Counter()
    for _ in range(8):
        expected += filled(store, random_samples(rng, 30)) + filled(store, random_samples(rng, 30, hours=1))
        store.compact(every=rng.random() < 0.3)
        assert plainreader.samples(store.path) == expected
    assert len(store.blocks()) == 3
    assert store.check() == []


def test_a_reader_keeps_what_it_sees_while_the_store_is_compacted(store: Store) -> None:
    expected = filled(store) + filled(store)
    with store.snapshot() as snapshot:
        done = store.compact()
        assert done.waiting == len(done.old) == 4
        assert all(block.file(name).exists() for block in snapshot.blocks for name in layout.TABLES)
        assert plainreader.samples(store.path) == expected
        more = filled(store)
        assert store.compact().waiting == 4 + 2 + 2
        assert plainreader.samples(store.path) == expected + more
    assert store.compact().waiting == 0
    assert len(list(store.path.glob("segment=*"))) == 1
    assert plainreader.samples(store.path) == expected + more
    assert store.check() == []


def test_whole_hours_expire(store: Store) -> None:
    filled(store)
    store.expire(NOON + HOUR - 1)
    assert len(store.blocks()) == 2
    done = store.expire(NOON + HOUR)
    assert [block.hour for block in done.old] == ["2025-11-24T16"]
    assert [block.hour for block in store.blocks()] == ["2025-11-24T17"]
    assert store.expire(2**62).waiting == 0
    assert store.blocks() == ()
    assert list(store.path.glob("segment=*")) == []


def test_expiry_after_expiry_leaves_one_note_of_what_has_gone(store: Store) -> None:
    with store.append() as new:
        expected = put(new, [(NOON + number * HOUR, named("f"), 1) for number in range(5)])
    for number in range(1, 5):
        assert len(store.expire(NOON + number * HOUR).old) == 1
        assert len(list(store.path.glob("segment=*"))) == 2
        left = Counter({one: count for one, count in expected.items() if one[0] >= NOON + number * HOUR})
        assert plainreader.samples(store.path) == left
        assert store.check() == []
    store.expire(NOON + 5 * HOUR)
    assert list(store.path.glob("segment=*")) == []


def test_what_expired_while_somebody_read_does_not_come_back(store: Store) -> None:
    filled(store)
    filled(store)
    with store.snapshot():
        store.compact()
        store.expire(NOON + HOUR)
        assert [block.hour for block in store.blocks()] == ["2025-11-24T17"]
    for _ in range(3):
        store.compact(every=True)
        assert [block.hour for block in store.blocks()] == ["2025-11-24T17"]
    # Nothing is left of those that only took away.
    assert len(list(store.path.glob("segment=*"))) == 1


@pytest.mark.whole
def test_segments_that_were_only_in_part_replaced_stay_right(store: Store) -> None:
    rng = random.Random(7)
    expected: Counter[Any] = Counter()
    for _ in range(40):
        if rng.random() < 0.6:
            expected += filled(store, random_samples(rng, 10, hours=rng.randrange(1, 5)))
        held = store.snapshot() if rng.random() < 0.4 else None
        if rng.random() < 0.5:
            store.compact(every=rng.random() < 0.2)
        if rng.random() < 0.2:
            before = NOON + rng.randrange(3) * HOUR
            store.expire(before)
            expected = Counter({sample: count for sample, count in expected.items() if sample[0] >= before})
        if held is not None:
            held.close()
        assert plainreader.samples(store.path) == expected
        assert store.check() == []
    store.compact()
    assert all((segment / f"hour={block.hour}").exists() for block in store.blocks() for segment in [block.path.parent])
    assert {path.parent.name for path in store.path.glob("segment=*/hour=*")} == {
        path.name for path in store.path.glob("segment=*")
    }


def test_a_snapshot_has_the_blocks_of_the_wanted_times(store: Store) -> None:
    filled(store)
    assert len(store.blocks(since=NOON, until=NOON + HOUR + 1)) == 2
    assert [block.hour for block in store.blocks(until=NOON + HOUR)] == ["2025-11-24T16"]
    assert [block.hour for block in store.blocks(since=NOON + 6)] == ["2025-11-24T17"]
    assert store.blocks(until=NOON) == ()


# Weights


def test_a_weight_that_no_column_can_hold_is_the_most_that_one_can(store: Store) -> None:
    with store.append() as new:
        builder = new.builder
        stack = builder.stacks.add(np.array([0, 0]), np.zeros(0, np.int64))
        origin = builder.sources([new.origin])
        builder.add(np.array([NOON]), stack, np.array([2**64 - 1], np.uint64), origin, np.zeros(1))
    assert plainreader.samples(store.path) == Counter([told_sample(NOON, (), 2**63 - 1)])
