"""Pieces of work that workers share out are all done, by them or here."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import operator
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from itertools import count
from multiprocessing import popen_forkserver
from pathlib import Path
from typing import Any

import pytest

from walkback.base.interrupts import first_done
from walkback.workers import spreading
from walkback.workers.executors import LocalWorkers
from walkback.workers.spreading import portions, spread
from workers.tasks import Numbers, counted, failing

pytestmark = pytest.mark.whole
NONE = Path("/none")


@pytest.fixture(scope="module")
def workers() -> Iterator[LocalWorkers]:
    with LocalWorkers(2) as found:
        yield found


def test_portions_are_large_enough_and_in_order() -> None:
    assert list(portions([3, 4, 9, 1, 1], lambda one: one, 5)) == [[3, 4], [9], [1, 1]]
    assert list(portions([], lambda one: one, 5)) == []
    endless = portions(count(1), lambda one: one, 3)
    assert [next(endless) for _ in range(3)] == [[1, 2], [3], [4]]


def shared(workers: LocalWorkers | None, work: Any, pieces: Iterable[Numbers], room: int = 100) -> Any:
    return spread(workers, work, pieces, size=lambda piece: len(piece[0]), room=room)


@pytest.mark.parametrize("many", [0, 1, 2, 25])
@pytest.mark.parametrize("room", [0, 30, 100])
def test_each_piece_has_its_answer(workers: LocalWorkers, many: int, room: int) -> None:
    asked: list[Numbers] = [(range(number), NONE) for number in range(many)]
    found = list(shared(workers, counted, iter(asked), room))
    assert sorted((piece for piece, _ in found), key=lambda piece: len(piece[0])) == asked
    assert all(answer == counted(piece) for piece, answer in found)


def test_a_piece_is_asked_for_when_somebody_can_do_it(workers: LocalWorkers) -> None:
    asked = 0

    def pieces() -> Iterator[Numbers]:
        nonlocal asked
        for number in range(1, 20):
            asked += 1
            yield range(number, number + 1), NONE

    for done, _ in enumerate(shared(workers, failing, pieces()), 1):
        assert asked <= done + 2
    asked = 0
    for done, _ in enumerate(shared(None, counted, pieces()), 1):
        assert asked == done


def test_what_is_at_work_has_room() -> None:
    class Seen(LocalWorkers):
        """Knows how many were at work at once, at most."""

        most = 0

        def __init__(self) -> None:
            super().__init__(3)
            self._futures: list[Future[Any]] = []

        def submit(self, work: Any, *arguments: Any) -> Future[Any]:
            self._futures.append(super().submit(work, *arguments))
            self.most = max(self.most, sum(not future.done() for future in self._futures))
            return self._futures[-1]

    for room, most in ((100, 3), (29, 2), (5, 1)):
        with Seen() as workers:
            assert len(list(shared(workers, failing, [(range(1, 11), NONE)] * 9, room))) == 9
            assert workers.most == most


def test_what_workers_were_lost_with_is_done_here(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with LocalWorkers(2) as workers:
        found = list(shared(workers, counted, [(range(number), tmp_path) for number in range(9)]))
    assert sorted(answer.total() for _, answer in found) == list(range(9))
    assert list(tmp_path.iterdir()) == []


def test_a_pool_ends_before_another_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "first_done", lambda running: list(first_done(running))[:1])
    (tmp_path / "one").touch()
    with LocalWorkers(3) as workers:
        found = list(shared(workers, counted, [(range(number), tmp_path) for number in range(12)]))
    assert sorted(answer.total() for _, answer in found) == list(range(12))


@pytest.mark.parametrize("error", [None, OSError(errno.EBADF, "Bad file descriptor"), EOFError()])
def test_processes_die_while_others_are_started(error: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    launch, left = vars(popen_forkserver.Popen)["_launch"], [True]

    def interfere(self: Any, process: Any) -> None:
        if left and multiprocessing.active_children():
            left.clear()
            if error is not None:
                raise error
            for one in multiprocessing.active_children():
                one.kill()
            time.sleep(0.2)  # meanwhile some Pythons end the pool
        launch(self, process)

    with LocalWorkers(3) as workers:
        workers.executor()
        monkeypatch.setattr(popen_forkserver.Popen, "_launch", interfere)
        found = list(shared(workers, failing, [(range(1, number), NONE) for number in range(1, 12)]))
        assert sorted(answer.total() for _, answer in found) == list(range(11))
        assert not left


def test_processes_that_cannot_be_started_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with LocalWorkers(3) as workers:
        workers.executor()
        monkeypatch.setattr(popen_forkserver.Popen, "_launch", fail)
        with pytest.raises(OSError, match="Too many open files"):
            list(shared(workers, failing, [(range(1, number), NONE) for number in range(1, 12)]))


def test_who_wants_no_more_ends_the_processes(workers: LocalWorkers) -> None:
    with contextlib.closing(shared(workers, failing, [(range(1, 5), NONE)] * 9)) as answers:
        next(answers)
    assert workers._pool is None


def test_after_an_error_all_processes_have_ended(workers: LocalWorkers) -> None:
    with pytest.raises(ZeroDivisionError, match="there is a 0"):
        list(shared(workers, failing, [(range(number, 9), NONE) for number in (1, 2, 0, 3, 4)]))
    assert workers._pool is None
    # They start again when there is work.
    [(_, first), (_, second)] = shared(workers, counted, [(range(2), NONE)] * 2)
    assert operator.eq(first, second)
