"""Is this revision slower than an older one? Both run in turn, many times: ratios with their spread.

    python bench/against.py [REVISION]...

The older ones are compiled first; without any, it is the one in `bench/reference`. Of each run the time on the
processor counts, as other work on the machine changes it least, and of commands the peak of their memory, too. A
measure fails if enough pairs of runs have a ratio above 1.15, by a sign test at one per cent: one slow run is no
reason. It is done after four pairs if none has a ratio above 1.1. `--json` writes all ratios, `--page` draws them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from inputs import ROOT
from measure import process
from overtime import page
from shortly import FRESH, Measure, measures
from trees import built, commit

LIMIT = 1.15
CHANCE = 0.01
FIRST_ROUNDS, ROUNDS, MOST_ROUNDS = 4, 7, 19
"""Pairs after which a clearly good measure is done; the fewest that can fail one; the most that a doubtful one gets."""
DOUBTFUL = 1.1
REFERENCE = Path(__file__).with_name("reference")


@dataclass(frozen=True)
class Compared:
    """One measure of this revision beside another."""

    what: str
    figure: str
    """`time` or `memory`."""
    unit: str
    ours: float
    theirs: float
    ratios: Sequence[float]
    """Of the pairs of runs, rising."""

    @property
    def ratio(self) -> float:
        """The one in the middle."""
        return statistics.median(self.ratios)

    @property
    def chance(self) -> float:
        """How likely it is that as many ratios are above the limit, if the true one is not."""
        count, above = len(self.ratios), sum(ratio > LIMIT for ratio in self.ratios)
        return float(sum(math.comb(count, one) for one in range(above, count + 1)) / 2**count)

    @property
    def is_worse(self) -> bool:
        """Whether it fails."""
        return self.chance < CHANCE

    @property
    def is_doubtful(self) -> bool:
        """Whether more pairs could show that it fails; of fewer pairs than can fail it the worst one counts."""
        worst = self.ratio if len(self.ratios) >= ROUNDS else self.ratios[-1]
        return worst > DOUBTFUL and not self.is_worse

    def line(self) -> str:
        """For people."""
        size = f"{self.ours:9.4g} {self.theirs:9.4g} {self.unit:2}"
        spread = f"{self.ratio:5.2f}  {self.ratios[0]:.2f} to {self.ratios[-1]:.2f}, {len(self.ratios)} pairs"
        return f"  {self.what:34} {self.figure:6} {size}  {spread}{'  SLOWER' if self.is_worse else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="*", help="a commit, tag or branch")
    parser.add_argument("--only", metavar="TEXT", default="", help="only measures whose names have this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--page", type=Path, metavar="FILE", help="draw the ratios of all revisions")
    options = parser.parse_args()
    reference = REFERENCE.read_text().split()[0]
    numbers = {revision: commit(revision) for revision in options.revision or [reference]}
    absent = [revision for revision, number in numbers.items() if number is None]
    if absent:
        print(f"{', '.join(absent)}: this clone has no such revision; nothing was compared")
        sys.exit(bool(options.revision))
    start = time.perf_counter()
    trees = {revision: built(number) for revision, number in numbers.items() if number is not None}
    print(f"compiled in {time.perf_counter() - start:.0f} s; this revision, the other, the ratio of the two:")
    chosen = [one for one in measures() if options.only in one.what]
    found: dict[str, list[Compared]] = {revision: [] for revision in trees}
    for one in chosen:
        _measure(one, trees, found)
    results = {
        "revision": commit("HEAD") or "",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
        "against": [
            {"revision": revision, "commit": number, "measures": [_object(one) for one in found[revision]]}
            for revision, number in numbers.items()
        ],
    }
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.page:
        options.page.write_text(page(results))
    worse = sum(one.is_worse for every in found.values() for one in every)
    print(f"{worse or 'nothing'} worse, in {time.perf_counter() - start:.0f} s")
    sys.exit(1 if worse else 0)


def _object(one: Compared) -> dict[str, object]:
    return asdict(one) | {"ratio": one.ratio, "chance": one.chance, "is_worse": one.is_worse}


def _measure(one: Measure, trees: dict[str, Path], found: dict[str, list[Compared]]) -> None:
    """Run a measure in all trees in turn, until nothing is in doubt; print it."""
    _run(one, ROOT)  # the first run warms the caches
    every: list[tuple[str | None, Path]] = [(None, ROOT)]
    for revision, tree in trees.items():
        try:
            _run(one, tree)
            every.append((revision, tree))
        except subprocess.CalledProcessError:  # it had no such work yet
            print(f"  {one.what:34} cannot be run in {revision}")
    runs: dict[str | None, list[tuple[float, float]]] = {name: [] for name, _ in every}
    while True:
        for name, tree in every:
            runs[name].append(_run(one, tree))
        every.reverse()
        rounds = len(runs[None])
        if rounds < FIRST_ROUNDS:
            continue
        now = {name: _compared(one, runs[None], runs[name]) for name in trees if name in runs}
        if rounds >= MOST_ROUNDS or not any(row.is_doubtful for rows in now.values() for row in rows):
            break
    for revision, figures in now.items():
        found[revision] += figures
        for row in figures:
            print(row.line() if len(trees) == 1 else f"{revision}: {row.line()}", flush=True)


def _run(one: Measure, tree: Path) -> tuple[float, float]:
    """Milliseconds and megabytes of a run; no megabytes of what runs within a process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(tree / "src")}
    if one.is_command:
        with tempfile.TemporaryDirectory() as folder:
            run = [f"{folder}/new" if part == FRESH else part for part in one.run]
            walkback = (sys.executable, "-m", "walkback", *run)
            seconds, megabytes = process(walkback, environment=environment, on_processors=True)
        return seconds * 1e3, megabytes
    command = [sys.executable, Path(__file__).with_name("within.py"), *one.run]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return float(done.stdout) * 1e3, 0


def _compared(
    one: Measure, ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]]
) -> Sequence[Compared]:
    """The two figures of a measure."""
    found = []
    for number, (figure, unit) in enumerate((("time", "ms"), ("memory", "MB"))):
        pairs = [(a[number], b[number]) for a, b in zip(ours, theirs, strict=True)]
        if all(b for _, b in pairs):
            own, other = (statistics.median(column) for column in zip(*pairs, strict=True))
            found.append(Compared(one.what, figure, unit, own, other, sorted(a / b for a, b in pairs)))
    return found


if __name__ == "__main__":
    main()
