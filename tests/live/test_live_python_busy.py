"""A busy program stopped at any moment: its functions are those that it has written down itself."""

from __future__ import annotations

import os
import random
import re
import time
from pathlib import Path

import pytest

from live.marking import LINES, SLOT, THREADS
from live.pythons import HERE, VERSIONS, program
from live.subjects import states, stopped
from live.test_live_python import places
from waiting import eventually
from walkback.capture.stacks import Stopper
from walkback.stacks.stacks import End

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


@pytest.mark.parametrize("name", VERSIONS)
def test_no_stop_finds_a_wrong_function(name: str, tmp_path: Path) -> None:
    file = tmp_path / "shared"
    file.write_bytes(bytes(SLOT * THREADS))
    with program(name, HERE / "marking.py", file) as target:
        assert target.stdout.readline() == b"ready\n"
        stopper = Stopper(target.pid, lines=True)
        depths = []
        for _ in range(STOPS):
            time.sleep(random.uniform(0, 0.003))
            with stopped(target.pid):
                shot = stopper.shoot()
                assert eventually(lambda: set(states(target.pid)) <= set("TZ"))
                expected = written(file.read_bytes())
            found = places(shot)
            for tid, names in expected.items():
                ours = [one for one in reversed(found[tid]) if NAME.fullmatch(one[0])]
                # A function writes down that it is there a moment after it began, and takes it back before it returns.
                assert [one for one, *_ in ours][: len(names)] == names
                assert len(ours) - len(names) in {0, 1}
                for one, place, line in ours:
                    assert place == f"<{one}>"
                    assert 0 < line - LINES * int(one[1:]) < LINES
                depths.append(len(ours))
            assert set(shot.stacks.end.tolist()) <= {End.COMPLETE}
        assert max(depths) > 5
        assert not stopper.interpreters.troubles
