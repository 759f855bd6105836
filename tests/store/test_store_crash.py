"""Killed at any moment, a store holds all that was acknowledged, nothing twice, and nothing in part."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from effort import rounds
from store import crashing, plainreader
from store.made import HOUR, NOON, put, told_sample
from waiting import eventually
from walkback.store.store import Store

ROUNDS = rounds(40, quick=4, share=100)


@pytest.fixture(scope="module")
def processes() -> Iterator[ForkServerContext]:
    """Starts processes that have all imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["store.crashing", "duckdb"])
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise it does not find what it is to import beforehand.
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        # Nor need each process import pytest.
        patch.delattr(sys.modules["__main__"], "__file__", raising=False)
        patch.setattr(sys.modules["__main__"], "__spec__", None)
        yield context


def started(processes: ForkServerContext, work: Callable[..., object], *arguments: Path | int | str) -> BaseProcess:
    process: BaseProcess = processes.Process(target=work, args=arguments)
    process.start()
    return process


def told(
    number: int,
) -> Counter[tuple[int, tuple[tuple[None, int, str], ...], int, int, None, None, None, None, None, tuple[()]]]:
    """The samples of an append as the plain reader tells them."""
    return Counter(
        told_sample(when, tuple((None, address, name) for _, _, address, name in frames), weight)
        for when, frames, weight in crashing.samples_of(number)
    )


def kept(store: Path) -> set[int]:
    """The appends that a store has; each is there as a whole and once."""
    found = Counter({one: count for one, count in plainreader.samples(store).items() if one[0] >= NOON})
    numbers = {sample[2] for sample in found}
    assert found == sum((told(number) for number in numbers), Counter())
    return numbers


def no_failure(store: Path) -> None:
    failed = Path(f"{store}.failed")
    assert not failed.exists(), failed.read_text()


@pytest.mark.whole
def test_processes_killed_again_and_again_lose_nothing_and_write_nothing_twice(
    tmp_path: Path, processes: ForkServerContext
) -> None:
    """Two who append, two who compact and expire, and one who reads, all at once; all are killed, many times."""
    path, told_of = tmp_path / "store", tmp_path / "acknowledged"
    store = Store(path, create=True)
    rng = random.Random()
    kills = 0
    for number in range(ROUNDS):
        begin = 1_000_000 * number + 1
        running = [
            started(processes, crashing.forever, "append", path, told_of, begin),
            started(processes, crashing.forever, "append", path, told_of, begin + 500_000),
            started(processes, crashing.forever, "compact", path, bool(number % 2)),
            started(processes, crashing.forever, "compact", path, False),
            started(processes, crashing.forever, "read", path, told_of),
        ]
        assert eventually(lambda: crashing.acknowledgements(told_of))
        time.sleep(rng.uniform(0.05, 0.4))
        rng.shuffle(running)
        for process in running:
            process.kill()
            time.sleep(rng.choice((0, 0, 0.003, 0.03)))
        for process in running:
            process.join()
            kills += process.exitcode == -signal.SIGKILL
        no_failure(path)
        assert crashing.acknowledgements(told_of) <= kept(path)
    assert kills == 5 * ROUNDS
    assert crashing.acknowledgements(told_of)
    before = kept(path)
    store.compact()
    assert kept(path) == before
    assert store.check() == []
    store.expire(crashing.EXPIRED + HOUR)
    assert [block.counts.first // HOUR for block in store.blocks()] == [NOON // HOUR, NOON // HOUR + 1]
    # Nothing is left of all who were killed.
    assert list(store.folder.staging.iterdir()) == []
    assert set(path.glob("segment=*/hour=*")) == {block.path for block in store.blocks()}
    # What an expiry took away stays known as long as its segment has other hours.
    assert len(set(path.glob("segment=*")) - {block.path.parent for block in store.blocks()}) <= 1


@pytest.mark.whole
@pytest.mark.parametrize("work", ["append", "compact", "expire"])
def test_killed_at_each_of_its_steps_a_store_is_as_before_or_as_after(
    tmp_path: Path, processes: ForkServerContext, work: str
) -> None:
    whole = tmp_path / "whole"
    store = Store(whole, create=True)
    for number in (1, 2, 3):
        with store.append() as new:
            put(new, crashing.samples_of(number))
    before = plainreader.samples(whole)
    after = {
        "append": before + told(77),
        "compact": before,
        "expire": Counter({one: count for one, count in before.items() if one[0] >= NOON + HOUR}),
    }[work]
    done, step, seen = tmp_path / "done", 0, []
    while not done.exists():
        step += 1
        path = tmp_path / f"step{step}"
        shutil.copytree(whole, path)
        process = started(processes, crashing.dies_at, step, path, work, done)
        process.join()
        assert process.exitcode == (0 if done.exists() else -signal.SIGKILL)
        found = plainreader.samples(path)
        assert found in (before, after)
        seen.append(found == after)
        store = Store(path)
        assert store.check() == []
        # What is done next finds nothing in its way, and takes away what is left over.
        if work == "append":
            with store.append() as new:
                put(new, crashing.samples_of(78))
            found += told(78)
        store.compact(every=True)
        assert plainreader.samples(path) == found
        assert store.check() == []
        assert list(store.folder.staging.iterdir()) == []
        assert len(list(path.glob("segment=*"))) == 1
        shutil.rmtree(path)
    assert step > 8
    # Once it is as after it stays so: what was done is not undone by a later kill.
    assert seen == sorted(seen)
    assert seen[-1]


def test_nobody_takes_away_what_somebody_is_writing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", create=True)
    with store.append() as before:
        put(before, crashing.samples_of(1))
    from walkback.store.staging import Staging

    with Staging(store.folder) as staging:
        store.compact(every=True)
        assert staging.path.is_dir()
        assert crashing.left(store) == []


def test_what_a_killed_writer_left_is_known_and_taken_away(tmp_path: Path, processes: ForkServerContext) -> None:
    store = Store(tmp_path / "store", create=True)
    # Before its lock, with its lock, and with some of its files.
    for number, files in enumerate(([], ["alive"], ["alive", "segment/hour=2025-11-24T16/samples.parquet"])):
        own = store.folder.staging / f"{number:024x}"
        own.mkdir()
        for file in files:
            (own / file).parent.mkdir(parents=True, exist_ok=True)
            (own / file).touch()
    assert len(crashing.left(store)) == 2
    store.compact()
    assert list(store.folder.staging.iterdir()) == []
