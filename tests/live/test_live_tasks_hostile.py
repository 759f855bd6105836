"""The memory of a program of asyncio, damaged: tasks, the reason why there are no more, or one line."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from effort import rounds
from live.crashes import allow, core_in
from live.damage import PAGE, Kept, damaged
from live.pythons import HERE
from live.test_live_python import sleeps
from live.test_live_tasks import program_of_tasks, said
from waiting import eventually
from walkback.capture.live.process import Process
from walkback.capture.stacks import Stopper
from walkback.cli.tasks import Trees
from walkback.runtimes.interpreters import Interpreters
from walkback.runtimes.tasks import AsyncioTask
from walkback.stacks.stacks import End

NAMES = ("3.14", "3.15", "free-threaded")
ROUNDS = int(os.environ.get("WALKBACK_SOAK", "0")) // 50 or 150
SECONDS = 20
"""Far more than any look takes, and far less than a loop without end."""


class Target:
    """Looks at the kept memory of a program."""

    def __init__(self, pid: int) -> None:
        stopper = Stopper(pid, tasks=True)
        assert isinstance(stopper.target, Process)
        self.pid, self.stopper = pid, stopper
        self.kept = Kept(stopper.target)
        self.byteorder = stopper.target.byteorder
        self.space = stopper.take().spaces[0]
        self.known: Interpreters | None = None

    def look(self) -> tuple[list[AsyncioTask], list[str]]:
        """By a reader that knows nothing, or one that knows how it was before."""
        interpreters = self.known or Interpreters(lambda number: self.stopper.modules[number].elf, tasks=True)
        interpreters.use(self.space.module, self.space.bias, self.kept, self.byteorder)
        looked = [interpreters.look(self.pid, self.kept, lambda: pytest.fail("nobody asks"))]
        troubles: list[str] = []
        tasks = interpreters.tasks([self.pid], looked, troubles)
        return tasks, [*troubles, *interpreters.troubles]


@pytest.mark.parametrize("way", ["nested", "grouped", "generators", "at_work"])
@pytest.mark.parametrize("name", NAMES)
def test_damaged_memory_costs_little_and_breaks_nothing(name: str, way: str) -> None:
    with program_of_tasks(name, way) as process:
        said(process.stdout)
        assert eventually(lambda: sleeps(process.pid))
        target = Target(process.pid)
        whole, troubles = target.look()
        assert not troubles
        assert len(whole) > 2
    kept = target.kept
    kept.target = None
    pages, reads = dict(kept.pages), kept.reads
    rng = random.Random(f"{name} {way}")
    torn = fewer = 0
    for number in range(ROUNDS):
        kept.reads = kept.bytes = 0
        kept.pages = dict(pages)
        for page in rng.sample(sorted(pages), min(len(pages), rng.choice((1, 3, 30)))):
            kept.pages[page] = b"" if rng.random() < 0.1 else damaged(pages[page], rng)
        if number == ROUNDS // 2:
            target.known = Interpreters(lambda number: target.stopper.modules[number].elf, tasks=True)
        began = time.monotonic()
        tasks, troubles = target.look()
        lines = list(Trees(tasks).lines())
        assert time.monotonic() - began < SECONDS
        assert len(lines) >= len(tasks)
        assert all(len(line) < 300 for line in troubles)
        assert len({task.address for task in tasks}) == len(tasks)
        for task in tasks:
            assert len(task.name) <= 1100
            assert len(task.frames) <= 1024
            f"{task.name} {task.frames}".encode()
        torn += bool(troubles) or any(task.end != End.COMPLETE for task in tasks)
        fewer += len(tasks) < len(whole)
    assert torn
    assert fewer
    assert reads
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20


def written(kept: Kept, address: int, value: int) -> None:
    """Write a word."""
    number, away = divmod(address, PAGE)
    page = bytearray(kept.page(number))
    page[away : away + 8] = value.to_bytes(8, "little")
    kept.pages[number] = bytes(page)


@pytest.mark.parametrize("name", NAMES)
def test_lists_and_chains_that_lead_back_to_themselves_end(name: str) -> None:
    with program_of_tasks(name, "nested") as process:
        said(process.stdout)
        assert eventually(lambda: sleeps(process.pid))
        target = Target(process.pid)
        whole, _ = target.look()
        kept, pages = target.kept, dict(target.kept.pages)
        first, second, *_ = (task.address for task in whole)
        # Every word of a task in turn leads to the task itself, to another, and to the middle of either.
        for place in range(0, 256, 8):
            for value in (first, second, first + place, second + place, first + 8, 0, 1, 2**64 - 8):
                kept.pages = dict(pages)
                written(kept, first + place, value)
                tasks, troubles = target.look()
                assert len(list(Trees(tasks).lines())) >= len(tasks)
                assert len(tasks) + len(troubles) >= 1


@pytest.mark.soak
@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
def test_damaged_cores(name: str, tmp_path: Path) -> None:
    with program_of_tasks(name, "nested", cwd=tmp_path, preexec_fn=allow) as target:
        said(target.stdout)
        assert eventually(lambda: sleeps(target.pid))
        target.send_signal(signal.SIGABRT)
        target.wait()
    count = str(rounds(20, quick=5, share=100))
    command: list[str | Path] = [sys.executable, HERE / "mutate.py", core_in(tmp_path), count, "20", "--asyncio"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert "BAD" not in done.stdout, done.stdout[:8000]
