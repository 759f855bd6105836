"""Programs of Python with `-X perf`: their stacks are as whole as without, and have the functions in their order."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.pythons import HERE, VERSIONS, program, python, version_of
from recorder.programs import needs_events
from recordings.perfscript import ours, record
from waiting import PATIENCE, eventually
from walkback.capture.stacks import Stopper
from walkback.stacks.stacks import End, How

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the interpreters are for this machine"),
]

ORDERED = HERE / "ordered.py"
MAIN = ["<module>"]
WORK = [*MAIN, "work", "Work.run", "a", "b", "c"]
LATE = [[*MAIN, "late", "work", f"outer{number}", f"inner{number}", "c"] for number in (1, 2)]
THREAD = ["Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", *WORK[1:]]
WAYS = {tuple(way) for way in (WORK, *LATE, THREAD)}
"""All that leads to `c`."""
_SHARE = 0.97
"""Of stacks that are complete: some are longer than what was copied, and some are of the loader."""


def needs_trampolines(name: str) -> None:
    if version_of(name) < (3, 12):
        pytest.skip("Python has no trampolines before 3.12")


def command(name: str, *options: str) -> list[str]:
    """The program's, with the variables of that Python."""
    needs_trampolines(name)
    words, variables = python(name)
    own = [f"{key}={value}" for key, value in variables.items() if key.startswith("PYTHON")]
    return ["/usr/bin/env", "-u", "PYTHONPATH", *own, *words, *options, str(ORDERED), "0.15"]


@contextmanager
def without_maps() -> Iterator[set[int]]:
    """Take away the maps that processes leave; it gives a set to put their numbers into."""
    pids: set[int] = set()
    try:
        yield pids
    finally:
        for pid in pids:
            Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def functions(symbols: Sequence[str]) -> list[str]:
    """The functions of Python that trampolines are for, outermost first."""
    found = []
    for symbol in symbols[::-1]:
        if symbol.startswith("py::"):
            function, _, file = symbol.removeprefix("py::").partition(":")
            assert file == str(ORDERED) or "c" not in function.split("."), symbol
            found.append(function)
    return found


def check(ways: Counter[tuple[str, ...]], least: int) -> None:
    """All ways were met, and no other way leads to `c`."""
    met = {way: count for way, count in ways.items() if way[-1:] == ("c",)}
    assert set(met) == WAYS
    assert all(count >= least for count in met.values()), met


@pytest.mark.parametrize("name", VERSIONS)
def test_a_recording_of_perf_has_whole_stacks(name: str, tmp_path: Path) -> None:
    with without_maps() as pids:
        plain = ours(record(tmp_path / "plain.data", command(name), rate=499))
        found = ours(record(tmp_path / "perf.data", command(name, "-X", "perf"), rate=499))
        pids |= {one.tid for one in found}
    for samples in (plain, found):
        assert sum(one.end is End.COMPLETE for one in samples) > _SHARE * len(samples) > 100
    ways: Counter[tuple[str, ...]] = Counter()
    outermost = {tuple(frame.symbol for frame in one.frames[-3:]) for one in plain if one.end is End.COMPLETE}
    for one in found:
        called = [
            frame.how for frame, callee in zip(one.frames[1:], one.frames, strict=False) if is_made(callee.symbol)
        ]
        assert set(called) <= {How.CODE}
        if (way := tuple(functions([frame.symbol for frame in one.frames])))[-1:] == ("c",) and one.end is End.COMPLETE:
            ways[way] += 1
            assert way == THREAD or tuple(frame.symbol for frame in one.frames[-3:]) in outermost
    check(ways, 10)


def is_made(symbol: str) -> bool:
    return symbol.startswith("py::")


@needs_events
@pytest.mark.parametrize("name", VERSIONS)
def test_so_has_what_is_recorded_by_events(name: str) -> None:
    """Also where functions get names while earlier ones were written already."""
    recorder = [sys.executable, "-m", "walkback", "record", "-F", "499", "--no-lines", "--format", "json", "--"]
    with without_maps() as pids:
        done = subprocess.run(
            [*recorder, *command(name, "-X", "perf")], capture_output=True, timeout=PATIENCE, check=True
        )
        samples = [json.loads(line) for line in done.stdout.splitlines()]
        pids |= {one["pid"] for one in samples}
    assert sum(one["end"] == "complete" for one in samples) > _SHARE * len(samples) > 100
    ways: Counter[tuple[str, ...]] = Counter()
    for one in samples:
        if one["end"] == "complete":
            ways[tuple(functions([frame["symbol"] or "" for frame in one["frames"]]))] += 1
    check(ways, 10)


@pytest.mark.parametrize("name", VERSIONS)
def test_so_has_a_process_that_runs_and_its_core_file(name: str, tmp_path: Path) -> None:
    needs_trampolines(name)
    if shutil.which("gcore") is None:
        pytest.skip("needs gdb")
    with without_maps() as pids, program(name, "-X", "perf", ORDERED, "1000") as process:
        pids.add(process.pid)
        stopper = Stopper(process.pid, interpreted=False, lines=False)
        eventually(lambda: "c" in functions(stopper.shoot().labels(0))[-1:])
        core = tmp_path / "core"
        subprocess.run(["gcore", "-o", core, str(process.pid)], capture_output=True, check=True)
        labels = Stopper(process.pid, lines=False).shoot().labels(0)
        assert "c" in labels
        assert functions(labels) == []
        for shot in (stopper.shoot(), Stopper(Path(f"{core}.{process.pid}"), interpreted=False, lines=False).shoot()):
            assert functions(shot.labels(0)) == WORK
            assert End(int(shot.stacks.end[0])) is End.COMPLETE
