"""Questions to a store that several workers answer, against the samples and against one process alone."""

from __future__ import annotations

import json
import os
import platform
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from store.bucketworker import IN_PIECES
from store.plainstore import HOUR, Sample, write_segment
from store.test_store_query import exported, folded, folded_text, some_samples
from store.test_store_rollups import DAYS, MIDNIGHT, counted, days, filled
from walkback import UnreadableError
from walkback.store import pieces, sharing
from walkback.store.store import Store
from walkback.workers.executors import DaskWorkers, LocalWorkers, StartError
from workers.cluster import Cluster

pytestmark = pytest.mark.whole


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes pieces of what would not be worth it."""
    monkeypatch.setattr(pieces, "_LEAST", 1)
    monkeypatch.setattr(sharing, "_ROWS_OF_A_BLOCK", 1)


@pytest.fixture(scope="module")
def workers() -> Iterator[LocalWorkers]:
    with LocalWorkers(2) as found:
        yield found


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return days(some_samples(12, 1500), 3)


@pytest.fixture(scope="module", params=["without sums", "with sums"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, samples: list[Sample]) -> Store:
    store = filled(tmp_path_factory.mktemp("pieces") / "store", samples)
    if request.param == "with sums":
        assert "2025-11" in store.compact().rollups
    return store


@pytest.mark.usefixtures("small")
def test_answers_are_those_of_the_samples(store: Store, samples: list[Sample], workers: LocalWorkers) -> None:
    chance = random.Random(9)
    for turn in range(6):
        since, until = sorted(MIDNIGHT + chance.randrange(DAYS * 24) * HOUR for _ in range(2))
        asked: dict[str, Any] = {"since": since, "until": until} if turn else {}
        chosen = [one for one in samples if not turn or since <= one.time < until]
        if turn % 3 == 1:
            asked |= {"host": "web1", "labels": {"version": "2"}}
            chosen = [one for one in chosen if one.host == "web1" and ("version", "2") in one.labels]
        selection, alone = store.select(**asked, workers=workers), store.select(**asked)
        profile, expected = selection.profile(), alone.profile()
        assert folded_text(exported(profile, "folded").decode()) == folded(chosen)
        assert (profile.start, profile.duration, profile.unit) == (expected.start, expected.duration, expected.unit)
        assert int(profile.count.sum()) == len(chosen)
        assert int(profile.count[profile.incomplete].sum()) == sum(one.end != 0 for one in chosen)
        assert selection.top() == alone.top()
        through, other = selection.through("a"), alone.through("a")
        assert (through.weight, through.own, through.callers) == (other.weight, other.own, other.callers)
        for by in ("host", "process"):
            assert sorted((str(one.value), one.weight, one.count) for one in selection.by(by)) == counted(chosen, by)
        assert selection.by("version") == alone.by("version")


@pytest.mark.usefixtures("small")
def test_each_worker_gets_some_of_the_blocks(store: Store) -> None:
    with store.snapshot() as snapshot:
        found = pieces._cut(snapshot, store.select().wanted, LocalWorkers(2))
        parts = [part.name for piece in found for part in piece.parts]
        assert parts == [*(one.name for one in snapshot.summed.rollups), *(one.name for one in snapshot.summed.blocks)]
    assert 2 <= len(found) <= 4
    rows = [sum(part.rows for part in piece.parts) for piece in found]
    assert max(rows) - min(rows) <= 2 * max(part.rows for piece in found for part in piece.parts)


class Nobody(LocalWorkers):
    """Nobody is to ask for them."""

    def executor(self) -> Executor:
        raise AssertionError


class NotHere(LocalWorkers):
    """They cannot be started."""

    def executor(self) -> Executor:
        raise StartError("no processes can be started")


def test_what_is_little_is_not_sent(store: Store) -> None:
    assert store.select(workers=Nobody(2)).top() == store.select().top()
    assert store.select(workers=Nobody(2)).by("host") == store.select().by("host")


@pytest.mark.usefixtures("small")
def test_what_is_much_is_sent_to_more_than_one(store: Store) -> None:
    with pytest.raises(AssertionError):
        store.select(workers=Nobody(2)).top()
    with pytest.raises(AssertionError):
        store.select(workers=Nobody(2)).by("host")
    assert store.select(workers=Nobody(1)).top() == store.select().top()


@pytest.mark.usefixtures("small")
def test_where_no_process_can_be_started_the_answer_is_the_same(store: Store) -> None:
    assert store.select(workers=NotHere(2)).top() == store.select().top()
    assert store.select(workers=NotHere(2)).by("host") == store.select().by("host")


@pytest.mark.usefixtures("small")
def test_no_order_changes_the_path_of_a_file(tmp_path: Path, workers: LocalWorkers) -> None:
    for number in (2, 0, 1, 3):
        frame = ("ab" * 20, f"/host{number}/program", 0x10, "main")
        write_segment(tmp_path / "store", [Sample((frame,), time=MIDNIGHT + number * HOUR)])
    store = Store(tmp_path / "store")
    assert store.select().sums.frames.modules == [("ab" * 20, "/host0/program")]
    assert store.select(workers=workers).sums.frames.modules == [("ab" * 20, "/host0/program")]


@pytest.mark.usefixtures("small")
def test_a_store_is_found_through_links(tmp_path: Path, workers: LocalWorkers, samples: list[Sample]) -> None:
    (tmp_path / "far" / "below").mkdir(parents=True)
    filled(tmp_path / "far" / "store", samples)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "below")
    found = Store(tmp_path / "link" / ".." / "store").select(workers=workers).profile()
    assert folded_text(exported(found, "folded").decode()) == folded(samples)


@pytest.mark.usefixtures("small")
def test_descriptions_may_say_anything(tmp_path: Path, workers: LocalWorkers, samples: list[Sample]) -> None:
    store = filled(tmp_path / "store", samples)
    file = next(store.path.glob("segment=*/segment.json"))
    described = json.loads(file.read_text())
    next(iter(described["blocks"].values()))["samples"] = 2**63 - 1
    file.write_text(json.dumps(described))
    assert Store(store.path).select(workers=workers).by("host") == store.select().by("host")


@pytest.mark.usefixtures("small")
def test_weights_that_are_too_much_together_are_refused(tmp_path: Path, workers: LocalWorkers) -> None:
    samples = [Sample((), time=MIDNIGHT + hour * HOUR, weight=2**62) for hour in range(4)]
    with pytest.raises(UnreadableError, match="together these samples weigh more than"):
        filled(tmp_path / "store", samples, 4).select(workers=workers).profile()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("table", ["samples", "nodes", "frames"])
def test_a_damaged_file_is_named_by_a_worker(tmp_path: Path, workers: LocalWorkers, table: str) -> None:
    store = filled(tmp_path / "store", days(some_samples(3, 200), 2))
    file = store.blocks()[7].file(table)
    file.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(UnreadableError) as raised:
        store.select(workers=workers).profile()
    assert raised.value.file == str(file)


class Killing(LocalWorkers):
    """Processes of which one is killed when some work was sent."""

    sent = 0

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs)
        self.started: set[Executor] = set()

    def executor(self) -> Executor:
        found = super().executor()
        self.sent += 1
        self.started.add(found)
        if self.sent == 3:
            assert isinstance(found, ProcessPoolExecutor)
            os.kill(max(found._processes), signal.SIGKILL)
        return found


@pytest.mark.usefixtures("small")
def test_a_worker_that_is_killed_changes_nothing(store: Store, samples: list[Sample]) -> None:
    with Killing(2) as workers:
        found = store.select(workers=workers).profile()
        assert len(workers.started) > 1
    assert folded_text(exported(found, "folded").decode()) == folded(samples)


@pytest.mark.parametrize("words", [("top", "--by", "host"), ("through", "a"), ("diff", "host=web1", "host=web2")])
def test_verbs_print_the_same(store: Store, words: tuple[str, ...]) -> None:
    found = [
        subprocess.run(
            [sys.executable, "-c", IN_PIECES, "store", store.path, *words, *more], capture_output=True, check=True
        ).stdout
        for more in ((), ("--jobs", "1"), ("--jobs", "3"))
    ]
    assert found[0]
    assert found == [found[0]] * 3


@pytest.mark.usefixtures("small")
def test_a_cluster_gives_the_same(store: Store, samples: list[Sample], cluster: Cluster, tmp_path: Path) -> None:
    here = Store(os.path.relpath(store.path))  # which is not where the workers are
    with DaskWorkers(cluster.address) as workers:
        found = here.select(workers=workers).profile()
        groups = here.select(workers=workers, host="web1").by("process")
    assert folded_text(exported(found, "folded").decode()) == folded(samples)
    assert groups == store.select(host="web1").by("process")
    command = ["-c", IN_PIECES, "store", store.path, "flame", "--format", "folded", "--dask", cluster.address]
    out = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True).stdout
    assert folded_text(out) == folded(samples)


def test_one_says_who_works(store: Store) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "walkback", "store", store.path, "top", "--jobs", "2", "--dask", "x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "--jobs is for this machine" in done.stderr


@pytest.mark.usefixtures("small")
def test_an_error_says_which_worker_had_it(cluster: Cluster, tmp_path: Path) -> None:
    store = filled(tmp_path / "store", days(some_samples(3, 200), 2))
    file = store.blocks()[7].file("nodes")
    file.write_bytes(b"PAR1 nothing PAR1")
    with DaskWorkers(cluster.address) as workers, pytest.raises(UnreadableError) as raised:
        store.select(workers=workers).profile()
    assert raised.value.file == str(file)
    assert raised.value.message.endswith(f", on the worker {platform.node()}")
