"""Signals that come while something is done that must not end halfway."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest

from walkback.base.interrupts import first_done, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator


class EndedError(Exception):
    pass


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal whose handler raises."""

    def end(_number: int, _frame: object) -> None:
        raise EndedError

    former = signal.signal(request.param, end)
    yield request.param
    assert signal.getsignal(request.param) is end
    signal.signal(request.param, former)


def test_a_signal_waits_until_a_process_has_started(number: signal.Signals) -> None:
    begun = []

    def begin(times: int, error: type[Exception] | None = None) -> None:
        with uninterrupted():
            for _ in range(times):
                os.kill(os.getpid(), number)
            begun.append(times)
            if error is not None:
                raise error

    handler = signal.getsignal(number)
    for given in ((1,), (2,), (1, OSError)):
        with pytest.raises(EndedError):
            begin(*given)
        assert signal.getsignal(number) is handler
    assert begun == [1, 1]  # a second one does not wait


def test_a_signal_leaves_no_lock_taken(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when the lock has been taken that the end of the work wants."""
    enter, left = threading.Condition.__enter__, [number]

    def interrupted(condition: threading.Condition) -> Any:
        found = enter(condition)
        if left and threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), left.pop())
        return found

    monkeypatch.setattr(threading.Condition, "__enter__", interrupted)
    future = Future[int]()
    with pytest.raises(EndedError):
        first_done([future])
    assert not left
    ending = threading.Thread(target=future.set_result, args=(1,), daemon=True)
    ending.start()
    ending.join(60)
    assert not ending.is_alive()
    assert first_done([future]) == {future}


def test_nothing_is_awaited_for_longer_than_wanted() -> None:
    assert first_done([]) == set()
    assert first_done([Future[int]()], timeout=0.01) == set()
