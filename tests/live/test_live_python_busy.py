"""A busy program stopped at any moment: its functions are those that it has written down itself."""

from __future__ import annotations

import mmap
import os
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.marking import LINES, SLOT, THREADS
from live.pythons import HERE, VERSIONS, program
from live.test_live_python import places
from walkback.capture.live.looking import Look
from walkback.capture.live.process import Process
from walkback.capture.live.ptrace import Tracer
from walkback.capture.stacks import Stopper, ThreadStacks
from walkback.stacks.stacks import End

pytestmark = pytest.mark.whole

STOPS = int(os.environ.get("WALKBACK_STOPS", "0")) * 100 or 60
"""`make soak` has 10,000."""
NAME = re.compile(r"f\d\d")


def written(shared: bytes) -> dict[int, list[str]]:
    """The functions of each thread, outermost first."""
    found = {}
    for place in range(0, THREADS * SLOT, SLOT):
        depth = shared[place + 5]
        numbers = shared[place + 6 : place + 6 + depth]
        found[int.from_bytes(shared[place : place + 4], "little")] = [f"f{number:02}" for number in numbers]
    return found


class Watching:
    """Reads what a thread has written down in each stop; what counts is the last one."""

    def __init__(self, stopping: pytest.MonkeyPatch, shared: mmap.mmap) -> None:
        self.written: dict[int, list[str]] = {}
        stand = Look.stand

        def watch(look: Look, tracer: Tracer) -> None:
            self.written |= {tid: names for tid, names in written(shared[:]).items() if tid == look.number}
            stand(look, tracer)

        stopping.setattr(Look, "stand", watch)


@pytest.mark.parametrize("name", VERSIONS)
def test_no_stop_finds_a_wrong_function(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "shared"
    file.write_bytes(bytes(SLOT * THREADS))
    with program(name, HERE / "marking.py", file) as target:
        assert target.stdout.readline() == b"ready\n"
        stopper = Stopper(target.pid)
        with file.open("rb") as shared, mmap.mmap(shared.fileno(), 0, prot=mmap.PROT_READ) as memory:
            watching = Watching(monkeypatch, memory)
            depths: list[int] = []
            for _ in range(STOPS):
                time.sleep(random.uniform(0, 0.003))
                shot = stopper.shoot()
                depths += compared(shot, watching.written)
        assert max(depths) > 5
        # A thread that got no processor may be entering an evaluator at each try; then nothing is said of it.
        assert len(depths) > 0.99 * STOPS * THREADS
        assert not stopper.interpreted.troubles
        assert isinstance(stopper.target, Process)
        # Most looks are at what was copied within one stop.
        print(f"{stopper.target.stops} stops for {STOPS * THREADS} stacks")


def compared(shot: ThreadStacks, expected: dict[int, list[str]]) -> Iterator[int]:
    """How deep each thread was, all of whose functions are right."""
    found = places(shot)
    ends = dict(zip(shot.snapshot.tids, shot.stacks.end.tolist(), strict=True))
    assert set(ends.values()) <= {End.COMPLETE, End.TORN}
    for tid, names in expected.items():
        if ends[tid] == End.TORN:
            continue
        ours = [one for one in reversed(found[tid]) if NAME.fullmatch(one[0])]
        # A function writes down that it is there a moment after it began, and takes it back before it returns.
        assert [one for one, *_ in ours][: len(names)] == names
        assert len(ours) - len(names) in {0, 1}
        for one, place, line in ours:
            assert place == f"<{one}>"
            assert 0 < line - LINES * int(one[1:]) < LINES
        yield len(ours)
