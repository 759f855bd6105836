"""`walkback record` on real programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.commands import WALKBACK, run, told
from recorder.programs import CALLS, SHARES, SLEEPS, built, needs_events, running
from waiting import eventually

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.whole


def folded(done: subprocess.CompletedProcess[bytes]) -> Counter[str]:
    """Weights of stacks, without kernel frames."""
    found: Counter[str] = Counter()
    for line in done.stdout.decode().splitlines():
        stack, _, weight = line.rpartition(" ")
        found[stack] += int(weight)
    return found


def weight_in(stacks: Counter[str], function: str) -> int:
    return sum(weight for stack, weight in stacks.items() if function in stack.split(";"))


@needs_events
def test_each_function_has_its_share(tmp_path: Path) -> None:
    program = built(tmp_path, SHARES)
    done = run("record", "-F", "4999", "--format", "folded", "--", program)
    assert done.returncode == 0, done.stderr
    stacks = folded(done)
    one, three, child = (weight_in(stacks, name) for name in ("one", "three", "child"))
    assert one > 100
    assert 2.2 < three / one < 4
    assert child > 100  # of a process that the command has started
    assert weight_in(stacks, "main") > 0.98 * sum(stacks.values())


@needs_events
def test_without_options_a_flame_graph_is_written(tmp_path: Path) -> None:
    done = run("record", "--", built(tmp_path, SHARES), cwd=tmp_path)
    assert done.returncode == 0
    assert re.fullmatch(rb"walkback: walkback\.html: \d+ samples\n", done.stderr)
    page = (tmp_path / "walkback.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "three" in page


@needs_events
def test_the_exit_status_is_the_command_s(tmp_path: Path) -> None:
    out = tmp_path / "out.folded"
    assert run("record", "-o", out, "--", "sh", "-c", "exit 7").returncode == 7
    assert run("record", "-o", out, "--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    assert told(run("record", "-o", out, "--", "there-is-none")) == (3, "there-is-none: No such file or directory")


@needs_events
@pytest.mark.parametrize("sampler", ["perf", "stops"])
def test_a_command_gets_what_this_process_was_started_with(sampler: str, tmp_path: Path) -> None:
    script = "ulimit -Sn; env | sort; pwd; ls /proc/self/fd; grep -i sig /proc/self/status; exit 5"
    found = []
    for number, command in enumerate((["sh"], [str(WALKBACK), "record", "--sampler", sampler, "--", "sh"])):
        out = tmp_path / f"out{number}"
        with out.open("w") as file:
            before = 'ulimit -Sn 64; unset _; exec "$@"'
            done = subprocess.run(
                ["sh", "-c", before, "", *command, "-c", script],
                check=False,
                stdout=file,
                stderr=subprocess.PIPE,
                cwd=tmp_path,
            )
        assert done.returncode == 5, done.stderr
        found.append([line for line in out.read_text().splitlines() if not line.startswith(("_=", "SigQ"))])
    assert found[0] == found[1]


@needs_events
def test_a_program_that_was_deleted_or_replaced_is_walked(tmp_path: Path) -> None:
    program = built(tmp_path, SHARES, "-DROUNDS=100000")
    for replaced in (False, True):
        kept = tmp_path / "kept"
        shutil.copy(program, kept)
        with subprocess.Popen([program]) as process:
            assert eventually(lambda pid=process.pid: Path(f"/proc/{pid}/exe").resolve() == program)
            program.unlink()
            if replaced:
                shutil.copy("/bin/true", program)
            done = run("record", "-p", str(process.pid), "-d", "2", "--format", "folded", "-o", "-")
            process.kill()
        stacks = folded(done)
        assert weight_in(stacks, "main") == weight_in(stacks, "_start") > 5
        shutil.move(kept, program)


@needs_events
def test_what_the_kernel_does_itself_is_sampled_without_its_frames(tmp_path: Path) -> None:
    program = built(tmp_path, SLEEPS)
    for event in ("off-cpu", "context-switches"):
        done = run("record", "-e", event, "--no-kernel", "--format", "folded", "--", program)
        assert done.returncode == 0, done.stderr
        stacks = folded(done)
        assert weight_in(stacks, "longs") > 0
        assert all(stack.endswith(("nap", "nanosleep")) for stack in stacks if "longs" in stack)


@needs_events
def test_a_process_is_recorded_for_a_while_and_runs_on(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        done = run(
            "record", "-p", str(process.pid), "-d", "1", "-F", "499", "--stack-bytes", "65528", "--format", "folded"
        )
        assert done.returncode == 0
        assert weight_in(folded(done), "spin") > 20
        assert process.poll() is None


@needs_events
def test_stacks_that_are_larger_are_copied_farther(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        done = run("record", "-p", str(process.pid), "-d", "4", "-F", "999", "--format", "json")
    ends = [json.loads(line)["end"] for line in done.stdout.splitlines()]
    assert ends[0] == "stack-cut"
    assert ends[-1] == "complete"
    command = ("timeout", "1", tmp_path / "program")
    short = run("record", "--stack-bytes", "16384", "-F", "199", "--format", "folded", "--", *command)
    assert b"--stack-bytes 65528 copies more of each stack" in short.stderr


@needs_events
def test_the_kernel_walks_by_frame_pointers_where_nothing_is_copied(tmp_path: Path) -> None:
    program = built(tmp_path, SHARES, "-fno-omit-frame-pointer")
    for more in ((), ("--no-kernel",)):
        done = run("record", "--stack-bytes", "0", "-F", "4999", *more, "--format", "folded", "--", program)
        assert (done.returncode, done.stderr.count(b"\n")) == (0, 1), done.stderr  # the line counts the stacks
        stacks = folded(done)
        assert weight_in(stacks, "main") > 0.9 * sum(stacks.values()) > 90


@needs_events
def test_the_time_that_threads_sleep(tmp_path: Path) -> None:
    program, begin = built(tmp_path, SLEEPS), time.monotonic()
    done = run("record", "--off-cpu", "--format", "folded", "--", program)
    whole = 1e9 * (time.monotonic() - begin)  # a busy machine may wake them later
    assert done.returncode == 0
    stacks = folded(done)
    longs, shorts = weight_in(stacks, "longs"), weight_in(stacks, "shorts")
    assert 0.8e9 <= longs <= whole
    assert 0.4e9 <= shorts <= whole
    assert weight_in(stacks, "main") > longs / 2  # it begins to wait a little later


@needs_events
def test_the_time_that_the_threads_of_the_machine_sleep(tmp_path: Path) -> None:
    program = built(tmp_path, SLEEPS)
    out = tmp_path / "out.json"
    command = [str(WALKBACK), "record", "--off-cpu", "-a", "--format", "json", "-o", str(out)]
    begin = time.monotonic()
    with subprocess.Popen(command, stderr=subprocess.PIPE) as recorder:
        assert recorder.stderr is not None
        recorder.stderr.readline()
        subprocess.run([program], check=True)
        recorder.send_signal(signal.SIGINT)
        _, said = recorder.communicate()
    whole = 1e9 * (time.monotonic() - begin)
    away: Counter[tuple[int, int]] = Counter()
    where: Counter[str] = Counter()
    for line in out.read_text().splitlines():
        sample = json.loads(line)
        names = {frame["symbol"] for frame in sample["frames"]}
        away[sample["pid"], sample["tid"]] += sample["period"]
        where["ended"] += "do_task_dead" in names
        if sample["comm"] == "program":
            where["longs"] += sample["period"] * ("longs" in names)
            where["shorts"] += sample["period"] * ("shorts" in names)
    # A busy machine loses some, and then the recorder says so.
    assert b"lost" in said or where["longs"] >= 0.8e9
    assert b"lost" in said or where["shorts"] >= 0.4e9
    assert where["longs"] <= whole
    assert where["shorts"] <= whole
    assert where["ended"] == 0
    assert 0.8e9 <= max(away.values()) <= whole


@needs_events
@pytest.mark.skipif(os.geteuid() != 0, reason="uprobes need root")
def test_each_call_of_a_function(tmp_path: Path) -> None:
    program = built(tmp_path, CALLS)
    for kind in ("uprobe", "uretprobe"):
        done = run("record", "-e", f"{kind}:{program}:called", "--format", "folded", "--", program)
        assert done.returncode == 0, done.stderr
        stacks = folded(done)
        assert weight_in(stacks, "main") == sum(stacks.values()) == 123
    none = told(run("record", "-e", f"uprobe:{program}:missing", "--", program))
    assert none[0] == 3
    assert "has no function 'missing'" in none[1]


@needs_events
@pytest.mark.skipif(os.geteuid() != 0, reason="uprobes need root")
def test_a_probed_program_can_start_threads_and_processes(tmp_path: Path) -> None:
    program = built(tmp_path, SLEEPS)
    done = run("record", "-e", f"uprobe:{program}:main", "-o", tmp_path / "a.html", "--", program)
    assert (done.returncode, b"begin later" in done.stderr) == (0, True)
    shell = ["sh", "-c", "true; ls / >/dev/null; ls / >/dev/null; echo children fine"]
    done = run("record", "-e", f"uprobe:{program}:main", "-o", tmp_path / "b.html", "--", *shell)
    assert done.stdout == b"children fine\n"


@needs_events
@pytest.mark.parametrize("event", ["page-faults", "context-switches"])
def test_events_of_the_kernel(event: str, tmp_path: Path) -> None:
    done = run("record", "-e", event, "--format", "json", "--", built(tmp_path, SLEEPS))
    events = {json.loads(line)["event"] for line in done.stdout.splitlines()}
    assert events == {event}


def test_what_no_machine_has_is_one_line() -> None:
    status, line = told(run("record", "-e", "nonsense", "--", "true"))
    assert status == 3
    assert "no event has the name 'nonsense'" in line


@needs_events
@pytest.mark.parametrize("perf", ["perf", "perf-new"])
def test_perf_reads_what_is_written_for_it(perf: str, tmp_path: Path) -> None:
    if shutil.which(perf) is None:
        pytest.skip(f"{perf} is not there")
    done = run("record", "-F", "4999", "-o", "perf.data", "--", built(tmp_path, SHARES), cwd=tmp_path)
    assert done.returncode == 0
    text = subprocess.run(
        [perf, "script", "-i", "perf.data", "-F", "comm,ip,sym"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    theirs = Counter(tuple(line.split()[-1] for line in one.splitlines()[1:]) for one in text.strip().split("\n\n"))
    ours = folded(run("unwind", "perf.data", "--no-inline", cwd=tmp_path))
    assert sum(theirs.values()) == sum(ours.values()) > 100
    for function in ("one", "three", "child", "main"):
        count = sum(weight for stack, weight in theirs.items() if function in stack)
        assert abs(count - weight_in(ours, function)) <= 0.01 * sum(ours.values())


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not there")
@needs_events
def test_what_perf_records_meanwhile_is_right(tmp_path: Path) -> None:
    program = built(tmp_path, SHARES)
    command = [str(WALKBACK), "record", "-a", "-o", str(tmp_path / "out.folded")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as recorder:
        assert recorder.stderr is not None
        assert b"Ctrl-C" in recorder.stderr.readline()
        perf = ["perf", "record", "-q", "-e", "cpu-clock", "--call-graph", "dwarf,8192", "-o", "perf.data"]
        recorded = subprocess.run([*perf, str(program)], cwd=tmp_path, check=False)
        recorder.send_signal(signal.SIGINT)
        recorder.communicate()
    assert recorded.returncode == 0
    done = run("unwind", "perf.data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert weight_in(folded(done), "three") > weight_in(folded(done), "one") > 0


@needs_events
def test_through_a_pipe_it_is_what_perf_writes_to_one(tmp_path: Path) -> None:
    program = built(tmp_path, SHARES)
    done = subprocess.run(
        ["sh", "-c", f"{WALKBACK} record -F 1999 --format perf -o - -- {program} | {WALKBACK} unwind -"],
        capture_output=True, check=True,
    )  # fmt: skip
    assert weight_in(folded(done), "three") > weight_in(folded(done), "one") > 0


@needs_events
def test_killed_at_any_moment_the_store_is_whole(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with running(tmp_path) as program:
        command = [str(WALKBACK), "record", "-p", str(program.pid), "--store", str(store), "--every", "1"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as recorder:
            assert eventually(lambda: len(list(store.glob("segment=*"))) >= 2)
            recorder.kill()
        assert program.poll() is None
    assert run("store", store, "check").returncode == 0
    top = run("store", store, "top")
    assert b"spin" in top.stdout


@needs_events
def test_a_store_and_a_file_get_the_same(tmp_path: Path) -> None:
    out, store = tmp_path / "out.folded", tmp_path / "store"
    done = run(
        "record",
        "-F",
        "4999",
        "-o",
        out,
        "--store",
        store,
        "--every",
        "1",
        "--",
        built(tmp_path, SHARES, "-DROUNDS=400"),
    )
    assert done.returncode == 0, done.stderr
    total = sum(int(line.rpartition(" ")[2]) for line in out.read_text().splitlines())
    stored = run("store", store, "flame", "--format", "folded").stdout.decode().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in stored) == total > 100
    appends = int(re.findall(rb"in (\d+) appends?\n", done.stderr)[0])
    assert len(list(store.glob("segment=*"))) == appends


@needs_events
def test_interrupted_it_writes_what_it_has(tmp_path: Path) -> None:
    out = tmp_path / "out.folded"
    with running(tmp_path) as program:
        command = [str(WALKBACK), "record", "-p", str(program.pid), "-o", str(out)]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as recorder:
            assert recorder.stderr is not None
            assert recorder.stderr.readline() == b"walkback: recording program; Ctrl-C ends it\n"
            recorder.send_signal(signal.SIGINT)
            assert recorder.wait() in {0, 1}  # 1 if there was no time for a sample
        assert program.poll() is None
    assert out.exists()


@needs_events
def test_who_ignores_that_the_terminal_is_closed_goes_on(tmp_path: Path) -> None:
    with running(tmp_path) as program:
        command = ["nohup", str(WALKBACK), "record", "-p", str(program.pid), "-o", str(tmp_path / "out.folded")]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as recorder:
            assert recorder.stderr is not None
            while b"Ctrl-C ends it" not in recorder.stderr.readline():
                pass
            status = Path(f"/proc/{recorder.pid}/status").read_text()
            assert int(re.findall(r"SigIgn:\s+(\w+)", status)[0], 16) & 1 << signal.SIGHUP - 1
            recorder.terminate()
            assert recorder.wait() in {0, 1}  # 1 if there was no time for a sample
