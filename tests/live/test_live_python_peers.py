"""Stacks of Python as pystack, py-spy and Python 3.15 itself see them, of stopped programs and of their cores."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from live.crashes import allow, core_in
from live.pythons import HERE, VERSIONS, program, python, version_of
from live.subjects import states, stopped
from live.test_live_python import WAYS, places, said, sleeps
from waiting import eventually
from walkback.capture.stacks import Stopper

STOPS = int(os.environ.get("WALKBACK_STOPS", "0")) or 3
Frames = list[tuple[str, str, int]]

pytestmark = pytest.mark.peers


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip(f"needs {name}")
    return found


def output(*command: str | Path, **options: Any) -> str:
    done = subprocess.run(command, capture_output=True, check=False, **options)
    if done.returncode:
        reason = (done.stderr.decode().strip() or done.stdout.decode().strip()).splitlines()[0]
        pytest.skip(f"{Path(command[0]).name} cannot: {reason}")
    return str(done.stdout.decode())


def of_pystack(*arguments: str | Path) -> dict[int, Frames]:
    """Innermost first, by the numbers of threads."""
    found: dict[int, Frames] = {}
    for line in output(tool("pystack"), *arguments).splitlines():
        if thread := re.match(r"Traceback for thread (\d+)", line):
            frames = found.setdefault(int(thread[1]), [])
        elif frame := re.fullmatch(r' +\(Python\) File "(.*)", line (\d+), in (.*)', line):
            frames.insert(0, (frame[3], frame[1], int(frame[2])))
    return found


def of_py_spy(pid: int) -> dict[int, Frames]:
    told = json.loads(output(tool("py-spy"), "dump", "--json", "--nonblocking", "--pid", str(pid)))
    return {
        one["os_thread_id"]: [(frame["name"], frame["filename"], frame["line"]) for frame in one["frames"]]
        for one in told
    }


def of_profiling(name: str, pid: int) -> dict[int, Frames]:
    """What the standard library of that Python has: only of its own version."""
    command, variables = python(name)
    dump = (*command, "-m", "profiling.sampling", "dump", "--all-threads", str(pid))
    found: dict[int, Frames] = {}
    # It shows the paths of files that are below the folder it is started in as they are from there.
    for line in output(*dump, env=variables, cwd="/proc").splitlines():
        if thread := re.match(r"Stack dump.*, thread (\d+)", line):
            frames = found.setdefault(int(thread[1]), [])
        elif frame := re.fullmatch(r'  File "(.*)", line (\d+), in (.*)', line):
            frames.insert(0, (frame[3], frame[1], int(frame[2])))
    return found


def plain(frames: Frames) -> Frames:
    """Without what a qualified name begins with."""
    return [(name.rpartition(".")[2], file, line) for name, file, line in frames]


def are_equal(theirs: Frames, ours: Frames) -> bool:
    """pystack says line 0 before the first instruction; walkback says where the function begins.

    At instructions without a line profiling.sampling says any, so the program has none: it makes no closures.
    """
    lines = [line or mine for (_, _, line), (_, _, mine) in zip(theirs, ours, strict=False)]
    return [(*one[:2], line) for one, line in zip(theirs, lines, strict=False)] == ours


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("who", ["pystack", "py-spy", "profiling.sampling"])
def test_the_same_functions_as_others_see(who: str, name: str) -> None:
    python(name)
    if who != "profiling.sampling":
        tool(who)
    elif version_of(name) < (3, 15):
        pytest.skip("needs Python 3.15")
    with program(name, HERE / "busy.py") as target:
        assert target.stdout.readline() == b"ready\n"
        stopper = Stopper(target.pid)
        equal = different = 0
        for _ in range(STOPS):
            time.sleep(random.uniform(0, 0.02))
            with stopped(target.pid):
                ours = {tid: plain(frames) for tid, frames in places(stopper.shoot()).items()}
                assert eventually(lambda: set(states(target.pid)) <= set("TZ"))
                pid = str(target.pid)
                if who == "pystack":
                    theirs = of_pystack("remote", "--no-block", pid)
                else:
                    theirs = of_py_spy(target.pid) if who == "py-spy" else of_profiling(name, target.pid)
            for tid, frames in theirs.items():
                if are_equal(plain(frames), ours[tid]):
                    equal += 1
                else:
                    different += 1
                    print(tid, plain(frames), ours[tid], sep="\n")
        print(name, who, equal, different)
        assert not different
        assert equal >= 5 * STOPS


@pytest.mark.parametrize("name", VERSIONS)
def test_the_same_functions_in_a_core(name: str, tmp_path: Path) -> None:
    tool("pystack")
    with program(name, HERE / "frames.py", cwd=tmp_path, preexec_fn=allow) as target:
        said(target.stdout, WAYS + 1)
        assert eventually(lambda: sleeps(target.pid))
        executable = Path(f"/proc/{target.pid}/exe").resolve()
        target.send_signal(signal.SIGABRT)
        target.wait()
    core = core_in(tmp_path)
    theirs = of_pystack("core", core, executable)
    ours = places(Stopper(core).shoot())
    for tid, frames in theirs.items():
        # pystack leaves functions out whose name or file is not ASCII; walkback cuts names that are long.
        mine = [(one, line) for one, file, line in plain(ours[tid]) if (one + file).isascii()]
        assert [(one, line) for one, _, line in plain(frames)] == mine
    assert len(theirs) == WAYS + 1
