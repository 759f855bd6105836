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
OPTIONS = ("-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread")
"""Of the compiler, for a program without frame pointers."""
_PERF = shutil.which("perf") or str(BIN / "perf")
_PERF_SCRIPT = (_PERF, "script", "-F", "ip,sym", "--no-inline", "-i")
_NEWEST_PERF = str(BIN / "perf-new")


def unwinding(rounds: int) -> Iterator[Figure]:
    """Samples with 8 KB of stack each, of a program without frame pointers; both without inlined calls."""
    data = recording("unwinding", "recorded.c", "gcc", *OPTIONS)
    samples, frames = _counted(data)
    ours, theirs = alternate(
        max(3, rounds // 2),
        lambda: process((WALKBACK, "unwind", "--no-lines", data))[0],
        lambda: process((*_PERF_SCRIPT, data))[0],
    )
    yield Figure(f"unwind {samples:,} samples", ours, theirs, "s", "perf script, the same file", 1 / 2)
    (walk,) = alternate(max(3, rounds // 2), lambda: _walking(data))
    yield Figure("walk a frame", walk / frames * 1e9, theirs / frames * 1e9, "ns", "perf script, whole", 1, 100)


def inlining(rounds: int) -> Iterator[Figure]:
    """The text of samples of C++ with inlined calls, which perf and the newest perf write as well."""
    data = recording("inlining", "accuracy.cc", "g++", "-O2", "-g", "-std=c++17", "-pthread")
    commands: list[tuple[str | Path, ...]] = [
        (WALKBACK, "unwind", "--format", "perf-script", data),
        (_PERF, "script", "--inline", "-i", data),
        (_NEWEST_PERF, "script", "--inline", "-i", data),
    ]
    samples, *others = [_samples_and_lines(command) for command in commands]
    for other in others:
        if other[0] != samples[0] or abs(other[1] - samples[1]) > samples[1] / 200:
            message = f"of {data} the lists of calls differ: {samples} samples and lines, and {other}"
            raise AssertionError(message)
    works = [lambda command=command: process(command)[0] for command in commands]
    ours, theirs, newest = alternate(max(3, rounds // 2), *works)
    what = f"unwind {samples[0]:,} samples, inlined calls"
    yield Figure(what, ours, theirs, "s", "perf script --inline, the same file", 1 / 2)
    yield Figure(what, ours, newest, "s", "the newest perf, the same file", 1 / 2)


def _samples_and_lines(command: tuple[str | Path, ...]) -> tuple[int, int]:
    """How many samples a text has, each of which ends with an empty line, and how many lines."""
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return text.count(b"\n\n"), text.count(b"\n")


def recording(name: str, source: str, *compiler: str, frequency: int = 12000) -> Path:
    """The recording of a program, made once."""
    folder = CACHE.with_name(f"bench-{name}")
    data, program = folder / "perf.data", folder / "recorded"
    if not data.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([*compiler, "-o", program, Path(__file__).with_name(source)], check=True)
        record = (
            _PERF,
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            str(frequency),
            "-m",
            "32M",
            "--call-graph",
            "dwarf,8192",
        )
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
