"""Compaction and checks by several processes: they do what one does, whatever happens to them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from store.bucketworker import IN_PIECES
from store.plainstore import Sample
from store.test_store_query import some_samples
from store.test_store_rollups import days, filled
from waiting import PATIENCE, eventually
from walkback import ArgumentError, UnreadableError
from walkback.store import sharing
from walkback.store.store import Store
from walkback.workers.executors import LocalWorkers

pytestmark = pytest.mark.whole


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares out what would not be worth it."""
    monkeypatch.setattr(sharing, "_PORTION", 1)


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return days(some_samples(21, 900), 3)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory, samples: list[Sample]) -> Path:
    return filled(tmp_path_factory.mktemp("raw") / "store", samples).path


@pytest.fixture(scope="module")
def expected(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, bytes]]:
    """What one process makes of it, and says of that."""
    folder = shutil.copytree(raw, tmp_path_factory.mktemp("alone") / "store")
    done = Store(folder).compact()
    assert "2025-11" in done.rollups
    return (len(done.old), done.blocks, done.rollups), tables(folder)


def tables(folder: Path) -> dict[str, bytes]:
    """The tables of the one segment that counts."""
    [segment] = folder.glob("segment=*")
    return {str(file.relative_to(segment)): file.read_bytes() for file in segment.rglob("*.parquet")}


class Watched(LocalWorkers):
    """Two processes, of which `then` hears when something was sent to them."""

    def __init__(self, then: Callable[[Watched], None]) -> None:
        super().__init__(2)
        self._then = then
        self.sent = 0

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        found = super().submit(work, *arguments)
        self.sent += 1
        self._then(self)
        return found


def test_two_processes_write_what_one_does(raw: Path, expected: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(raw, tmp_path / "store")
    with Watched(lambda _: None) as workers:
        done = Store(folder).compact(workers=workers)
    assert ((len(done.old), done.blocks, done.rollups), tables(folder)) == expected
    assert workers.sent >= len(done.blocks)
    assert Store(folder).check() == []


def test_a_process_that_is_killed_changes_nothing(raw: Path, expected: Any, tmp_path: Path) -> None:
    def kill(workers: Watched) -> None:
        sums = list(folder.glob("staging/*/segment/sums/*"))
        if workers.sent in {2, 9} or (sums and not killed):
            assert eventually(lambda: any(folder.glob("staging/*/segment/hour=*")))
            killed.extend(sums)
            assert workers._pool is not None
            os.kill(max(workers._pool._processes), signal.SIGKILL)

    killed: list[Path] = []
    folder = shutil.copytree(raw, tmp_path / "store")
    with Watched(kill) as workers:
        done = Store(folder).compact(workers=workers)
    assert killed
    assert ((len(done.old), done.blocks, done.rollups), tables(folder)) == expected


def damaged(raw: Path, folder: Path) -> Store:
    """A compacted store in which a rollup, the samples of an hour, and the folder of another are damaged."""
    shutil.copytree(raw, folder)
    store = Store(folder)
    store.compact()
    [first, second, *_] = store.blocks()
    first.file("samples").write_bytes(b"no table")
    shutil.rmtree(second.path)
    [month] = folder.glob("segment=*/sums/2025-11/sums.parquet")
    day = min(folder.glob("segment=*/sums/2025-11-*/sums.parquet"))
    month.write_bytes(day.read_bytes())
    return store


@pytest.mark.parametrize("killed", [False, True])
def test_two_processes_find_what_is_wrong_as_one_does(raw: Path, killed: bool, tmp_path: Path) -> None:
    def kill(workers: Watched) -> None:
        if killed and workers.sent == 3:
            assert workers._pool is not None
            os.kill(max(workers._pool._processes), signal.SIGKILL)

    store = damaged(raw, tmp_path / "store")
    alone = store.check()
    assert len({problem.file for problem in alone}) >= 3
    assert any("its blocks come to" in problem.message for problem in alone)
    with Watched(kill) as workers:
        assert store.check(workers=workers) == alone
    assert workers.sent > 10


def test_the_command_that_checks(raw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    damaged(raw, folder)
    outputs = [
        subprocess.run(
            [sys.executable, "-c", IN_PIECES, "store", str(folder), "check", "--jobs", jobs],
            check=False,
            capture_output=True,
        )
        for jobs in ("1", "2")
    ]
    assert [done.returncode for done in outputs] == [1, 1]
    assert outputs[0].stdout == outputs[1].stdout != b""
    assert outputs[0].stderr == outputs[1].stderr == b""


def test_a_cluster_compacts_and_checks_nothing(raw: Path) -> None:
    class Far(LocalWorkers):
        are_here = False

    for work in (Store(raw).compact, Store(raw).check):
        with pytest.raises(ArgumentError, match="not the workers of a cluster"):
            work(workers=Far(2))


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing(raw: Path, number: signal.Signals, tmp_path: Path) -> None:
    folder = shutil.copytree(raw, tmp_path / "store")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-c", IN_PIECES, "store", str(folder), "compact", "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(temporary)}) as process:
        assert eventually(lambda: any(folder.glob("staging/*/segment/hour=*")))
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert (process.returncode, err.strip()) == (130 if number == signal.SIGINT else 128 + number, b"")
    assert list((folder / "staging").iterdir()) == []
    assert list(temporary.iterdir()) == []
    assert len(Store(folder).blocks()) == len(Store(raw).blocks())


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_check_leaves_nothing(raw: Path, number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", IN_PIECES, "store", str(raw), "check", "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)}) as process:
        assert eventually(lambda: any(tmp_path.glob("walkback-*/*")))  # a process has opened its database
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    done = 1  # it was too quick, and found that the blocks were written by hand
    assert (process.returncode, err.strip()) in {(130 if number == signal.SIGINT else 128 + number, b""), (done, b"")}
    assert list(tmp_path.iterdir()) == []


