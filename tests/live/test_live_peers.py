"""Programs stopped at random moments: gdb, eu-stack and walkback see the same frames in every thread."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.debuggers import Gdb, debugger, eu_stacks
from live.subjects import BORN, SUBJECTS, Judge, running, states, stopped, subject
from waiting import eventually
from walkback.capture.stacks import Stopper

STOPS = {"glibc": 10, "c++": 8, "python": 8, "node": 3}
"""Of each program, the others have 7; in `make soak` WALKBACK_STOPS says how many for all."""

WITHOUT_TABLES = re.compile(
    r"_init|_fini|__do_global_dtors_aux|frame_dummy|(de)?register_tm_clones|\*ABS\*\+0x[0-9a-f]+@plt"
)
"""Code without call frame information on any system: pieces of start files, and a static program's PLT of IFUNCs."""

pytestmark = pytest.mark.peers


@pytest.fixture
def gdb() -> Iterator[Gdb]:
    with Gdb() as one:
        yield one


def compared(name: str, folder: Path, gdb: Gdb, stops: int) -> Judge:
    """What was compared, and what of it was otherwise, by class."""
    debugger("eu-stack")
    with running(*subject(name, folder)) as target:
        stopper = Stopper(target.pid, inline=False, interpreted=False)
        judge = Judge(stopper)
        for _ in range(stops):
            time.sleep(random.uniform(0, 0.02))
            with stopped(target.pid):
                shot = stopper.shoot()
                # Neither of the two lets it go on: the kernel stops it once more.
                assert eventually(lambda: set(states(target.pid)) <= set("TZ"))
                judge.compare(shot, eu_stacks(target.pid), "eu-stack")
                assert eventually(lambda: set(states(target.pid)) <= set("TZ"))
                judge.compare(shot, gdb.of_process(target.pid), "gdb")
            assert target.poll() is None
        assert not stopper.troubles
    return judge


def judged(name: str, judge: Judge) -> None:
    """Every difference has a class already; here what there may be of each."""
    print(name, dict(sorted(judge.counts.items())))
    if "musl" in name or name == "node":
        # musl's own code has no call frame information, nor has what a compiler makes at run time.
        return
    seen = {what: text for what, text in judge.undescribed.items() if not WITHOUT_TABLES.fullmatch(what)}
    assert not seen, "\n".join(seen.values())
    for who in ("gdb", "eu-stack"):
        total = sum(count for key, count in judge.counts.items() if key.startswith(who))
        # At first most threads may be there that never ran.
        assert judge.counts[f"{who}: equal"] > 0.8 * (total - judge.counts.get(f"{who}: {BORN}", 0))


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_same_frames_as_gdb_and_eu_stack(name: str, tmp_path: Path, gdb: Gdb) -> None:
    stops = int(os.environ.get("WALKBACK_STOPS", "0")) or STOPS.get(name, 7)
    judged(name, compared(name, tmp_path, gdb, stops))
