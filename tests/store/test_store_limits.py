"""Times, weights, names, labels and damage at the edge of what a store takes: told, and nothing lost silently."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from store.made import HOUR, NOON, put
from walkback.base.errors import UnreadableError
from walkback.cbf.backtraces import Backtraces
from walkback.cbf.encoding import encode
from walkback.store.store import Store

LIBC = "ab" * 20


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", create=True)


def folded(store: Store, *lines: bytes, start: int = NOON, **options: Any) -> None:
    with store.append() as new:
        new.folded(lines, start=start, **options)


@pytest.mark.parametrize("start", [2**63, 2**70, -1, -(2**70)])
def test_a_start_that_is_no_time_of_a_sample_is_refused(store: Store, start: int) -> None:
    from walkback.cbf.decoding import decode_all

    found = decode_all(encode([(1, 0x1000)]))
    assert isinstance(found, Backtraces)
    with pytest.raises(UnreadableError, match="1970 to 2262"):
        folded(store, b"p;a 1", start=start)
    with pytest.raises(UnreadableError, match="1970 to 2262"), store.append() as new:
        new.backtraces(found, times=start)
    assert store.blocks() == ()


def test_times_of_any_clock_are_put_where_they_begin(store: Store) -> None:
    with store.append() as new:
        source = new.builder.sources([new.origin])
        stack = new.builder.stacks.add(np.array([0, 0, 0]), np.zeros(0, np.int64))
        times = np.array([2**64 - 5, 2**64 - 1], np.uint64)
        new.builder.add(times, stack, np.ones(2, np.int64), source[[0, 0]], np.zeros(2), since=NOON - 2**64)
    (block,) = store.blocks()
    assert (block.counts.first, block.counts.last) == (NOON - 5, NOON - 1)


def test_weights_that_are_too_much_together_are_told(store: Store) -> None:
    for _ in range(2):
        folded(store, *[b"p;a 999999999999999999"] * 12)
    with pytest.raises(UnreadableError, match="weigh more than 9223372036854775807"):
        store.select().top()


def test_a_file_with_a_build_id_is_one_in_all_blocks(store: Store) -> None:
    for path in ("/usr/lib/libc.so.6", "/mnt/lib/libc.so.6"):
        with store.append() as new:
            put(new, [(NOON, [(LIBC, path, 16, None)], 1)])
    assert [one.total for one in store.select().top()] == [2]
    assert store.sql("SELECT DISTINCT stack FROM samples")["stack"].size == 1


def test_names_that_are_no_text_stay_different(store: Store) -> None:
    folded(store, b"p;\xff 1", b"p;\xfe 2", b"\xfe;a 4")
    assert {one.name: one.own for one in store.select().top()} == {"\\udcff": 1, "\\udcfe": 2, "a": 4}
    assert sorted(store.overview().processes) == ["\\udcfe", "p"]


def test_labels_that_would_be_one_are_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="the same name"):
        store.append(labels={"\udcff": "1", "\\udcff": "2"})


def test_what_comes_after_publishing_is_refused(store: Store) -> None:
    new = store.append()
    new.folded([b"p;a 1"], start=NOON)
    new.publish()
    with pytest.raises(ValueError, match="cannot be added to"):
        new.folded([b"p;a 1"], start=NOON)


def test_expiry_takes_moments(store: Store) -> None:
    folded(store, b"p;a 1")
    store.expire("1d")
    assert store.blocks() == ()


@pytest.mark.parametrize("name", ["~", "file:", "-"])
def test_a_name_is_a_name_to_duckdb_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(name, create=True)
    folded(store, b"p;a 1")
    assert store.check() == []
    assert [one.name for one in store.select().top()] == ["a"]


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(UnreadableError, match="UTF-8"):
        Store(path, create=True)
    assert not path.exists()


# Damage


def test_a_marker_without_end_is_told(store: Store) -> None:
    (store.path / "walkback-store.json").write_text("[" * 100_000)
    with pytest.raises(UnreadableError, match="JSON"):
        Store(store.path)


def test_a_count_that_no_column_holds_is_told(store: Store) -> None:
    folded(store, b"p;a 1")
    manifest = next(store.path.glob("segment=*/segment.json"))
    told = json.loads(manifest.read_text())
    next(iter(told["blocks"].values()))["samples"] = 2**63
    manifest.write_text(json.dumps(told))
    with pytest.raises(UnreadableError, match="samples"):
        store.sql("FROM blocks")


def test_check_goes_on_after_what_is_wrong(store: Store) -> None:
    for hour in range(4):
        folded(store, b"p;a 1", start=NOON + hour * HOUR)
    first, second, third, _ = store.blocks()
    (first.path.parent / "segment.json").write_text("{")
    shutil.rmtree(second.path)
    third.file("nodes").write_bytes(b"nothing")
    wrong = {problem.file for problem in store.check()}
    assert wrong == {str(first.path.parent / "segment.json"), str(second.path), str(third.file("nodes"))}


@pytest.mark.parametrize("other", ["frames", None])
def test_a_table_with_other_columns_is_told_by_its_file(store: Store, other: str | None) -> None:
    folded(store, b"p;a;b 1")
    folded(store, b"p;c 1")
    file = store.blocks()[1].file("nodes")
    if other is None:
        file.unlink()
    else:
        shutil.copy(store.blocks()[1].file(other), file)
    with pytest.raises(UnreadableError) as caught:
        store.select().top()
    assert str(file) in str(caught.value)


def test_a_missing_table_is_not_something_to_be_written(store: Store) -> None:
    folded(store, b"p;a 1")
    store.blocks()[0].file("nodes").unlink()
    with pytest.raises(UnreadableError, match="No such file"):
        store.overview()


def test_samples_of_another_hour_do_not_keep_others_from_being_compacted(store: Store) -> None:
    for hour in (0, 0, 1, 1):
        folded(store, b"p;a 1", start=NOON + hour * HOUR)
    blocks = store.blocks()
    shutil.copy(blocks[2].file("samples"), blocks[0].file("samples"))
    with pytest.raises(UnreadableError, match="not of the hour"):
        store.compact()
    assert len(store.blocks()) == 3


def test_a_damaged_table_is_no_wrong_query(store: Store) -> None:
    folded(store, b"p;a 1")
    file = store.blocks()[0].file("samples")
    data = bytearray(file.read_bytes())
    # The pages, whose headers say how to read them.
    data[4:60] = b"\xff" * 56
    file.write_bytes(data)
    with pytest.raises(UnreadableError) as caught:
        store.sql("SELECT sum(weight), max(time), max(stack), max(process) FROM samples")
    assert str(file) in str(caught.value)


def test_a_file_among_the_segments_in_the_making_is_left_alone(store: Store) -> None:
    folded(store, b"p;a 1")
    (store.folder.staging / "x").touch()
    store.compact(every=True)
    assert store.expire(NOON + 2 * HOUR).old


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount")
def test_a_copy_on_a_disk_that_nobody_writes_to_is_read(store: Store) -> None:
    folded(store, b"p;a 1")
    (store.path / "lock").unlink()
    walkback = Path(sys.executable).with_name("walkback")
    script = f"mount --bind . . && mount -o remount,ro,bind {store.path} && exec {walkback} store {store.path} top"
    command = ["unshare", "-m", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=store.path)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("cannot mount here")
    assert (done.returncode, done.stderr) == (0, "")


# SQL


def test_times_with_a_time_zone_are_those_of_utc(store: Store) -> None:
    found = store.sql("SELECT to_timestamp(3600) AS a, [to_timestamp(0)] AS b ORDER BY 1; -- that is all")
    assert str(found["a"][0]).startswith("1970-01-01T01:00:00")


def test_columns_of_one_name_are_all_there(store: Store) -> None:
    assert {name: int(its[0]) for name, its in store.sql("SELECT 1 AS a, 2 AS a, 3 AS a_1").items()} == {
        "a": 1,
        "a_2": 2,
        "a_1": 3,
    }


@pytest.mark.parametrize("query", ["SELECT ?", "FROM enable_logging('QueryLog')", "FROM enable_profiling()"])
def test_what_is_no_question_is_wrong(store: Store, query: str) -> None:
    folded(store, b"p;a 1")
    with pytest.raises(ValueError, match=r"Error|logged"):
        store.sql(query)
