"""Python's functions in stacks of programs: the same as the programs themselves know."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.crashes import allow, core_in
from live.pythons import HERE, VERSIONS, program, python
from live.subjects import states, threads
from waiting import eventually
from walkback.capture.recorder.stops import Stops
from walkback.capture.stacks import Stopper, ThreadStacks
from walkback.stacks.stacks import End, How
from walkback.store.store import Store

if TYPE_CHECKING:
    from typing import IO

WAYS = 9
Place = tuple[str, str, int]
EVALUATOR = "_PyEval_EvalFrameDefault"


def said(out: IO[bytes] | None, count: int) -> dict[int, list[Place]]:
    """Where that many threads say that they are, innermost first."""
    assert out is not None
    lines = [json.loads(out.readline()) for _ in range(count)]
    return {line["tid"]: [tuple(frame) for frame in line["frames"]] for line in lines}


def places(shot: ThreadStacks) -> dict[int, list[Place]]:
    """The functions of Python of each thread, innermost first."""
    found: dict[int, list[Place]] = {}
    frames, first = shot.frames, shot.stacks.first.tolist()
    assert frames.file is not None
    assert frames.line is not None
    for thread, tid in enumerate(shot.snapshot.tids):
        numbers = range(first[thread], first[thread + 1])
        its = [int(shot.frame[i]) for i in numbers if shot.stacks.how[i] == How.PYTHON]
        found[tid] = [(str(frames.symbol[one]), str(frames.file[one]), int(frames.line[one])) for one in its]
    return found


def expected(frames: list[Place]) -> list[Place]:
    """Long names are cut."""
    return [(name, file if len(file) <= 1000 else f"{file[:1000]}...", line) for name, file, line in frames]


def sleeps(pid: int) -> bool:
    """Whether all threads are where they said."""
    return set(states(pid)) == {"S"}


@pytest.mark.parametrize("name", VERSIONS)
def test_the_functions_that_the_program_names_itself(name: str) -> None:
    with program(name, HERE / "frames.py") as target:
        told = said(target.stdout, WAYS + 1)
        assert eventually(lambda: sleeps(target.pid))
        stopper = Stopper(target.pid)
        shot = stopper.shoot()
        assert not stopper.interpreted.troubles
        found = places(shot)
        assert len(told) == WAYS + 1
        for tid, frames in told.items():
            assert found[tid] == expected(frames)
        assert set(shot.stacks.end.tolist()) == {End.COMPLETE}
        again = stopper.shoot()
        assert places(again) == found
        # Each function is shown once, and no evaluator beside it; without Python's functions all of them are there.
        native = Stopper(target.pid, inline=False, interpreted=False).shoot()
        both = Stopper(target.pid, inline=False, evaluators=True).shoot()
        assert {How.PYTHON} <= set(both.stacks.how.tolist())
        kept = both.stacks.how != How.PYTHON
        assert both.stacks.pc[kept].tolist() == native.stacks.pc.tolist()
        merged = Stopper(target.pid, inline=False).shoot()
        for thread in range(len(threads(target.pid))):
            assert EVALUATOR not in merged.labels(thread)


@pytest.mark.parametrize("name", VERSIONS)
def test_a_core_has_the_same(name: str, tmp_path: Path) -> None:
    with program(name, HERE / "frames.py", cwd=tmp_path, preexec_fn=allow) as target:
        told = said(target.stdout, WAYS + 1)
        assert eventually(lambda: sleeps(target.pid))
        target.send_signal(signal.SIGABRT)
        target.wait()
    found = places(Stopper(core_in(tmp_path)).shoot())
    for tid, frames in told.items():
        assert found[tid] == expected(frames)


REPLACED = """
import json, os, sys
exec(open(sys.argv[1]).read().partition("def wait")[0])
while line := sys.stdin.readline():
    name = line.strip()
    space = {"tell": tell, "os": os, "sys": sys}
    exec(compile(f"def {name}():\\n    tell() or sys.stdin.readline()", "made", "exec"), space)
    space.pop(name)()
    del space
"""


@pytest.mark.parametrize("name", VERSIONS)
def test_a_function_in_the_place_of_another_has_its_own_name(name: str) -> None:
    python(name)
    with program(name, "-c", REPLACED, HERE / "frames.py") as target:
        stopper = Stopper(target.pid)
        for number in range(200):
            target.stdin.write(f"f{number:03}\n".encode())
            target.stdin.flush()
            told = said(target.stdout, 1)
            assert eventually(lambda: sleeps(target.pid))
            assert places(stopper.shoot()) == told
            target.stdin.write(b"\n")
            target.stdin.flush()


INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
exec(open(sys.argv[1]).read().partition("class Method")[0])
INNER = '''
import sys
exec(open(NAME).read().partition("class Method")[0])
def inner():
    recursion(5)
inner()
'''
def outer():
    code = INNER.replace("NAME", repr(sys.argv[1]))
    run = getattr(interpreters, "exec", None) or interpreters.run_string
    tell() or run(interpreters.create(), code)
outer()
"""


