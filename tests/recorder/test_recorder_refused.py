"""Where the kernel refuses events, threads are stopped for a moment; where it refuses that too, there is one line."""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.commands import WALKBACK
from effort import rounds
from recorder.programs import MANY, SHARES, SLEEPS, built
from recorder.test_recorder_command import folded, weight_in
from waiting import eventually
from walkback.base.arch import Machine, machine_of
from walkback.capture.live.ptrace import Tracer
from walkback.capture.recorder.command import Command

NUMBERS = {"x86_64": (298, 101), "aarch64": (241, 117), "s390x": (331, 26)}
"""Of perf_event_open and ptrace."""
READV = {"x86_64": 310, "aarch64": 270, "s390x": 340}[platform.machine()]
"""Of process_vm_readv."""
NOBODY = 65534


def record(folder: Path, refused: tuple[int, ...], *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """`walkback record` without these system calls; as an ordinary user, if this is root."""
    program = folder / "refused"
    subprocess.run(["gcc", "-O1", Path(__file__).with_name("refused.c"), "-o", program], check=True)
    return subprocess.run(
        [program, *map(str, refused), "--", WALKBACK, "record", *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
    )


@pytest.fixture(scope="module")
def calls() -> tuple[int, int]:
    return NUMBERS[platform.machine()]


def test_stops_give_a_flame_graph(tmp_path: Path, calls: tuple[int, int]) -> None:
    done = record(tmp_path, calls[:1], "--", built(tmp_path, SHARES))
    assert done.returncode == 0, done.stderr
    assert re.match(rb"walkback: .*perf_event_open.*; sampling by short stops instead\n", done.stderr)
    assert "three" in (tmp_path / "walkback.html").read_text()


@pytest.mark.whole
def test_stops_find_the_shares_and_what_the_command_starts(tmp_path: Path, calls: tuple[int, int]) -> None:
    done = record(tmp_path, calls[:1], "-F", "499", "--format", "folded", "--", built(tmp_path, SHARES, "-DROUNDS=600"))
    stacks = folded(done)
    one, three = weight_in(stacks, "one"), weight_in(stacks, "three")
    # A busy machine stops threads less often than asked for; then the share is less exact.
    samples = one + three
    assert one > 0
    assert abs(one - samples / 4) < 5 * math.sqrt(samples * 3 / 16)
    assert weight_in(stacks, "child") > 0


def test_stops_see_where_threads_wait(tmp_path: Path, calls: tuple[int, int]) -> None:
    program, begin = built(tmp_path, SLEEPS), time.monotonic()
    stacks = folded(record(tmp_path, calls[:1], "--off-cpu", "--format", "folded", "--", program))
    assert 0.3e9 < weight_in(stacks, "longs") <= 1e9 * (time.monotonic() - begin)


@pytest.mark.whole
def test_stops_take_the_place_of_more_events_than_files_may_be_open(tmp_path: Path) -> None:
    with subprocess.Popen(["nice", "-n", "19", built(tmp_path, MANY)]) as process:
        eventually(lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 200)
        command: list[str | Path] = [WALKBACK, "record", "-p", str(process.pid), "-d", "2", "-o", tmp_path / "a.folded"]
        limited = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *command]
        done = subprocess.run(limited, capture_output=True, check=False)
        process.kill()
    assert done.returncode == 0, done.stderr
    assert b"ulimit -n allows more; sampling by short stops instead\n" in done.stderr
    assert b"work" in (tmp_path / "a.folded").read_bytes()


@pytest.mark.whole
def test_what_only_events_can_give_is_refused_in_one_line(tmp_path: Path, calls: tuple[int, int]) -> None:
    by_event = (["-e", event, "--", "true"] for event in ("page-faults", "context-switches"))
    for arguments in (["-a", "-d", "1"], ["--sampler", "perf", "--", "true"], *by_event):
        done = record(tmp_path, calls[:1], *arguments)
        assert done.returncode == 3
        assert re.fullmatch(rb"walkback: .*perf_event.*\n", done.stderr), done.stderr


@pytest.mark.whole
def test_many_threads_that_want_a_processor_are_no_reason_to_go_on_for_long(tmp_path: Path) -> None:
    with subprocess.Popen(["nice", "-n", "19", built(tmp_path, MANY)]) as process:
        assert eventually(lambda: len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 201)
        arguments = ("-p", str(process.pid), "-d", "1", "--sampler", "stops", "--format", "folded")
        done = subprocess.run([WALKBACK, "record", *arguments], capture_output=True, check=False)
        process.kill()
    assert done.returncode == 0, done.stderr
    assert weight_in(folded(done), "work") > 0


@pytest.mark.whole
def test_after_many_processes_at_once_those_that_follow_are_seen_soon(tmp_path: Path) -> None:
    """And the end of the recording comes soon after that of its command."""
    fork = (
        "import os\nfor _ in range(300):\n if not os.fork():\n  sum(range(10**5)); os._exit(0)\nwhile True: os.wait()"
    )
    (tmp_path / "many.py").write_text(fork)
    work = built(tmp_path, "#include <time.h>\nint main(void) { while (clock() < 2 * CLOCKS_PER_SEC); }")
    (tmp_path / "all.sh").write_text(f"{sys.executable} many.py 2> none; {work}; date +%s.%N > ended")
    options = ("--sampler", "stops", "-o", "out.folded")
    done = subprocess.run([WALKBACK, "record", *options, "--", "sh", "all.sh"], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert time.time() - float((tmp_path / "ended").read_text()) < 5
    lines = [line for line in (tmp_path / "out.folded").read_text().splitlines() if "main" in line]
    assert sum(int(line.rpartition(" ")[2]) for line in lines) > 5


def test_threads_that_sleep_have_their_time_also_if_not_all_are_looked_at_each_time(tmp_path: Path) -> None:
    with subprocess.Popen([built(tmp_path, MANY, "-DWAITS")]) as process:
        assert eventually(lambda: len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 201)
        arguments = ("-p", str(process.pid), "-d", "1", "--sampler", "stops", "--off-cpu", "--format", "folded")
        done = subprocess.run([WALKBACK, "record", *arguments], capture_output=True, check=False)
        process.kill()
    # How many are looked at, and whether the first thread is among them, depends on the machine.
    stacks = folded(done)
    work, first = weight_in(stacks, "work"), weight_in(stacks, "main")
    assert work > first
    assert work + first > 0.5e11


@pytest.mark.skipif(os.geteuid() != 0, reason="root can stop the processes of others")
def test_a_process_of_somebody_else_is_refused_in_a_line_and_nothing_is_written(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1000"], user=NOBODY) as other:
        done = subprocess.run(
            ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", WALKBACK, "record", "-p", str(other.pid)],
            capture_output=True,
            check=False,
            cwd=tmp_path,
        )
        other.kill()
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert b"perf_event_open is refused" in line
    assert b"it belongs to somebody else" in line
    assert b"somebody else" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.whole
def test_the_end_of_a_command_is_not_lost_while_it_is_stopped() -> None:
    machine: Machine = machine_of({"x86_64": "AMD64", "aarch64": "AArch64"}.get(platform.machine(), "s390x"))
    tracer = Tracer(machine, 1 << 16)
    statuses = set()
    for _ in range(rounds(500, 100)):
        command = Command(["false"])
        command.let_go()
        while tracer.take(command.pid, lambda _: None) is None:
            pass
        statuses.add(command.wait())
    assert statuses == {1}


@pytest.mark.whole
def test_memory_is_read_in_another_way_where_the_usual_one_is_refused(tmp_path: Path, calls: tuple[int, int]) -> None:
    program = built(tmp_path, SHARES, "-DROUNDS=600")
    done = record(tmp_path, (calls[0], READV), "-F", "499", "--format", "folded", "--", program)
    stacks = folded(done)
    assert weight_in(stacks, "three") > 0
    assert weight_in(stacks, "_start") > 0.9 * sum(stacks.values())


@pytest.mark.whole
def test_stops_that_do_not_come_in_time_are_said(tmp_path: Path) -> None:
    with subprocess.Popen(["nice", "-n", "19", built(tmp_path, MANY)]) as process:
        command = (WALKBACK, "record", "-p", str(process.pid), "-d", "1", "-F", "100000", "--sampler", "stops")
        done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
        process.kill()
    assert re.search(rb"threads were stopped \d+ times?, and should have been \d+ times", done.stderr)


def test_where_stops_are_refused_too_the_command_does_not_run(tmp_path: Path, calls: tuple[int, int]) -> None:
    done = record(tmp_path, calls, "--", "touch", tmp_path / "ran")
    assert done.returncode == 3
    (line,) = done.stderr.decode().splitlines()
    assert re.match("walkback: touch .*perf_event_open.*; short stops do not work, either: .*may not be stopped", line)
    assert not (tmp_path / "ran").exists()
