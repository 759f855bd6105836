"""Answers are reckoned once, for those who still want them, and kept within bounds."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from serving.madestore import PROCESSES
from serving.running import running
from waiting import PATIENCE, eventually
from walkback.serving import answers, handler
from walkback.serving.answers import Answers
from walkback.serving.question import Question, question
from walkback.serving.server import MOST_CONNECTIONS
from walkback.store.naming import Naming
from walkback.store.store import Store


class Counted(Answers):
    """Counts what is reckoned, and may be made to wait before it does."""

    def __init__(self, store: Path) -> None:
        super().__init__(Store(store), Naming)
        self.counts: Counter[Question] = Counter()
        self.goes_on = threading.Event()
        self.goes_on.set()

    def _reckoned(self, asked: Question) -> dict[str, Any]:
        self.counts[asked] += 1
        assert self.goes_on.wait()
        return super()._reckoned(asked)


def test_who_asks_the_same_at_once_gets_one_answer(store: Path) -> None:
    counted = Counted(store)
    with running(counted) as server:
        found: list[bytes] = []
        threads = [threading.Thread(target=lambda: found.append(server.ask("/stacks").body)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 20
    assert len(set(found)) == 1
    assert counted.counts == {question("stacks", ""): 1}


def test_nothing_is_reckoned_for_who_is_gone(store: Path) -> None:
    counted = Counted(store)
    counted.goes_on.clear()
    with running(counted) as server:
        first = threading.Thread(target=server.ask, args=("/store",))
        first.start()
        assert eventually(lambda: counted.counts)
        with server.connect() as connection:
            request = f"GET /stacks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
            connection.sendall(request.encode())
            # The request is read once there is nothing to be read of it.
            assert eventually(lambda: server.kept() == 2)
        counted.goes_on.set()
        first.join()
        assert server.ask("/timeline").status == 200
    assert set(counted.counts) == {question("store", ""), question("timeline", "")}


class Large(Answers):
    """Has answers that no buffer takes whole."""

    def answer(self, asked: Question, is_gone: Callable[[], bool] = lambda: False) -> bytes:
        answer = super().answer(asked, is_gone)
        return answer.ljust(32 << 20) if asked.kind == "stacks" else answer


@pytest.mark.whole
def test_those_who_do_not_read_keep_nobody_out(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "_SEND_SECONDS", 10.0 * PATIENCE)
    with running(Large(Store(store), Naming)) as server, contextlib.ExitStack() as opened:
        request = f"GET /stacks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        for _ in range(2 * MOST_CONNECTIONS):
            connection = opened.enter_context(server.connect())
            with contextlib.suppress(ConnectionResetError):
                connection.sendall(request.encode())
                connection.recv(1)
        assert eventually(lambda: server.ask("/store").status == 200)


def test_what_is_kept_is_bounded(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [question("stacks", urlencode({"process": one})) for one in PROCESSES]
    sizes = [len(Answers(Store(store), Naming).answer(one)) for one in questions]
    monkeypatch.setattr(answers, "_KEPT_BYTES", max(sizes) + 10)
    counted = Counted(store)
    for one in (questions[0], questions[0], questions[1], questions[0]):
        assert json.loads(counted.answer(one))["all"]
    assert counted.counts == {questions[0]: 2, questions[1]: 1}
    monkeypatch.setattr(answers, "_KEPT_BYTES", 10)
    for _ in range(2):
        assert counted.answer(questions[2])
    assert counted.counts[questions[2]] == 2
