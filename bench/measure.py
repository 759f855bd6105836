"""How the benchmarks measure, and a figure that they print."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inputs import PEERS

SID = PEERS / "sid" / "usr"
LIBRARIES = SID / "lib" / "x86_64-linux-gnu"
LOADER = LIBRARIES / "ld-linux-x86-64.so.2"
READELF = (LOADER, "--inhibit-cache", "--library-path", LIBRARIES, SID / "bin" / "x86_64-linux-gnu-readelf")
WALKBACK = Path(sys.executable).with_name("walkback")


@dataclass(frozen=True)
class Figure:
    """One line of the table: what walkback takes, what its peer takes, and the largest fine ratio of the two."""

    what: str
    ours: float
    theirs: float
    unit: str
    peer: str
    limit: float
    most: float | None = None
    """If the target is not about the ratio: the most that walkback may take."""

    @property
    def holds(self) -> bool:
        """Whether the target is met."""
        return self.ours <= (self.limit * self.theirs if self.most is None else self.most)

    def cells(self) -> tuple[str, ...]:
        """The texts of the columns."""
        return (
            self.what,
            f"{self.ours:.3g} {self.unit}",
            f"{self.theirs:.3g} {self.unit}",
            self.peer,
            _ratio(self.ours / self.theirs),
            _ratio(self.limit) if self.most is None else f"{self.most:.3g} {self.unit}",
            "yes" if self.holds else "NO",
        )


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def alternate(rounds: int, *works: Callable[[], float]) -> list[float]:
    """The fastest of each, of rounds in which each has its turn."""
    return [min(times) for times in zip(*([work() for work in works] for _ in range(rounds)), strict=True)]


def fastest(work: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest of a few runs in a row: the peer's program runs as many in its turn."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def process(
    command: tuple[str | Path, ...],
    output: Path = Path(os.devnull),
    *,
    environment: Mapping[str, str] | None = None,
    on_processors: bool = False,
) -> tuple[float, float]:
    """Seconds and peak megabytes of a process that writes to a file; or its seconds `on_processors`.

    There it may have findings, and what it complains of is not shown.
    """
    helper = Path(__file__).with_name("process.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", helper, output, *command],
        check=False,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if on_processors else None,
        text=True,
    )
    if not 0 <= done.returncode <= on_processors:
        raise subprocess.CalledProcessError(done.returncode, command)
    seconds, used, kibibytes = done.stdout.split()
    return float(used if on_processors else seconds), int(kibibytes) * 1024 / 1e6
