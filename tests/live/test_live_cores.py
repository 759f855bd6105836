"""Programs that end in every way: their cores, and what gdb makes of the same."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from live.crashes import WAYS, crashed, told
from live.debuggers import Gdb, debugger
from live.subjects import HERE, Judge, pcs, running, stopped, subject
from walkback.capture.stacks import Stopper
from walkback.stacks.stacks import END_WORDS

BUILDS = {"dynamic": (), "static": ("-static",), "no-pie": ("-no-pie", "-O1", "-fno-omit-frame-pointer")}

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def gdb() -> Iterator[Gdb]:
    with Gdb() as one:
        yield one


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made = {}

    def of(build: str) -> Path:
        if build not in made:
            made[build] = tmp_path_factory.mktemp("crash") / f"crash-{build}"
            flags = ("-O2", "-pthread", "-w", "-fno-optimize-sibling-calls", "-fno-inline", *BUILDS[build])
            subprocess.run([debugger("gcc"), *flags, "-o", made[build], HERE / "crash.c"], check=True)
        return made[build]

    return of


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("build", BUILDS)
def test_a_core_of_the_kernel(build: str, way: str, programs: Callable[[str], Path], gdb: Gdb, tmp_path: Path) -> None:
    program = programs(build)
    core = crashed(tmp_path, program, way)
    stopper = Stopper(core, max_stack=1 << 20, inline=False, interpreted=False)
    shot = stopper.shoot()
    assert not shot.snapshot.troubles
    assert shot.snapshot.signalled == 0
    judge = Judge(stopper)
    judge.compare(shot, gdb.of_core(core, program), "gdb")
    assert judge.counts == {"gdb: equal": 4}, told(shot)
    assert {END_WORDS[end] for end in shot.stacks.end.tolist()} == {"complete"}
    labels = shot.labels(0)
    assert labels[-3 if build == "static" else -4 :][0] in {"main", "__libc_start_call_main"}
    assert sum(label.startswith("deep") for label in labels) >= 6
    if way == "overflow":
        assert labels.count("endless") > 5000
    if way in {"null", "nowhere", "data"}:
        assert "entry" in told(shot), told(shot)


@pytest.mark.parametrize("name", ["glibc", "static"])
def test_a_core_of_gcore(name: str, gdb: Gdb, tmp_path: Path) -> None:
    gcore = debugger("gcore")
    program, *_ = subject(name, tmp_path)
    with running(program) as target:
        stopper = Stopper(target.pid, inline=False, interpreted=False)
        # Threads that are being made have no stack to speak of.
        for _ in range(100):
            if all(len(stack) > 2 for stack in pcs(stopper.shoot()).values()):
                break
            time.sleep(0.1)
        with stopped(target.pid):
            live = pcs(stopper.shoot())
            subprocess.run([gcore, "-o", tmp_path / "core", str(target.pid)], capture_output=True, check=True)
    core = tmp_path / f"core.{target.pid}"
    of_core = Stopper(core, inline=False, interpreted=False)
    shot = of_core.shoot()
    assert not shot.snapshot.troubles
    assert pcs(shot) == live
    judge = Judge(of_core)
    judge.compare(shot, gdb.of_core(core, program), "gdb")
    assert judge.counts["gdb: equal"] >= 0.8 * len(live), judge.counts


def test_programs_that_are_gone_or_others(gdb: Gdb, programs: Callable[[str], Path], tmp_path: Path) -> None:
    program = tmp_path / "crash"
    program.write_bytes(programs("dynamic").read_bytes())
    program.chmod(0o755)
    core = crashed(tmp_path, program, "abort")
    right = pcs(Stopper(core, inline=False, interpreted=False).shoot())
    assert right == gdb.of_core(core, program)
    # Another program of that name, which was not there when the core was written.
    program.unlink()
    program.write_bytes(programs("no-pie").read_bytes())
    wrong = Stopper(core, inline=False, interpreted=False).shoot()
    assert any("was recorded" in one for one in wrong.snapshot.troubles)
    program.unlink()
    gone = Stopper(core, inline=False, interpreted=False).shoot()
    assert any(f"{program}: No such file" in one for one in gone.snapshot.troubles)
    for shot in (wrong, gone):
        # The C library is there: what is above the program's frames is right, and nothing has a wrong name.
        for thread, (tid, found) in enumerate(pcs(shot).items()):
            assert "main" not in shot.labels(thread)
            assert found[:3] == right[tid][:3] or found == right[tid][: len(found)]
