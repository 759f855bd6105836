"""The memory of a Python that waits, damaged: frames, the reason why there are no more, or one line."""

from __future__ import annotations

import os
import random
import resource
from itertools import pairwise

import numpy as np
import pytest

from live.damage import PAGE, Kept, damaged
from live.pythons import HERE, VERSIONS, program
from live.test_live_python import WAYS, said, sleeps
from waiting import eventually
from walkback.capture.live.process import Process
from walkback.capture.stacks import Stopper
from walkback.runtimes.interpreters import Interpreters
from walkback.runtimes.python.reading import Followed

ROUNDS = int(os.environ.get("WALKBACK_SOAK", "0")) // 100 or 150


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.whole
def test_damaged_memory_costs_little_and_breaks_nothing(name: str) -> None:
    with program(name, HERE / "frames.py") as target:
        tids = list(said(target.stdout, WAYS + 1))
        assert eventually(lambda: sleeps(target.pid))
        stopper = Stopper(target.pid)
        assert isinstance(stopper.target, Process)
        kept = Kept(stopper.target)
        space = stopper.shoot().snapshot.spaces[0]

        def look() -> tuple[int, int]:
            interpreters = Interpreters(lambda number: stopper.modules[number].elf)
            interpreters.use(space.module, space.bias, kept, stopper.target.byteorder)
            looked = [interpreters.look(tid, kept) for tid in tids]
            chains = [one for its in interpreters.chains(looked, None) for one in its]
            assert all(len(line) < 300 for line in interpreters.troubles)
            frames = [interpreters.frames[number] for one in chains for part in one.parts for number in part.frames]
            assert all(len(frame.symbol) <= 1100 and 0 <= frame.line < 2**31 for frame in frames)
            for frame in frames:
                f"{frame.symbol} {frame.file}".encode()
            torn = sum(one.torn is not None for one in chains) + len(interpreters.troubles)
            return len(frames), torn

        whole, torn = look()
        assert whole > 300
        assert not torn
        reads, most = kept.reads, kept.bytes
    kept.target = None
    pages = dict(kept.pages)
    rng = random.Random(0)
    counts = []
    for _ in range(ROUNDS):
        kept.reads = kept.bytes = 0
        kept.pages = dict(pages)
        for number in rng.sample(sorted(pages), min(len(pages), rng.choice((1, 3, 30)))):
            kept.pages[number] = b"" if rng.random() < 0.1 else damaged(pages[number], rng)
        counts.append(look())
        # A loop of damaged frames ends at the limit, for each thread.
        assert kept.reads < reads + len(tids) * 1024 * 10
        assert kept.bytes < most + (64 << 20)
    assert any(torn for _, torn in counts)
    assert any(0 < frames < whole for frames, _ in counts)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20
    assert np.mean([frames for frames, _ in counts]) > 10


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.whole
def test_frames_in_a_circle_are_read_no_longer_than_others(name: str) -> None:
    with program(name, HERE / "frames.py") as target:
        tid = next(iter(said(target.stdout, WAYS + 1)))
        assert eventually(lambda: sleeps(target.pid))
        stopper = Stopper(target.pid)
        assert isinstance(stopper.target, Process)
        kept = Kept(stopper.target)
        space = stopper.shoot().snapshot.spaces[0]
        interpreters = Interpreters(lambda number: stopper.modules[number].elf)
        interpreters.use(space.module, space.bias, kept, stopper.target.byteorder)
        (followed,) = interpreters.look(tid, kept)
        kept.target = None
    assert isinstance(followed, Followed)
    rows = followed.threads[0].rows
    for (newer, *_), (older, *_) in reversed([*pairwise(rows[:3])]):
        number, away = divmod(newer, PAGE)
        page = kept.pages[number]
        at = page.index(older.to_bytes(8, "little"), away)
        kept.pages[number] = page[:at] + rows[0][0].to_bytes(8, "little") + page[at + 8 :]
        kept.reads = 0
        (circle,) = interpreters.look(tid, kept)
        assert isinstance(circle, Followed)
        assert circle.threads[0].rows == rows[: len(circle.threads[0].rows)]
        assert len(circle.threads[0].rows) <= 2
        ((chain,),) = interpreters.chains([[circle]], None)
        assert not chain.has_more
        assert circle.threads[0].torn is not None
        assert kept.reads < 1100
