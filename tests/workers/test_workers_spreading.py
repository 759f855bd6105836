"""Pieces of work that workers share out are all done, by them or here."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("many", [0, 1, 2, 25])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_each_piece_has_its_answer(workers: LocalWorkers, many: int, most: int) -> None:
    asked: list[Numbers] = [(range(number), NONE) for number in range(many)]
    found = list(spread(workers, counted, iter(asked), most))
    assert sorted((piece for piece, _ in found), key=lambda piece: len(piece[0])) == asked
    assert all(answer == counted(piece) for piece, answer in found)


def test_a_piece_is_asked_for_when_somebody_can_do_it(workers: LocalWorkers) -> None:
    asked = 0

    def pieces() -> Iterator[Numbers]:
        nonlocal asked
        for number in range(1, 20):
            asked += 1
            yield range(number, number + 1), NONE

    for done, _ in enumerate(spread(workers, failing, pieces(), 2), 1):
        assert asked <= done + 2


def test_what_workers_were_lost_with_is_done_here(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with LocalWorkers(2) as workers:
        found = list(spread(workers, counted, [(range(number), tmp_path) for number in range(9)], 2))
    assert sorted(answer.total() for _, answer in found) == list(range(9))
    assert list(tmp_path.iterdir()) == []


def test_after_an_error_nobody_is_at_work(workers: LocalWorkers) -> None:
    with pytest.raises(ZeroDivisionError, match="there is a 0"):
        list(spread(workers, failing, [(range(number, 9), NONE) for number in (1, 2, 0, 3, 4)], 2))
    assert workers._pool is None
    # They start again when there is work.
    [(_, first), (_, second)] = spread(workers, counted, [(range(2), NONE)] * 2, 2)
    assert operator.eq(first, second)
