"""Answers of workers are merged to what one of them alone would find, and lost workers lose nothing."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from walkback import UnreadableError
from walkback.workers.executors import DaskWorkers, LocalWorkers, Loss, SharingWorkers
from walkback.workers.merging import merged_answers
from workers.cluster import Cluster
from workers.tasks import Numbers, added, counted, dying, failing

pytestmark = pytest.mark.whole

NONE = Path("/none")


@pytest.fixture(params=["here", "cluster"])
def workers(request: pytest.FixtureRequest) -> Iterator[SharingWorkers]:
    if request.param == "here":
        with LocalWorkers(2) as here:
            yield here
    else:
        with DaskWorkers(request.getfixturevalue("cluster").address) as there:
            yield there


def pieces(count: int, folder: Path = NONE) -> list[Numbers]:
    return [(range(number, 2 * number), folder) for number in range(count)]


def whole(count: int) -> Counter[int]:
    return sum((Counter(numbers) for numbers, _ in pieces(count)), Counter[int]())


@pytest.mark.parametrize("count", [1, 2, 3, 17])
def test_the_answer_is_that_of_one_worker(workers: SharingWorkers, count: int) -> None:
    assert merged_answers(workers, counted, pieces(count), added) == whole(count)


def test_work_of_workers_that_end_is_done_again(workers: SharingWorkers, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / str(number)).touch()
    assert merged_answers(workers, counted, pieces(9, tmp_path), added) == whole(9)
    assert list(tmp_path.iterdir()) == []


def test_work_that_ends_each_worker_is_an_error(workers: SharingWorkers, tmp_path: Path) -> None:
    asked = [*pieces(3), (range(5), tmp_path)]
    with pytest.raises(UnreadableError, match="workers ended again and again"):
        merged_answers(workers, dying, asked, added)
    assert merged_answers(workers, dying, pieces(5), added) == whole(5)


def test_an_error_of_the_work_is_raised_here(workers: SharingWorkers) -> None:
    asked = [*pieces(40)[1:], (range(1), NONE)]
    with pytest.raises(ZeroDivisionError, match="there is a 0"):
        merged_answers(workers, failing, asked, added)
    assert merged_answers(workers, counted, pieces(5), added) == whole(5)


def test_a_scheduler_that_ends_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    own = Cluster(tmp_path, 1)
    try:
        with DaskWorkers(own.address) as workers:
            assert merged_answers(workers, counted, pieces(3), added) == whole(3)
            threading.Timer(0.5, own.scheduler.kill).start()
            with pytest.raises(UnreadableError, match="there are no workers any more: the scheduler has ended"):
                merged_answers(workers, failing, pieces(200)[1:], added)
    finally:
        own.close()


@pytest.mark.parametrize("shares", [True, False])
def test_a_scheduler_may_end_while_work_is_submitted(shares: bool, tmp_path: Path) -> None:
    """Then the client looks through what was submitted."""
    pytest.importorskip("distributed")
    own = Cluster(tmp_path, 1)
    try:
        with DaskWorkers(own.address) as workers:
            submit = workers.submit if shares else workers.executor().submit
            running = submit(time.sleep, 20)
            submitted = [submit(pow, 3, number) for number in range(1000)]
            own.scheduler.kill()
            deadline = time.monotonic() + 60
            while not running.done() and time.monotonic() < deadline:
                submitted.append(submit(pow, 3, len(submitted)))
            with pytest.raises((CancelledError, OSError)) as lost:
                running.result(timeout=0)
            assert workers.loss(lost.value) is Loss.ALL
    finally:
        own.close()
