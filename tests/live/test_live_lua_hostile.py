"""The memory of a Lua that waits, damaged: functions, the reason why there are no more, or one line."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Callable

import numpy as np
import pytest

from live.damage import Kept, damaged
from live.test_live_lua import LUAS, PROGRAM, program, said, waits
from waiting import eventually
from walkback.capture.live.process import Process
from walkback.capture.stacks import Stopper
from walkback.runtimes.chains import Looked, Standing
from walkback.runtimes.interpreters import Interpreters
from walkback.runtimes.memory import TargetMemory

ROUNDS = int(os.environ.get("WALKBACK_SOAK", "0")) // 100 or 150


class Watching(Interpreters):
    """Keeps how a thread stood."""

    def __init__(self, stopper: Stopper) -> None:
        super().__init__(lambda number: stopper.modules[number].elf, frames=stopper.interpreted.frames)
        stopper.target.interpreters = self
        self.stood: list[Standing] = []

    def look(
        self,
        thread: int,
        memory: TargetMemory,
        standing: Callable[[], Standing] | None = None,
        running: TargetMemory | None = None,
    ) -> list[Looked]:
        if standing is not None:
            self.stood.append(standing())
        return super().look(thread, memory, standing, running)


@pytest.mark.parametrize("way", ["deep", "coroutines", "names", "lines"])
@pytest.mark.parametrize("name", LUAS)
def test_damaged_memory_costs_little_and_breaks_nothing(name: str, way: str) -> None:
    with program(name, PROGRAM, way) as target:
        told = said(target.stdout)
        assert eventually(lambda: waits(target.pid))
        stopper = Stopper(target.pid)
        assert isinstance(stopper.target, Process)
        kept, watching = Kept(stopper.target), Watching(stopper)
        shot = stopper.shoot()
        space, [stood] = shot.snapshot.spaces[0], watching.stood

        def look(stood: Standing) -> tuple[int, int]:
            interpreters = Interpreters(lambda number: stopper.modules[number].elf)
            interpreters.use(space.module, space.bias, kept, stopper.target.byteorder)
            looked = interpreters.look(target.pid, kept, lambda: stood)
            [chains] = interpreters.chains([looked], shot.snapshot.stacks)
            assert all(len(line) < 300 for line in interpreters.troubles)
            frames = [interpreters.frames[number] for one in chains for part in one.parts for number in part.frames]
            for frame in frames:
                assert len(frame.symbol) <= 1100
                assert 0 <= frame.line < 2**31
                f"{frame.symbol} {frame.file}".encode()
            return len(frames), sum(one.torn is not None for one in chains) + len(interpreters.troubles)

        assert look(stood) == (len(told), 0)
        reads, most = kept.reads, kept.bytes
    kept.target = None
    pages = {number: page for number, page in kept.pages.items() if page}
    rng = random.Random(0)
    counts = []
    for _ in range(ROUNDS):
        kept.reads = kept.bytes = 0
        kept.pages = dict(pages)
        for number in rng.sample(sorted(pages), min(len(pages), rng.choice((1, 3, 30)))):
            kept.pages[number] = b"" if rng.random() < 0.1 else damaged(pages[number], rng)
        counts.append(look(stood._replace(stack=damaged(stood.stack, rng)) if rng.random() < 0.5 else stood))
        # A loop of damaged calls ends at the limit, for each state.
        assert kept.reads < reads + 100_000
        assert kept.bytes < most + (128 << 20)
    assert any(torn for _, torn in counts)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20
    assert np.mean([frames for frames, _ in counts]) > 1
