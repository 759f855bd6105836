"""The measures of the store: how small, how quick to fill, and how long a flame graph of an hour takes.

As a program it takes recordings of perf and prints the same for their stacks:

    python bench/storing.py perf.data...
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from measure import WALKBACK, Figure, process
from recordings import recording
from walkback.capture.unwinding import Unwinding, unwind
from walkback.export.formats import FORMATS
from walkback.stacks.distinct import Distinct
from walkback.stacks.profile import SampleBatch, chosen_stacks
from walkback.store.store import Store

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
"""Samples of an hour: three decades."""
HOUR = 3600 * 10**9
_START = 490_000 * HOUR
_AT_ONCE = 1 << 17
_LINES = 1_000_000
"""Of folded text."""


def storing(rounds: int, data: Path | None = None) -> Iterator[Figure]:
    """The stacks of a compiler and of Python at work: each sample once, then up to ten million in an hour."""
    stacks = Stacks.of(data or recording())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from _sizes(stacks, folder)
        seconds = min(_fill(stacks, folder / f"speed{number}", np.arange(len(stacks))) for number in range(rounds))
        plain = min(_write_plainly(stacks, folder / "plain.parquet") for _ in range(rounds))
        scale = 1e6 / len(stacks)
        yield Figure("store a stack", seconds * scale, plain * scale, "us", "pyarrow, lists of addresses", 1, 1e6 / 3e5)
        yield _folded(stacks, folder, rounds)
        first = first_filled = None
        for samples in SIZES:
            store = folder / f"hour{samples}"
            chosen = np.random.default_rng(samples).integers(0, len(stacks), samples)
            filled = _fill(stacks, store, chosen) / samples
            first_filled = first_filled or filled
            what = f"store {samples:,} samples, each"
            yield Figure(what, filled * 1e6, first_filled * 1e6, "us", f"{SIZES[0]:,} samples", 1)
            Store(store).compact(every=True)
            command = (WALKBACK, "store", store, "flame", "-o", folder / "flame.html")
            seconds = min(process(command)[0] for _ in range(rounds))
            first = first or seconds
            yield Figure(f"flame graph of {samples:,} samples", seconds, first, "s", f"{SIZES[0]:,} samples", 1, 2)
            shutil.rmtree(store)


@dataclass(frozen=True)
class Stacks:
    """The samples of a recording, with the frames of each."""

    path: Path
    unwinding: Unwinding
    batch: SampleBatch

    @classmethod
    def of(cls, path: Path) -> Stacks:
        """All of them, as one batch."""
        unwinding = Unwinding(path, names_last=True, lines=False)
        batches = list(unwinding)
        columns = ("pid", "tid", "time", "period", "comm", "end", "frame", "pc", "lookup", "how", "event")
        joined = {name: np.concatenate([getattr(one, name) for one in batches]) for name in columns}
        sizes = np.concatenate([np.diff(one.first) for one in batches])
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        return cls(path, unwinding, replace(batches[-1], first=first, **joined))

    def __len__(self) -> int:
        return len(self.batch)

    def chosen(self, numbers: np.ndarray, times: np.ndarray) -> SampleBatch:
        """Some of the samples, at these times."""
        batch = self.batch
        first, frame = chosen_stacks(batch.first, batch.frame, numbers)
        columns = {name: getattr(batch, name)[numbers] for name in ("pid", "tid", "period", "comm", "end", "event")}
        return replace(batch, first=first, frame=frame, time=times, cpu=None, **columns)


def _fill(stacks: Stacks, folder: Path, numbers: np.ndarray, *, names: bool = False) -> float:
    """Make a store of samples, spread over an hour; returns the seconds that storing took."""
    seconds = 0.0
    times = np.linspace(1, HOUR - 1, len(numbers)).astype(np.uint64)
    new = Store(folder, create=True).append(names=names)
    taken = new.captured(stacks.unwinding, start=_START)
    for at in range(0, len(numbers), _AT_ONCE):
        batch = stacks.chosen(numbers[at : at + _AT_ONCE], times[at : at + _AT_ONCE])
        start = time.perf_counter()
        taken.add(batch)
        seconds += time.perf_counter() - start
    start = time.perf_counter()
    new.publish()
    return seconds + time.perf_counter() - start


def _sizes(stacks: Stacks, folder: Path) -> Iterator[Figure]:
    """Bytes a distinct stack, of all that is needed to read them back, and of everything a sample."""
    distinct = Distinct()
    distinct.add(stacks.batch.first, stacks.batch.frame)
    out = io.BytesIO()
    FORMATS["pprof"].export(unwind(stacks.path), out)
    pprof = len(out.getvalue())
    for name in ("appended", "compacted"):
        store = folder / "sizes"
        if name == "appended":
            _fill(stacks, store, np.arange(len(stacks)), names=True)
        else:
            Store(store).compact(every=True)
        files = [file for file in store.rglob("*") if file.is_file()]
        whole = sum(file.stat().st_size for file in files)
        samples, names = (
            sum(file.stat().st_size for file in files if file.name == f"{table}.parquet")
            for table in ("samples", "names")
        )
        what = f"{name}, one of {len(distinct):,} stacks"
        size = (whole - samples - names) / len(distinct)
        goal = 9 if name == "compacted" else None
        yield Figure(f"{name}, names of a stack", names / len(distinct), size, "B", "its frames", 1, 1.5)
        yield Figure(what, size, pprof / len(distinct), "B", "pprof, compressed", 1, goal)
        yield Figure(f"{name}, a sample", whole / len(stacks), pprof / len(stacks), "B", "pprof, compressed", 1)


def _folded(stacks: Stacks, folder: Path, rounds: int) -> Figure:
    """Folded stacks, read into a store and written, beside a loop that splits and counts them."""
    out = io.BytesIO()
    FORMATS["folded"].export(unwind(stacks.path), out)
    text = out.getvalue() * (_LINES // out.getvalue().count(b"\n") + 1)
    lines = text.count(b"\n")
    ours, plain = [], []
    for number in range(rounds):
        start = time.perf_counter()
        with Store(folder / f"folded{number}", create=True).append() as new:
            new.folded(io.BytesIO(text), start=_START)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        counts: Counter[tuple[bytes, ...]] = Counter()
        for line in io.BytesIO(text):
            names, _, weight = line.rpartition(b" ")
            counts[tuple(names.split(b";"))] += int(weight)
        plain.append(time.perf_counter() - start)
    scale = 1e6 / lines
    return Figure("read folded text, a line", min(ours) * scale, min(plain) * scale, "us", "a loop", 1 / 2, 1e6 / 1.5e6)


def _write_plainly(stacks: Stacks, file: Path) -> float:
    """Write the addresses of each sample as a list; returns seconds."""
    batch = stacks.batch
    start = time.perf_counter()
    lists = pa.LargeListArray.from_arrays(batch.first, batch.lookup)
    pq.write_table(pa.table({"time": batch.time, "stack": lists}), file, compression="zstd")
    return time.perf_counter() - start


def main() -> None:
    for name in sys.argv[1:]:
        print(f"{name}:")
        for figure in storing(3, Path(name)):
            print("  " + "  ".join(figure.cells()))


if __name__ == "__main__":
    main()
