"""`walkback stack --asyncio`: the tasks as text and as JSON, what is refused, and trees of any shape."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli.walked import complaints, paragraphs, stack
from live.pythons import program
from live.test_live_python import sleeps
from live.test_live_tasks import NAMES, needs_tasks, program_of_tasks, said, seen
from waiting import eventually
from walkback.capture.stacks import Stopper
from walkback.cli.tasks import Trees
from walkback.runtimes.chains import RuntimeFrame
from walkback.runtimes.tasks import AsyncioTask, TaskState
from walkback.stacks.stacks import End

pytestmark = pytest.mark.usefixtures("own_cache")


def task(address: int, *awaited_by: int, name: str | None = None, state: TaskState = TaskState.WAITING) -> AsyncioTask:
    frames = (RuntimeFrame("work", "a.py", address),)
    return AsyncioTask(address, name or f"t{address}", 7, state, frames, awaited_by, End.COMPLETE, 0)


def heads(tasks: list[AsyncioTask]) -> list[str]:
    return [line for line in Trees(tasks).lines() if line and "#" not in line]


@pytest.mark.parametrize("name", NAMES)
def test_tasks_as_text(name: str) -> None:
    with program_of_tasks(name, "at_work") as target:
        said(target.stdout)
        assert eventually(lambda: sleeps(target.pid))
        (first,), waits, main = sorted(paragraphs(stack("--asyncio", target.pid)), key=lambda part: (len(part), part))
    assert first.startswith(f"process {target.pid} ")
    assert waits[0] == f"waits (thread {target.pid})"
    assert waits[1].startswith("    #0   sleep at ")
    assert main[0] == f"Task-1 (thread {target.pid})"
    assert main[1].startswith("    #0   at_work at ")
    assert main[2] == f"    awaits works (thread {target.pid}, running)"
    words = [line.split()[:2] for line in main[3:]]
    works = "at_work.<locals>.works"
    assert words == [["#0", "at_work.<locals>.blocks"], *([f"#{number}", works] for number in range(1, 5))]


@pytest.mark.parametrize("name", NAMES)
def test_tasks_as_json(name: str, tmp_path: Path) -> None:
    with program_of_tasks(name, "nested") as target:
        said(target.stdout)
        assert eventually(lambda: sleeps(target.pid))
        done = stack("--asyncio", "--json", "-o", tmp_path / "out", target.pid)
        ours = Stopper(target.pid, tasks=True).take().tasks
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    objects = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    tasks = [
        AsyncioTask(
            address=one.pop("task"),
            name=one.pop("name"),
            thread=one.pop("tid"),
            state=TaskState(one.pop("state")),
            frames=tuple(RuntimeFrame(**frame) for frame in one.pop("frames")),
            awaited_by=tuple(one.pop("awaited_by")),
            end=End[one.pop("end").upper()],
            at=0,
        )
        for one in objects
    ]
    assert seen(tasks) == seen(ours)
    assert [task.address for task in tasks] == [task.address for task in ours]
    assert [one == {"pid": target.pid} for one in objects] == [True] * len(ours)


@pytest.mark.parametrize("name", NAMES)
def test_without_tasks_there_is_a_word(name: str) -> None:
    needs_tasks(name)
    with program(name, "-c", "print(flush=True); input()") as target:
        assert target.stdout is not None
        target.stdout.readline()
        done = stack("--asyncio", target.pid)
    assert done.stdout.decode().splitlines()[1:] == ["", "no tasks of asyncio"]
    assert (done.returncode, complaints(done)) == (0, [])


def test_what_is_no_python_has_a_line() -> None:
    with subprocess.Popen(["sleep", "1000"]) as target:
        eventually(lambda: Path(f"/proc/{target.pid}/comm").read_text() == "sleep\n")
        done = stack("--asyncio", target.pid)
        target.kill()
    (line,) = complaints(done)
    assert line.endswith("asyncio's tasks are those of Python, which this process does not run")
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python's tasks can be read")
def test_tasks_that_cannot_be_read_are_not_called_none() -> None:
    with program("here", "-c", "import asyncio; print(flush=True); asyncio.run(asyncio.sleep(1000))") as target:
        assert target.stdout is not None
        target.stdout.readline()
        done = stack("--asyncio", target.pid)
    (line,) = complaints(done)
    assert "asyncio's tasks can be shown from Python 3.14 on, and this is 3." in line
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.parametrize(
    "options",
    [
        ["--registers"],
        ["--no-interpreted"],
        ["--evaluators"],
        ["--repeat", "2"],
        ["--format", "folded"],
        ["--format", "html"],
        ["--store", "stacks"],
    ],
)
def test_what_says_nothing_of_tasks_is_refused(options: list[str]) -> None:
    done = stack("--asyncio", *options, "1")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Error: --asyncio and " in done.stderr


def test_a_task_that_several_await_is_shown_once() -> None:
    assert heads([task(1), task(2), task(3, 1, 2), task(4, 3)]) == [
        "t1 (thread 7)",
        "    awaits t3 (thread 7)",
        "        awaits t4 (thread 7)",
        "t2 (thread 7)",
        "    awaits t3 (thread 7): shown above",
    ]


def test_a_circle_is_shown_once() -> None:
    assert heads([task(1, 3), task(2, 1), task(3, 2), task(4, 4)]) == [
        "t1 (thread 7)",
        "    awaits t2 (thread 7)",
        "        awaits t3 (thread 7)",
        "            awaits t1 (thread 7): a circle, as it is itself awaited from here",
        "t4 (thread 7)",
        "    awaits t4 (thread 7): a circle, as it is itself awaited from here",
    ]


def test_long_chains_and_circles_end() -> None:
    count = 5000
    chain = [task(number, *([number - 1] if number > 1 else [])) for number in range(1, count + 1)]
    circle = [task(count + number, count + (number % count) + 1) for number in range(1, count + 1)]
    lines = heads([*chain, *circle])
    assert max(map(len, lines)) < 250
    assert sum(": " not in line for line in lines) == 2 * count
    # What stands too far inside has a tree of its own.
    assert "shown below" in lines[31]
    assert lines[32] == "t32 (thread 7)"


def test_names_and_states_are_shown_in_one_line() -> None:
    odd = task(1, name="a\nb\x1b[0m", state=TaskState.NEW)
    ended = AsyncioTask(2, "", None, TaskState.ENDED, (RuntimeFrame("f", None, 0),), (), End.TORN, 0x10)
    lines = list(Trees([odd, ended]).lines())
    assert lines[1].endswith("(thread 7, not begun)")
    assert lines[4:] == [" (no thread, ended)", "    #0   f", "         torn at 0x10"]
