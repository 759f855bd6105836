"""The memory of a Python that waits, damaged: frames, the reason why there are no more, or one line."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Sequence

import numpy as np
import pytest

from live.pythons import HERE, VERSIONS, program
from live.test_live_python import WAYS, said, sleeps
from waiting import eventually
from walkback.capture.live.process import Process
from walkback.capture.stacks import Stopper
from walkback.runtimes.interpreters import Interpreters

PAGE = 4096
ROUNDS = int(os.environ.get("WALKBACK_SOAK", "0")) // 100 or 150


class Kept:
    """The pages of a process that were read; those that were not are missing later."""

    def __init__(self, target: Process) -> None:
        self.target: Process | None = target
        self.pages: dict[int, bytes] = {}
        self.reads = 0
        self.bytes = 0

    def page(self, number: int) -> bytes:
        if number not in self.pages and self.target is not None:
            self.pages[number] = self.target.read(number * PAGE, PAGE)
        return self.pages.get(number, b"")

    def read(self, address: int, size: int) -> bytes:
        self.reads += 1
        found = b""
        while len(found) < size:
            number, away = divmod(address + len(found), PAGE)
            part = self.page(number)[away : away + size - len(found)]
            if not part:
                break
            found += part
        self.bytes += len(found)
        return found

    def gather(self, addresses: Sequence[int], size: int) -> bytes:
        assert all(0 <= address < 2**64 for address in addresses)
        parts = [self.read(address, size) for address in addresses]
        whole = next((number for number, part in enumerate(parts) if len(part) < size), len(parts))
        return b"".join(parts[:whole])


def damaged(page: bytes, rng: random.Random) -> bytes:
    """With some of its words or bytes changed, as a thread that runs may leave it or somebody means it."""
    changed = bytearray(page)
    for _ in range(rng.choice((1, 1, 2, 5, 50))):
        place = rng.randrange(len(changed) // 8) * 8
        way = rng.randrange(6)
        if way == 0:
            changed[place : place + 8] = rng.randbytes(8)
        elif way == 1:
            changed[place : place + 8] = changed[(other := rng.randrange(len(changed) // 8) * 8) : other + 8]
        elif way == 2:
            changed[place + rng.randrange(8)] ^= 1 << rng.randrange(8)
        elif way == 3:
            changed[place : place + 8] = rng.choice((0, 1, 2**63, 2**64 - 1, 8, 2**31)).to_bytes(8, "little")
        elif way == 4:
            changed[place : place + 64] = bytes(len(changed[place : place + 64]))
        else:
            changed[place] = rng.randrange(256)
    return bytes(changed)


@pytest.mark.parametrize("name", VERSIONS)
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
