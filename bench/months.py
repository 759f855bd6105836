"""Questions about an hour, a day and a month of a store: their times, how long building takes, and bytes a sample.

    python bench/months.py [--samples N] [--hosts N] [--programs N] [--days N] [--own-clocks] [FOLDER]

Hosts run programs, and each program has its own share of the stacks of a recording, a few of them often. Each question
is a flame graph by the command, also without the sums of days and months, and then by several workers. With a folder,
the store stays there, and is only asked if it is there already.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from measure import WALKBACK, process
from recordings import recording
from walkback.segments.database import connect
from walkback.store.builder import SampleOrigin
from walkback.store.store import Store
from walkback.store.tables import Contents, read_block

HOUR = 3600 * 10**9
_DAY = 24
_MONTH = datetime(2026, 1, 1, tzinfo=UTC)
_START = int(_MONTH.timestamp()) * 10**9
_FLATNESS = 30
"""Of the distribution: the rank at which a stack is half as frequent as the most frequent one."""
_ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures questions about an hour, a day and a month of a store.")
    parser.add_argument("--samples", type=int, default=10**9)
    parser.add_argument("--hosts", type=int, default=10)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--days", type=int, default=31)
    parser.add_argument("--own-clocks", action="store_true", help="hosts do not sample at the same moments")
    parser.add_argument("folder", nargs="?", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary) / "store"
        if not folder.exists():
            _build(folder, asked)
        _measure(folder, asked.days)


def _build(folder: Path, asked: argparse.Namespace) -> None:
    stacks = recorded()
    each = max(asked.samples // (asked.days * _DAY * asked.hosts), 1)
    rng = np.random.default_rng(1)
    start, used = time.perf_counter(), 0.0
    store = Store(folder, create=True)
    for day in range(asked.days + 1):  # the last day is not over, and has an hour
        for host in range(asked.hosts):
            with store.append(host=f"host{host}", names=False) as new:
                nodes, _ = new.builder.take_over(stacks.referred)
                origins = (SampleOrigin(f"host{host}", f"program{one}") for one in range(asked.programs))
                sources = new.builder.sources(origins)
                for hour in range(_DAY if day < asked.days else 1):
                    program, which = chosen(rng, each, asked.programs, len(stacks.stack))
                    begin = time.perf_counter()
                    times = np.linspace(0, HOUR - 1, each).astype(np.int64)
                    if asked.own_clocks:
                        times = np.sort(rng.integers(0, HOUR, each))
                    numbers = nodes[stacks.stack[which]], np.ones(each, np.int64), sources[program]
                    new.builder.add(times, *numbers, stacks.end[which], since=_START + (day * _DAY + hour) * HOUR)
                    used += time.perf_counter() - begin
                begin = time.perf_counter()
            used += time.perf_counter() - begin
    samples = store.overview().samples
    print(f"append: {used / samples * 1e6:.2f} us a sample ({time.perf_counter() - start:.0f} s with making them)")
    begin = time.perf_counter()
    spans = store.compact().rollups
    seconds = time.perf_counter() - begin
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"compact: {seconds / samples * 1e6:.2f} us a sample, {seconds:.0f} s; {len(spans)} rollups")
    rollups = sum(file.stat().st_size for file in folder.glob("segment=*/sums/*/*"))
    print(f"{samples:,} samples: {size / samples:.2f} bytes a sample, {rollups / samples:.2f} of them in rollups")


def recorded() -> Contents:
    """The stacks of the recording, as a store has them."""
    with tempfile.TemporaryDirectory() as temporary:
        store = Store(Path(temporary) / "store", create=True)
        with store.append(names=False) as new:
            new.recording(recording())
        [block, *_] = store.blocks()
        with connect() as db:
            return read_block(db, block)


def chosen(rng: np.random.Generator, count: int, programs: int, stacks: int) -> tuple[np.ndarray, np.ndarray]:
    """The program and the stack of each sample: few of both are frequent, and each program has others."""
    program = np.minimum(rng.pareto(1.0, count).astype(np.int64), programs - 1)
    rank = np.minimum((rng.pareto(1.0, count) * _FLATNESS).astype(np.int64), stacks - 1)
    return program, (rank + program * (stacks // programs)) % stacks


def _measure(folder: Path, days: int) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        bare = _without_sums(folder, Path(temporary) / "bare")
        for name, hours in {"hour": 1, "day": _DAY, "month": days * _DAY}.items():
            end = (_MONTH + timedelta(hours=hours)).isoformat()
            for what, store, more in (
                ("", folder, ()),
                (" of one host", folder, ("--host", "host0")),
                (" without sums", bare, ()),
            ):
                page = Path(temporary) / "flame.html"
                command = (WALKBACK, "store", store, "flame", *more, "--until", end, "-o", page)
                _ask(f"flame graph of the first {name}{what}", command)
        for what, before, jobs in (
            ("one worker, on one processor", ("/usr/bin/taskset", "-c", "0"), 1),
            *((f"{jobs} workers", (), jobs) for jobs in (1, 2, 4)),
        ):
            command = (*before, WALKBACK, "store", bare, "flame", "--jobs", str(jobs), "-o", page)
            _ask(f"flame graph of everything without sums, by {what}", command)


def _ask(what: str, command: tuple[str | Path, ...]) -> None:
    found = [process(command) for _ in range(_ROUNDS)]
    seconds, size = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"{what}: {seconds:.2f} s, {size:.0f} MB", flush=True)


def _without_sums(folder: Path, copy: Path) -> Path:
    """The same store, with its files, but without its rollups."""
    shutil.copytree(folder, copy, copy_function=os.link)
    for file in copy.glob("segment=*/segment.json"):
        described = json.loads(file.read_text())
        if described.pop("sums", None):
            file.unlink()
            file.write_text(json.dumps(described))
    return copy


if __name__ == "__main__":
    main()
