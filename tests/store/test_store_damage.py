"""What is no store, or a damaged one, is told; a disk that is full leaves a store as it was."""

from __future__ import annotations

import json
import random
import resource
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from effort import rounds
from store import plainreader
from store.made import HOUR, NOON, Sample, named, put, random_samples
from walkback.base.errors import UnreadableError
from walkback.store import layout
from walkback.store.store import Store

COUNT = rounds(25, quick=5, share=20)
SOME = [(NOON, named("leaf", "main"), 1), (NOON + 5, named("main"), 2), (NOON + HOUR, named("other", "main"), 3)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", create=True)


def filled(
    store: Store, samples: Sequence[Sample] = SOME
) -> Counter[
    tuple[int, tuple[tuple[str | None, int, str | None], ...], int, int, None, None, None, None, None, tuple[()]]
]:
    with store.append() as new:
        return put(new, samples)


def test_a_folder_that_is_no_store_is_not_read_nor_made_one(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="not a store"):
        Store(tmp_path)
    with pytest.raises(UnreadableError, match="missing: No such file or directory"):
        Store(tmp_path / "missing")
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UnreadableError, match=r"not a store, and cannot become one: 'letter\.txt' is in it"):
        Store(tmp_path, create=True)
    with pytest.raises(FileNotFoundError):
        Store(tmp_path / "no" / "parent", create=True)
    with pytest.raises(UnreadableError, match="not a store"):
        Store(tmp_path / "letter.txt")


def test_to_make_a_store_that_is_there_changes_nothing(store: Store) -> None:
    expected = filled(store)
    assert plainreader.samples(Store(store.path, create=True).path) == expected


def test_a_store_half_made_is_finished(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "lock").touch()
    (tmp_path / "store" / ".walkback-0123456789ab").touch()
    filled(Store(tmp_path / "store", create=True))


@pytest.mark.parametrize("marker", ['{"version": 2}', "{}", "[]", "null", "{"])
def test_a_store_of_another_version_is_refused(store: Store, marker: str) -> None:
    (store.path / "walkback-store.json").write_text(marker)
    with pytest.raises(UnreadableError, match=r"version|JSON"):
        Store(store.path)


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[]",
        "{}",
        '{"version": 1}',
        '{"version": 3, "replaces": [], "blocks": {}}',
        '{"version": 1, "replaces": [["x", "y"]], "blocks": {}}',
        '{"version": 1, "replaces": [["0123456789abcdef01234567"]], "blocks": {}}',
        '{"version": 1, "replaces": [], "blocks": {"../../etc": {}}}',
        '{"version": 1, "replaces": [], "blocks": {"2025-11-24T99": {}}}',
        '{"version": 1, "replaces": [], "blocks": {"2025-11-24T16": {"samples": 1}}}',
        '{"version": 1, "replaces": [], "blocks": {"2025-11-24T16": 5}}',
        '{"version": 1, "replaces": [], "blocks": {}, "sums": {"2025-11-24": {"sums": 1, "of": []}}}',
        "[" * 100_000,
    ],
)
def test_a_segment_that_does_not_describe_itself_is_told(store: Store, manifest: str) -> None:
    filled(store)
    (segment,) = store.path.glob("segment=*")
    (segment / "segment.json").write_text(manifest)
    with pytest.raises(UnreadableError, match="segment"):
        store.blocks()
    (problem,) = store.check()
    assert problem.file == str(segment / "segment.json")


def test_a_block_that_somebody_took_away_is_told(store: Store) -> None:
    filled(store)
    shutil.rmtree(store.blocks()[0].path)
    with pytest.raises(UnreadableError, match="this block is missing"):
        store.blocks()