@pytest.mark.parametrize("name", VERSIONS)
def test_an_interpreter_within_another(name: str) -> None:
    with program(name, "-c", INTERPRETERS, HERE / "frames.py") as target:
        told = [next(iter(said(target.stdout, 1).values())) for _ in range(2)]
        assert eventually(lambda: sleeps(target.pid))
        shot = Stopper(target.pid).shoot()
        outer, inner = told
        assert places(shot)[target.pid] == inner + outer
        # What runs the inner one stands between them.
        labels = shot.labels(shot.snapshot.tids.index(target.pid))
        assert labels.index("outer") - labels.index("<module>") > 1


@pytest.mark.parametrize("name", VERSIONS)
def test_more_functions_than_are_wanted_are_no_damage(name: str) -> None:
    code = "f = lambda n: f(n - 1) if n else (print(), input())\nf(50)"
    with program(name, "-c", code) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert eventually(lambda: sleeps(process.pid))
        ends = []
        for most in (40, 100):
            shot = Stopper(process.pid, max_stack=most).shoot()
            ends.append(End(int(shot.stacks.end[0])))
            assert len(places(shot)[process.pid]) == min(most, 52)
        assert ends == [End.LIMIT, End.COMPLETE]


FORKING = """
import os, sys
exec(open(sys.argv[1]).read().partition("class Method")[0])
def child():
    recursion(3)
if os.fork():
    os.wait()
child()
"""


@pytest.mark.parametrize("name", VERSIONS)
def test_a_child_that_was_forked(name: str) -> None:
    with program(name, "-c", FORKING, HERE / "frames.py") as target:
        told = said(target.stdout, 1)
        [child] = told
        assert child != target.pid
        assert eventually(lambda: sleeps(child))
        try:
            assert places(Stopper(child).shoot()) == told
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("name", ["here", "3.14"])
def test_a_process_in_a_container_has_other_numbers(name: str) -> None:
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs namespaces of process numbers")
    command, variables = python(name)
    whole = ["unshare", "--pid", "--fork", "--kill-child", *command, "-u", str(HERE / "frames.py")]
    target = subprocess.Popen(whole, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        told = said(target.stdout, WAYS + 1)
        [child] = map(int, Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split())
        assert child not in told
        assert eventually(lambda: sleeps(child))
        found = places(Stopper(child).shoot())
        assert sorted(found.values()) == sorted(expected(frames) for frames in told.values())
    finally:
        target.kill()
        target.wait()
        target.stdin.close()
        target.stdout.close()


@pytest.mark.parametrize("name", ["here", "3.14"])
def test_the_recorder_stops_threads_and_shows_the_same(name: str) -> None:
    with program(name, HERE / "frames.py") as target:
        told = said(target.stdout, WAYS + 1)
        assert eventually(lambda: sleeps(target.pid))
        stops = Stops(target.pid, frequency=99, waiting=True)
        seen = set()
        for batch in stops:
            labels, first = batch.frames.labels(), batch.first.tolist()
            for number, tid in enumerate(batch.tid.tolist()):
                part = slice(first[number], first[number + 1])
                its = [labels[one] for one in batch.frame[part][batch.how[part] == How.PYTHON].tolist()]
                assert its == [one for one, *_ in told[tid]]
                seen.add(tid)
            if len(seen) == WAYS + 1:
                break
        assert seen == told.keys()


def test_a_store_keeps_functions_by_file_and_name(tmp_path: Path) -> None:
    with program("here", HERE / "frames.py") as target:
        said(target.stdout, WAYS + 1)
        assert eventually(lambda: sleeps(target.pid))
        stopper = Stopper(target.pid)
        with Store(tmp_path / "stacks", create=True).append() as new:
            taken = new.captured(stopper)
            for _ in range(2):
                taken.add(stopper.shoot().batch())
    top = Store(tmp_path / "stacks").select().top()
    files = {one.name: (one.module, one.total) for one in top}
    assert files["recursion"] == (str(HERE / "frames.py"), 2)
    assert files["Method.deeper"] == (str(HERE / "frames.py"), 2)
    assert EVALUATOR not in files


DEEP = """
import sys, time
sys.setrecursionlimit(100000)
def down(n):
    if not n:
        print("ready", flush=True)
        time.sleep(1000)
    return down(n - 1)
down(30000)
"""


@pytest.mark.parametrize("name", VERSIONS)
def test_the_innermost_functions_of_a_deep_recursion_are_shown(name: str) -> None:
    with program(name, "-c", DEEP) as target:
        assert target.stdout.readline() == b"ready\n"
        assert eventually(lambda: sleeps(target.pid))
        shot = Stopper(target.pid, max_stack=500).shoot()
    stacks = shot.stacks
    functions = [one for one, how in zip(shot.labels(0), stacks.how.tolist(), strict=True) if how == How.PYTHON]
    assert functions == ["down"] * 500
    assert shot.labels(0)[-1] == "_start"
    assert End(int(stacks.end[0])) == End.LIMIT
