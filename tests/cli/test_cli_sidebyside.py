"""Many files in several processes: what is printed, and what happens when one of the processes does not live."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.commands import WALKBACK, on_a_terminal, run
from sframefiles import linked, small, written

pytestmark = pytest.mark.whole

LARGE = b"\0" * (1 << 20)
"""Behind a file, so that it is worth more processes than one."""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Libraries, and others that are none."""
    good = bytes(linked(small().bytes()).build())
    contents = [good + LARGE, b"text\n", good, b"", good[:100], good, b"\x7fELF" + bytes(60), *[good] * 5]
    made = [written(tmp_path, content, f"file{number}") for number, content in enumerate(contents)]
    return [*made[:3], tmp_path / "missing", *made[3:]]


@pytest.mark.parametrize(
    "verb",
    [
        *(("show",), ("show", "--json"), ("show", "--color", "always"), ("show", "--format", "gnu"), ("check",)),
        *(("check", "--json"), ("size",), ("size", "--json"), ("verify",), ("verify", "--json")),
        *(("verify", "--frame-pointers"), ("compare", "--each"), ("show", "--source", "cfi")),
    ],
    ids=" ".join,
)
def test_several_processes_print_what_one_does(verb: tuple[str, ...], files: list[Path]) -> None:
    one, many = (run(*verb, "--jobs", jobs, *files) for jobs in ("1", "3"))
    assert (many.stdout, many.stderr, many.returncode) == (one.stdout, one.stderr, one.returncode)
    assert one.stderr.count(b"missing") == 1


def test_colours_are_those_of_the_terminal(files: list[Path]) -> None:
    one, many = (on_a_terminal("show", "--jobs", jobs, *files) for jobs in ("1", "3"))
    assert many == one
    assert b"\x1b[" in one


def test_many_files_behind_a_slow_one_have_their_turn(files: list[Path]) -> None:
    good = [files[2]] * 400
    one, many = (run("check", "--jobs", jobs, files[0], *good) for jobs in ("1", "2"))
    assert (many.stdout, many.stderr, many.returncode) == (one.stdout, one.stderr, one.returncode)


def test_usage_is_refused_once(files: list[Path]) -> None:
    done = run("compare", "--each", "--jobs", "2", "--section", ".text", *files)
    assert (done.returncode, done.stdout) == (run("compare", "--each", "--section", ".text", files[0]).returncode, b"")


WORK = """
import os, sys, time, click
from walkback.cli.output import for_each_result

here = os.getpid()


def work(file):
    click.echo(f"begin {file}")
    if os.getpid() != here:
        WHAT
    click.echo(f"end {file}")
    return file


def then(file):
    click.echo(f"then {file}")
    return 0


sys.exit(for_each_result(sys.argv[1:], work, then, 2))
"""


def started(what: str, files: list[Path], stderr: int | None = None) -> subprocess.Popen[bytes]:
    """A process that does some work on files, and in the processes that it forks something else, too."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    script = WORK.replace("WHAT", what)
    return subprocess.Popen(
        [sys.executable, "-c", script, *files],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    "what",
    [
        "os.kill(os.getpid(), 9)",
        'click.echo("x" * 100_000); os._exit(0)',
        "raise click.UsageError('no')",
        "raise OSError(28, 'no space left')",
        "sys.exit(7)",
        "os.kill(os.getpid(), 9) if file.endswith('2') else None",
    ],
)
def test_what_one_of_them_cannot_do_is_done_without_it(what: str, files: list[Path]) -> None:
    done, _ = started(what, files).communicate(timeout=60)
    expected = [f"{word} {file}" for file in files for word in ("begin", "end", "then")]
    assert done.decode().splitlines() == expected


def processes_of(session: int) -> list[int]:
    """Those of a session that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, its, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(its) == session and state != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_none_is_left_when_the_command_ends(number: int, files: list[Path]) -> None:
    # A process that waits for orders ends without the command; one at work ends when that is done.
    process = started("time.sleep(3)", files, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while len(processes_of(process.pid)) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=60)
    until = time.monotonic() + 30
    while processes_of(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_of(process.pid) == []


def test_a_reader_that_has_seen_enough_ends_it(files: list[Path]) -> None:
    command = f"{WALKBACK} show --json --jobs 2 {' '.join(map(str, files * 50))} | head -c 100 | wc -c"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True, timeout=60)
    assert done.stdout.strip() == b"100"
