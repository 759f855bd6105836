"""A program that checks its own work does not notice that it is looked at, nor that who looks is killed."""

from __future__ import annotations

import os
import platform
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from live.subjects import HERE, running, states, threads
from waiting import PATIENCE, eventually

KILLS = int(os.environ.get("WALKBACK_KILLS", "0")) or 6
SAMPLES = int(os.environ.get("WALKBACK_SAMPLES", "0")) or 800
WALKBACK = (sys.executable, "-m", "walkback", "stack")


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("sums") / "sums"
    try:
        subprocess.run(["gcc", "-O2", "-pthread", "-o", program, HERE / "sums.c"], check=True)
    except FileNotFoundError:
        pytest.skip("needs gcc")
    return program


def end(target: subprocess.Popen[bytes]) -> None:
    """Let it end, and see what it says of its work."""
    os.write(target.stdin.fileno(), b"\n")
    target.stdin.close()
    told = [int(word) for word in target.stdout.readline().split()]
    wrong, rounds = dict(zip(("adding", "signals", "pipe", "waiting", "main"), told, strict=False)), told[5:]
    assert not any(wrong.values()), wrong
    assert len(rounds) == 4
    assert min(rounds) > 10
    assert target.wait(20) == 0


@pytest.mark.whole
def test_thousands_of_samples_disturb_nothing(sums: Path) -> None:
    with running(sums, stdin=subprocess.PIPE) as target:
        command = [*WALKBACK, str(target.pid), "--repeat", str(SAMPLES), "--interval", "0", "--format", "folded"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        assert sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()) == 5 * SAMPLES
        print(done.stderr)
        end(target)


@pytest.mark.whole
def test_being_killed_at_any_moment_disturbs_nothing(sums: Path) -> None:
    with running(sums, stdin=subprocess.PIPE) as target:
        command = [*WALKBACK, str(target.pid), "--repeat", "1000000", "--interval", "0", "--format", "json"]
        traced = 0
        for _ in range(KILLS):
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as walkback:
                # From the first picture on it is stopping threads most of the time.
                assert walkback.stdout.readline()
                time.sleep(random.uniform(0, 0.03))
                traced += "t" in states(target.pid)
                walkback.kill()
                walkback.wait()
            assert eventually(lambda: not set(states(target.pid)) & set("tT"))
            assert all(_tracer(target.pid, tid) == 0 for tid in threads(target.pid))
        print(f"killed {KILLS} times, {traced} times while a thread was seen to be stopped")
        end(target)


@pytest.mark.whole
def test_no_signal_is_lost_when_walkback_is_killed_while_it_holds_one(sums: Path) -> None:
    script = """
        import sys, time
        from walkback.base.arch import AMD64
        from walkback.capture.live.ptrace import Tracer
        def wait():
            print("ready", flush=True)
            time.sleep(60)
        Tracer(AMD64, 0).take(int(sys.argv[1]), lambda sp: None, wait)
    """
    if platform.machine() != "x86_64":
        pytest.skip("the script is for AMD64")
    with running(sums, stdin=subprocess.PIPE) as target:
        # The second one that it has made sends itself signals, and most stops are for one that is on its way.
        tid = threads(target.pid)[2]
        for _ in range(10):
            with running(sys.executable, "-c", textwrap.dedent(script), str(tid)):
                assert _tracer(target.pid, tid)
            assert eventually(lambda: not _tracer(target.pid, tid))
        end(target)


def _tracer(pid: int, tid: int) -> int:
    lines = Path(f"/proc/{pid}/task/{tid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("TracerPid:"))
