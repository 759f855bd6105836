"""Stacks of running Go programs without symbols, against what the programs themselves say is called in them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import walkback.gopclntab
from gopclntab.callers import Comparison, running, stopped
from gopclntab.gotools import VERSIONS, callers
from peers import peer
from waiting import eventually
from walkback.capture.stacks import Stopper

pytestmark = pytest.mark.peers
THREADS = "80"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("go")


@pytest.mark.parametrize("version", VERSIONS)
def test_stacks_are_what_programs_say(version: str, folder: Path) -> None:
    """Deep stacks, panics, faults, reflection, and functions that wait on the stack of the thread."""
    found = compared(callers(folder, version))
    assert set(found.ways) == {"go"}


@pytest.mark.parametrize("version", VERSIONS)
def test_stacks_cross_to_c_and_back(version: str, folder: Path) -> None:
    """Calls of C that call Go, in threads that C made too, and handlers of signals of both."""
    flags = ("-buildmode=pie",) if version == "1.24" else ()
    found = compared(callers(folder, version, "callers_cgo", "-O2 -fomit-frame-pointer", *flags))
    assert set(found.ways) == {"go", "cfi"}


@pytest.mark.parametrize("version", VERSIONS)
def test_stacks_are_whole_wherever_the_runtime_is(version: str, folder: Path) -> None:
    """It allocates, collects, moves stacks, looks at the clock, and handles signals meanwhile."""
    program = callers(folder, version, "callers_busy")
    found = Comparison(program)
    with running(program, "1", "4") as (pid, held):
        stopper = Stopper(pid, cache=False, inline=False)
        while found.stacks < 30:
            found.compare(stopper.shoot(), held, busy=True)
    assert not found.different
    assert set(found.ends) == {"complete"}
    assert set(found.left) <= {"runtime.mcall", "runtime.morestack"}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_clock_is_read_with_a_rule_at_each_instruction(version: str, folder: Path) -> None:
    """A thread is there for so short a time that samples seldom find it."""
    [source] = walkback.gopclntab.read(callers(folder, version, "callers_busy"))
    functions, rules = source.functions, source.crossings
    for name in ("time.now", "runtime.nanotime1"):
        [function] = functions.named(name).tolist()
        start, end = int(functions.start[function]), int(functions.end[function])
        parts = [(one.start, one.end) for one in rules if start <= one.start < end]
        assert all(one[1] == after[0] for one, after in itertools.pairwise(parts))
        code = bytes(source.elf.mapped_data(start)[: end - start]).rstrip(b"\xcc")
        assert (parts[0][0], parts[-1][1]) == (start, start + len(code))


@pytest.mark.parametrize("version", VERSIONS)
def test_stacks_of_recordings_are_what_programs_say(version: str, folder: Path) -> None:
    program, recording = callers(folder, version, "callers_busy"), folder / f"perf-{version}.data"
    found = Comparison(program)
    command = [peer("perf"), "record", "-q", "-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf,16384"]
    with running(*command, "-o", recording, "--", program, "-1", "3") as (_, held):
        used = ticks(held[0].tid)
        assert eventually(lambda: ticks(held[0].tid) > used + 10)
    if not recording.exists():
        pytest.skip("perf may not record here")
    found.compare_recording(recording, held)
    assert found.stacks > 30
    assert not found.different
    assert set(found.ends) == {"complete"}


def ticks(tid: int) -> int:
    """For how long a thread has run, in hundredths of a second."""
    return int(Path(f"/proc/{tid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11])


def compared(program: Path) -> Comparison:
    found = Comparison(program)
    with running(program, "1", THREADS) as (pid, held):
        found.compare(stopped(pid), held)
    assert not found.different
    assert set(found.ends) == {"complete"}
    assert found.stacks == int(THREADS)
    return found
