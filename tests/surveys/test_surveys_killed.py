"""Killed at any moment and begun again, a survey comes to what one run comes to."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from surveys.killed import children
from surveys.surveyed import command, consistent, elf, ended, tables, write
from waiting import PATIENCE, eventually
from walkback import UnreadableError
from walkback.surveys.folder import SurveyFolder
from walkback.surveys.reading import Survey
from walkback.surveys.run import survey

pytestmark = pytest.mark.whole

KILLS = int(os.environ.get("WALKBACK_KILLS", "6"))
TESTS = Path(__file__).resolve().parents[1]


def started(name: str, *args: int | Path) -> subprocess.Popen[bytes]:
    """A function of `surveys` in a process of its own."""
    words = ", ".join(str(arg) if isinstance(arg, int) else f"Path({str(arg)!r})" for arg in args)
    script = f"from pathlib import Path; from surveys.surveyed import {name}; {name}({words})"
    path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    return subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": path})


def _has_worked(pid: int) -> bool:
    """Whether a process is one that examines files, and has begun to."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        server = b"forkserver" in Path(f"/proc/{fields[1]}/cmdline").read_bytes()
    except OSError:
        return False
    return server and int(fields[11]) > 5  # its time in user mode, in ticks


def gone(pids: Iterable[int]) -> bool:
    """Whether processes end."""
    return eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def _has(output: Path, parts: int) -> bool:
    return len(list(output.glob("part=*"))) >= parts


@pytest.mark.whole
def test_killed_and_resumed_again_and_again_it_is_as_one_run(files: Path, whole: Path, tmp_path: Path) -> None:
    output, kills = tmp_path / "survey", 0
    rng = random.Random()
    while kills < KILLS:
        parts = len(list(output.glob("part=*")))
        process = started("often", files, output)
        # Some parts further, or in the midst of the last.
        wanted = parts + rng.randrange(1, 4)
        assert eventually(lambda wanted=wanted, process=process: _has(output, wanted) or process.poll() is not None)
        if process.poll() is not None:
            # All is done: from here on there is only new work to be killed in.
            assert tables(output) == tables(whole)
            for path in rng.sample(sorted(files.rglob("*.so")), 10):
                os.utime(path)
            survey([files], whole, jobs=2)
            continue
        time.sleep(rng.uniform(0, 0.05))
        below = children(process.pid)
        process.kill()
        process.wait()
        kills += 1
        assert gone(below)
        consistent(output)
    assert started("often", files, output).wait() == 0
    assert tables(output) == tables(whole)
    assert {path.name for path in output.iterdir() if path.name.startswith(".")} == set()
    assert len(list(output.glob("part=*"))) == 1


@pytest.mark.whole
def test_killed_at_each_change_of_its_folder_it_goes_on(tmp_path: Path) -> None:
    files = write(tmp_path / "files", {f"{number}.so": elf(number) for number in range(6)})
    survey([files], tmp_path / "base", jobs=1)
    write(files, {"0.so": elf(10), "new.so": elf(11)})
    (files / "1.so").unlink()
    survey([files], tmp_path / "fresh", jobs=1)
    expected = tables(tmp_path / "fresh")
    done, step = tmp_path / "done", 0
    while not done.exists():
        step += 1
        output = tmp_path / f"step{step}"
        shutil.copytree(tmp_path / "base", output)
        assert started("dies_at", step, files, output, done).wait() == (0 if done.exists() else -signal.SIGKILL)
        consistent(output)
        survey([files], output, jobs=1)
        assert tables(output) == expected
        assert len(list(output.glob("part=*"))) == 1
        assert not list(output.glob(".*"))
        shutil.rmtree(output)
    assert step > 8


@pytest.mark.whole
@pytest.mark.usefixtures("interruptible")
def test_interrupted_it_keeps_what_was_done_and_says_how_to_go_on(tmp_path: Path) -> None:
    files = write(tmp_path / "files", {f"{number}.so": elf(number) for number in range(3000)})
    output = tmp_path / "survey"
    process = command(files, "-o", output, "--jobs", "1")
    assert eventually(lambda: any(_has_worked(pid) for pid in children(process.pid)))
    time.sleep(random.uniform(0, 0.5))
    below = children(process.pid)
    # As a terminal does, which interrupts all of them.
    for pid in (process.pid, *below):
        os.kill(pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, ""), err
    assert err == f"walkback: {output}: stopped; what was done is kept, and the same command goes on\n"
    assert gone(below)
    former = len(consistent(output)["units"])
    assert former < 3000
    assert not Survey(output).finished
    status, out, err = ended(files, "-o", output)
    assert (status, err) == (0, "")
    before = f", {former:,} of them in former runs" if former else ""
    assert f"3,000 files examined{before}\n" in out
    assert Survey(output).finished


@pytest.mark.whole
@pytest.mark.usefixtures("interruptible")
def test_interrupted_while_its_processes_start_it_says_no_more(tmp_path: Path) -> None:
    files = write(tmp_path / "files", {f"{number}.so": elf(number) for number in range(3000)})
    for moment in range(12):
        process = command(files, "-o", tmp_path / f"survey{moment}")
        assert eventually(lambda pid=process.pid: len(children(pid)) > 1)
        time.sleep(moment * 0.04)
        for pid in (process.pid, *children(process.pid)):
            os.kill(pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err.count("\n")) == (130, "", 1), err


def test_what_was_told_as_done_before_an_interrupt_is_kept(tmp_path: Path) -> None:
    files = write(tmp_path / "files", {f"{number}.so": elf(number) for number in range(300)})
    seen = []

    def interrupt(progress: Any) -> None:
        seen.append(progress.files)
        if progress.files >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey([files], tmp_path / "survey", jobs=2, progress=interrupt)
    assert 100 <= seen[-1] < 300
    assert len(consistent(tmp_path / "survey")["units"]) == seen[-1]
    done = survey([files], tmp_path / "survey", jobs=2)
    assert done.done == 300 - seen[-1]


def test_a_disk_that_is_full_is_one_line_and_what_was_there_stays(files: Path, tmp_path: Path) -> None:
    output = tmp_path / "survey"
    survey([files / "lib"], output, jobs=1)
    former = tables(output)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limit[1]))

    status, out, err = ended(files, files / "lib", "-o", output, preexec_fn=limited)
    assert (status, out) == (3, "")
    assert re.fullmatch(r"walkback: cannot write .*: File too large\n", err), err
    assert tables(output) == former
    survey([files, files / "lib"], output, jobs=1)
    assert len(tables(output)["units"]) == 73


def test_what_cannot_be_written_is_an_error(files: Path, tmp_path: Path) -> None:
    output = tmp_path / "survey"
    survey([files / "lib"], output, jobs=1)
    [part] = SurveyFolder(output).parts()
    (output / f".walkback-part={part.number + 1:08}").symlink_to("nothing")
    (output / f"part={part.number + 2:08}").touch()
    with pytest.raises(UnreadableError, match=r"does not say what it is|Not a directory"):
        survey([files / "copies", files / "lib"], output, jobs=1)