def test_where_no_process_can_be_started_one_does_all(
    raw: Path, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: LocalWorkers) -> None:
        raise OSError(11, "no more processes")

    monkeypatch.setattr(LocalWorkers, "_new", refuse)
    folder = shutil.copytree(raw, tmp_path / "store")
    with LocalWorkers(2) as workers:
        done = Store(folder).compact(workers=workers)
    assert ((len(done.old), done.blocks, done.rollups), tables(folder)) == expected


def test_a_damaged_hour_stays_and_the_others_become_one(raw: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(raw, tmp_path / "store")
    [first, *_] = Store(folder).blocks()
    first.file("nodes").write_bytes(b"no table")
    with LocalWorkers(2) as workers, pytest.raises(UnreadableError, match=r"nodes\.parquet"):
        Store(folder).compact(workers=workers)
    hours = [block.hour for block in Store(folder).blocks()]
    assert hours.count(first.hour) == 3
    assert all(hours.count(hour) == 1 for hour in hours if hour != first.hour)
    assert list((folder / "staging").iterdir()) == []


def test_an_error_of_the_system_leaves_nothing_at_work(raw: Path, tmp_path: Path) -> None:
    def fill(workers: Watched) -> None:
        if workers.sent == 2:
            [own] = (folder / "staging").iterdir()
            shutil.rmtree(own / "segment")

    folder = shutil.copytree(raw, tmp_path / "store")
    before = [block.name for block in Store(folder).blocks()]
    with Watched(fill) as workers:
        with pytest.raises(FileNotFoundError):
            Store(folder).compact(workers=workers)
        assert workers._pool is None
    assert [block.name for block in Store(folder).blocks()] == before
    assert list((folder / "staging").iterdir()) == []


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"], ["--jobs", "1"]])
def test_the_command(raw: Path, expected: Any, jobs: list[str], tmp_path: Path) -> None:
    folder = shutil.copytree(raw, tmp_path / "store")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-c", IN_PIECES, "store", str(folder), "compact", *jobs]
    done = subprocess.run(command, check=True, capture_output=True, env=os.environ | {"TMPDIR": str(temporary)})
    assert done.stdout.splitlines()[0] == f"{folder}: {expected[0][0]} blocks became {len(expected[0][1])}".encode()
    assert tables(folder) == expected[1]
    assert list(temporary.iterdir()) == []
