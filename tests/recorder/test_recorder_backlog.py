"""Records that wait for a free processor, and no longer than they may."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from walkback.capture import Sampler
from walkback.capture.recorder import backlog
from walkback.capture.recorder.backlog import Backlog, Idleness

FOR_EVER = 3600.0


@pytest.fixture
def busy() -> Iterator[None]:
    """The one processor of this test always has something to do."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
            try:
                yield
            finally:
                process.kill()
    finally:
        os.sched_setaffinity(0, allowed)


def holding(*records: bytes) -> Backlog:
    found = Backlog()
    for data in records:
        found.put(bytearray(data))
    return found


def test_what_has_come_is_taken_at_once_without_patience(busy: None) -> None:
    waiting = holding(b"one", b"two")
    assert waiting.take() == b"onetwo"
    assert not waiting.has_ended


def test_records_wait_while_no_processor_is_free(busy: None) -> None:
    waiting, began = holding(b"first"), time.monotonic()
    threading.Timer(0.3, waiting.put, [bytearray(b"later")]).start()
    assert waiting.take(2.0) == b"firstlater"
    assert time.monotonic() - began >= 2


def test_they_do_not_wait_at_the_end(busy: None) -> None:
    waiting = holding(b"one", b"two")
    threading.Timer(0.3, waiting.end).start()
    assert waiting.take(FOR_EVER) == b"onetwo"
    assert waiting.has_ended


def test_they_do_not_wait_once_the_end_is_known(busy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "_AT_ONCE", 1)
    waiting = holding(b"one", b"two")
    waiting.end()
    assert [waiting.take(FOR_EVER) for _ in range(3)] == [b"one", b"two", b""]


def test_they_do_not_wait_where_records_begin_anew(busy: None) -> None:
    waiting = holding(b"old")
    threading.Timer(0.3, waiting.begin_anew, [bytearray(b"new")]).start()
    assert (waiting.take(FOR_EVER), waiting.anew) == (b"old", b"new")


def test_many_do_not_wait(busy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "_MANY", 1000)
    monkeypatch.setattr(backlog, "_AT_ONCE", 200)
    waiting = holding(*[bytes(100)] * 11)
    assert len(waiting.take(FOR_EVER)) == 200
    threading.Timer(0.3, waiting.put, [bytearray(100)]).start()
    assert len(waiting.take(FOR_EVER)) == 200


def test_nothing_to_take_is_known_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "_IDLE", 0.05)
    assert Backlog().take(FOR_EVER) == b""


def test_a_processor_that_always_works_is_not_free(busy: None) -> None:
    idleness = Idleness()
    time.sleep(0.6)
    assert not idleness.has_any()


def test_a_processor_is_free_that_rested_for_half_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whether one rests is chance where tests run side by side: so the kernel's file is made here.
    def rested(seconds: float) -> str:
        ticks = int(seconds * os.sysconf("SC_CLK_TCK"))
        return f"cpu  9 9 9 {10**9} 9\ncpu0 0 0 0 {10**9} 5 0 0 0 0 0\ncpu1 0 0 0 {ticks} 0\nintr 1\n"

    stat = tmp_path / "stat"
    monkeypatch.setattr(backlog, "_STAT", stat)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    stat.write_text(rested(100))
    idleness = Idleness()
    stat.write_text(rested(9000))
    assert not idleness.has_any(), "so little time says nothing"
    time.sleep(0.2)
    assert idleness.has_any()
    time.sleep(0.2)
    assert not idleness.has_any(), "the count began anew"
    stat.unlink()
    time.sleep(0.2)
    assert not idleness.has_any(), "nothing is known"


def test_stacks_of_a_busy_command_are_walked_when_it_has_ended(busy: None) -> None:
    """The first ones at once: they say whether more of each stack must be copied."""
    program = "import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: pass"
    found = []
    with Sampler([sys.executable, "-c", program], patience=5.0, way="perf") as sampler:
        for batch in sampler:
            assert sampler.command is not None
            found.append((len(batch), sampler.command.is_running))
    assert sum(size for size, _ in found) > 0
    assert sum(size for size, runs in found if runs) < 250, found