@pytest.mark.whole
@pytest.mark.parametrize("table", layout.TABLES)
def test_a_damaged_table_is_told_and_never_compacted_into_another(store: Store, table: str) -> None:
    filled(store, random_samples(random.Random(10), 30, hours=1))
    before = store.blocks()
    file = before[0].file(table)
    whole = file.read_bytes()
    rng = random.Random(8)
    told = 0
    for _ in range(COUNT):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 6)):
            # What says how to read the rest is at the end.
            begin = rng.choice((0, max(0, len(damaged) - 600)))
            damaged[rng.randrange(begin, len(damaged))] = rng.choice((0, 127, 128, 255, rng.randrange(256)))
        file.write_bytes(damaged[: rng.randrange(len(damaged))] if rng.random() < 0.1 else damaged)
        problems = store.check()
        assert all(problem.file.startswith(str(file.parent)) for problem in problems)
        told += bool(problems)
        if problems and told < 10:
            try:
                store.compact(every=True)
            except UnreadableError:
                assert store.blocks() == before
            else:
                break  # it has as many samples as it should, and could be read after all
    assert told
    assert list(store.folder.staging.iterdir()) == []


def test_a_block_with_other_samples_than_its_segment_tells_is_not_compacted(store: Store) -> None:
    expected = filled(store) + filled(store)
    block = store.blocks()[0]
    manifest = block.path.parent / "segment.json"
    told = json.loads(manifest.read_text())
    told["blocks"][block.hour]["samples"] += 1
    manifest.write_text(json.dumps(told))
    with pytest.raises(UnreadableError, match="the segment gives 3 as its samples, and here it is 2"):
        store.compact()
    # The other hour is one block now.
    assert [block.hour for block in store.blocks()] == ["2025-11-24T16", "2025-11-24T16", "2025-11-24T17"]
    assert plainreader.samples(store.path) == expected
    assert [problem.message for problem in store.check()] == ["the segment gives 3 as its samples, and here it is 2"]


@pytest.mark.parametrize(
    ("table", "query", "message"),
    [
        ("nodes", "SELECT depth + 1 AS depth, frame FROM t", "node 0 cannot have the depth 1"),
        ("nodes", "SELECT depth, frame + 7 AS frame FROM t", "node 0 cannot have the frame"),
        ("samples", "SELECT * REPLACE (99::INTEGER AS stack) FROM t", "row 0 has the stack 99"),
        ("samples", "SELECT * REPLACE (-2::INTEGER AS stack) FROM t", "row 0 has the stack -2"),
        ("samples", "SELECT * REPLACE (NULL::INTEGER AS source) FROM t", "source is not there in every row"),
        ("samples", "SELECT * REPLACE (7::INTEGER AS source) FROM t", "row 0 has the source 7"),
        ("samples", "SELECT * EXCLUDE weight FROM t", "weight"),
        ("frames", "SELECT * REPLACE (3::INTEGER AS module) FROM t", "row 0 has the module 3"),
        ("samples", "SELECT * FROM t ORDER BY time DESC", "not in the order of their times"),
        ("samples", "SELECT * REPLACE (time + INTERVAL 3 HOUR AS time) FROM t", "not of the hour"),
        ("nodes", "SELECT 0::INTEGER AS depth, 0::INTEGER AS frame FROM t", "node 1 is there twice"),
    ],
)
def test_tables_that_contradict_each_other_are_told(store: Store, table: str, query: str, message: str) -> None:
    import duckdb

    filled(store, [(NOON, named("leaf", "main"), 1), (NOON + 5, named("main"), 2)])
    file = store.blocks()[0].file(table)
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE t AS FROM '{file}'")
        db.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet)")
    assert any(message in problem.message for problem in store.check()), store.check()


# A disk that is full


def test_a_write_that_fails_leaves_the_store_as_it_was(store: Store) -> None:
    expected = filled(store)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    rng = random.Random(9)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, limit[1]))
        with pytest.raises(OSError, match="File too large"):
            filled(store, random_samples(rng, 2000))
        with pytest.raises(OSError, match="File too large"):
            store.compact(every=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert plainreader.samples(store.path) == expected
    assert list(store.folder.staging.iterdir()) == []
    more = filled(store)
    store.compact()
    assert plainreader.samples(store.path) == expected + more
