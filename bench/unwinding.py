"""The measures of unwinding recordings: the whole verb against perf script on one file, and the walk alone."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from inputs import BIN, CACHE
from measure import WALKBACK, Figure, alternate, process
from walkback.capture.perfdata.recording import Recording
from walkback.naming.modules import Modules
from walkback.walking.walker import Walker

SAMPLES = 75_000
_PERF = shutil.which("perf") or str(BIN / "perf")
_PERF_SCRIPT = (_PERF, "script", "-F", "ip,sym", "--no-inline", "-i")


def unwinding(rounds: int) -> Iterator[Figure]:
    """Samples with 8 KB of stack each, of a program without frame pointers; both without inlined calls."""
    data = _recording()
    samples, frames = _counted(data)
    ours, theirs = alternate(
        max(3, rounds // 2),
        lambda: process((WALKBACK, "unwind", "--no-lines", data))[0],
        lambda: process((*_PERF_SCRIPT, data))[0],
    )
    yield Figure(f"unwind {samples:,} samples", ours, theirs, "s", "perf script, the same file", 1 / 2)
    (walk,) = alternate(max(3, rounds // 2), lambda: _walking(data))
    yield Figure("walk a frame", walk / frames * 1e9, theirs / frames * 1e9, "ns", "perf script, whole", 1, 100)


def _recording() -> Path:
    """The recording, made once."""
    folder = CACHE.with_name("bench-unwinding")
    data, program = folder / "perf.data", folder / "recorded"
    if not data.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = Path(__file__).with_name("recorded.c")
        options = ("-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread")
        subprocess.run(["gcc", *options, "-o", program, source], check=True)
        record = (_PERF, "record", "-q", "-e", "cpu-clock", "-F", "12000", "-m", "32M", "--call-graph", "dwarf,8192")
        subprocess.run([*record, "-o", data.with_suffix(".new"), program], check=True)
        data.with_suffix(".new").rename(data)
    return data


def _walker(recording: Recording, modules: Modules) -> Walker:
    return Walker(recording.machine, recording.byteorder, lambda number: modules[number].elf)


def _counted(data: Path) -> tuple[int, int]:
    modules = Modules()
    recording = Recording.open(data, modules)
    walker = _walker(recording, modules)
    samples = frames = 0
    for batch in recording.batches():
        samples += len(batch)
        frames += len(walker.walk(batch.samples, recording.spaces).pc)
    if samples < SAMPLES:
        message = f"{data} has {samples} samples, and {SAMPLES} are wanted"
        raise AssertionError(message)
    return samples, frames


def _walking(data: Path) -> float:
    """Seconds of walking alone, by one thread."""
    modules = Modules()
    recording = Recording.open(data, modules)
    walker = _walker(recording, modules)
    seconds = 0.0
    for batch in recording.batches():
        start = time.perf_counter()
        walker.walk(batch.samples, recording.spaces)
        seconds += time.perf_counter() - start
    return seconds
