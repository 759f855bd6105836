"""The tasks of asyncio: as the program itself knows them, and as `python -m asyncio` of its Python sees them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from live.crashes import allow, core_in
from live.pythons import HERE, program, python, version_of
from live.test_live_python import sleeps
from waiting import eventually
from walkback.capture.stacks import Stopper
from walkback.cli.tasks import Trees
from walkback.runtimes.tasks import AsyncioTask, TaskState
from walkback.stacks.stacks import End

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

NAMES = ("3.14", "3.15", "free-threaded")
WAYS = ("gathered", "grouped", "nested", "circular", "generators", "at_work", "not_begun", "eager")
LOOKS = 60
Told = dict[tuple[str, int | None], tuple[list[tuple[str, str, int]], list[str]]]


def said(out: IO[bytes] | None, count: int = 1) -> Told:
    """What the program says of its tasks, by name and thread: their frames, and what awaits them."""
    assert out is not None
    found: Told = {}
    for one in (one for _ in range(count) for one in json.loads(out.readline())):
        frames = [(name, file, line) for name, file, line in one["frames"]]
        found[one["name"], one["thread"]] = (frames, one["awaited_by"])
    return found


def seen(tasks: Sequence[AsyncioTask]) -> Told:
    names = {task.address: task.name for task in tasks}
    return {
        (task.name, task.thread): (
            [(frame.symbol, frame.file or "", frame.line) for frame in task.frames],
            sorted(names[one] for one in task.awaited_by),
        )
        for task in tasks
    }


def needs_tasks(name: str) -> None:
    """What is installed as free-threaded can be older."""
    if version_of(name) < (3, 14):
        pytest.skip("tasks can be read from Python 3.14 on")


def program_of_tasks(name: str, way: str, **options: Any) -> Any:
    """A program of `tasks.py`, of a Python that has tasks to be read."""
    needs_tasks(name)
    return program(name, "-W", "ignore", HERE / "tasks.py", way, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_the_tasks_that_the_program_knows_itself(name: str, way: str) -> None:
    with program_of_tasks(name, way) as target:
        told = said(target.stdout)
        assert eventually(lambda: sleeps(target.pid))
        stopper = Stopper(target.pid, tasks=True)
        for _ in range(2):
            snapshot = stopper.take()
            assert not [*snapshot.troubles, *stopper.interpreted.troubles]
            assert seen(snapshot.tasks) == told
            assert {task.end for task in snapshot.tasks} == {End.COMPLETE}
            assert len(snapshot.tasks) == len(told) > 1
        states = {task.name: task.state for task in snapshot.tasks}
        running = {name for name, state in states.items() if state is TaskState.RUNNING}
        assert running == {"at_work": {"works"}, "not_begun": {"Task-1"}}.get(way, set())
        assert (states.get("new") is TaskState.NEW) == (way == "not_begun")
        # With the stacks come the same.
        shot = stopper.shoot()
        assert seen(shot.snapshot.tasks) == told


@pytest.mark.parametrize("name", NAMES)
def test_tasks_of_several_threads_and_of_one_that_has_ended(name: str) -> None:
    with program_of_tasks(name, "threads") as target:
        told = said(target.stdout, 3)
        assert eventually(lambda: sleeps(target.pid))
        assert seen(Stopper(target.pid, tasks=True).take().tasks) == told
        assert len({thread for _, thread in told}) == 3


@pytest.mark.parametrize("way", ["grouped", "at_work", "generators"])
@pytest.mark.parametrize("name", NAMES)
def test_a_core_has_the_same_tasks(name: str, way: str, tmp_path: Path) -> None:
    with program_of_tasks(name, way, cwd=tmp_path, preexec_fn=allow) as target:
        told = said(target.stdout)
        assert eventually(lambda: sleeps(target.pid))
        target.send_signal(signal.SIGABRT)
        target.wait()
    assert seen(Stopper(core_in(tmp_path), tasks=True).take().tasks) == told


@pytest.mark.parametrize("name", NAMES)
def test_tasks_that_begin_and_end_all_the_time(name: str) -> None:
    known = {"changing.<locals>.forever", "changing.<locals>.short", "sleep", "__sleep0"}
    count = 0
    with program_of_tasks(name, "changing") as target:
        said(target.stdout)
        stopper = Stopper(target.pid, tasks=True)
        for _ in range(LOOKS):
            tasks = stopper.take().tasks
            addresses = {task.address for task in tasks}
            assert len(addresses) == len(tasks)
            assert all(addresses >= set(task.awaited_by) for task in tasks)
            suspended = (task for task in tasks if task.state is TaskState.WAITING and task.end is End.COMPLETE)
            assert {frame.symbol for task in suspended for frame in task.frames} <= known
            count += len(tasks)
    assert count > LOOKS


class Peer(NamedTuple):
    """What `python -m asyncio ps` shows of a task."""

    thread: int
    name: str
    line: str
    awaited_by: set[str]


def of_peer(name: str, pid: int) -> dict[str, Peer]:
    """All tasks, by their addresses; one that several await has a line for each."""
    found: dict[str, Peer] = {}
    for line in told_by(name, "ps", pid).splitlines()[2:]:
        parsed = re.match(r"(\d+) +(0x[0-9a-f]+) +(.*?) {2,}", line)
        assert parsed is not None, line
        thread, address, its = parsed.groups()
        one = found.setdefault(address, Peer(int(thread), its, line, set()))
        one.awaited_by.update({line.split()[-1]} - {"0x0"})
    return found


def told_by(name: str, what: str, pid: int) -> str:
    command, variables = python(name)
    asked = [*command, "-m", "asyncio", what, str(pid)]
    done = subprocess.run(asked, env=variables, capture_output=True, text=True, check=False)
    if done.returncode or "Error" in done.stdout:
        pytest.skip(f"asyncio {what} cannot: {done.stdout}{done.stderr}")
    return done.stdout


@pytest.mark.peers
@pytest.mark.parametrize("way", ["gathered", "nested", "circular", "generators", "eager"])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_tasks_as_python_sees_itself(name: str, way: str) -> None:
    with program_of_tasks(name, way) as target:
        said(target.stdout)
        assert eventually(lambda: sleeps(target.pid))
        theirs = of_peer(name, target.pid)
        ours = Stopper(target.pid, tasks=True).take().tasks
        assert {hex(task.address) for task in ours} == theirs.keys()
        for task in ours:
            its = theirs[hex(task.address)]
            assert (task.thread, task.name) == (its.thread, its.name)
            assert {*map(hex, task.awaited_by)} == its.awaited_by
            # It does not follow objects that wrap a coroutine.
            stack = [frame.symbol for frame in task.frames]
            parts = [" -> ".join(stack[at:]) for at in range(len(stack))]
            assert any(f" {part} " in its.line for part in parts), (stack, its.line)


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_the_tree_has_the_tasks_of_pythons(name: str) -> None:
    with program_of_tasks(name, "gathered") as target:
        said(target.stdout)
        assert eventually(lambda: sleeps(target.pid))
        theirs = re.findall(r"\(T\) (\S+)", told_by(name, "pstree", target.pid))
        root, *others = Trees(Stopper(target.pid, tasks=True).take().tasks).lines()
        lines = [line for line in (root, *others) if line.strip() and "#" not in line]
        assert lines[0].startswith(theirs[0])
        names = [line.removeprefix("    awaits ").partition(" (")[0] for line in lines]
        assert sorted(names) == sorted(theirs)


@pytest.mark.parametrize("name", ["here", "system", "3.12", "3.13"])
def test_older_pythons_are_refused_in_a_line(name: str) -> None:
    with program(name, "-c", "import asyncio; print(flush=True); asyncio.run(asyncio.sleep(1000))") as target:
        assert target.stdout is not None
        target.stdout.readline()
        stopper = Stopper(target.pid, tasks=True)
        assert stopper.take().tasks == []
        (line,) = stopper.interpreted.troubles
        assert re.search(r"asyncio's tasks can be shown from Python 3\.14 on, and this is 3\.1[1-3]$", line)


@pytest.mark.parametrize("name", NAMES)
def test_a_python_without_asyncio_has_no_tasks(name: str) -> None:
    needs_tasks(name)
    with program(name, "-c", "print(flush=True); input()") as target:
        assert target.stdout is not None
        target.stdout.readline()
        stopper = Stopper(target.pid, tasks=True)
        assert stopper.take().tasks == []
        assert stopper.interpreted.troubles == []
