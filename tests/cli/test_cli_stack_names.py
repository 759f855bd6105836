"""`walkback stack NAME`: a running process by its name."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from capture.targets import state
from cli.commands import told
from cli.walked import stack
from waiting import eventually
from walkback.capture.live.processes import processes_named

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Runs a program of a name until the end of the test."""
    with ExitStack() as running:

        def start(name: str, mark: str = "") -> int:
            program = tmp_path / name
            if not program.exists():
                shutil.copy("/bin/sleep", program)
            process = running.enter_context(subprocess.Popen([f"{program}{mark}", "600"], executable=program))
            running.callback(process.kill)
            assert eventually(lambda: state(process.pid) == "S")
            return process.pid

        yield start


@pytest.mark.parametrize("name", ["wb-one", "wb-with-a-name-of-more-than-fifteen-bytes"])
def test_one_process_of_a_name_is_meant(run: Callable[..., int], name: str) -> None:
    pid = run(name)
    done = stack(name)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().startswith(f"process {pid} {name[:15]}\n")


def test_the_name_that_the_kernel_cut_is_a_name_too(run: Callable[..., int]) -> None:
    name = "wb-cut-by-the-kernel"
    pid = run(name)
    assert stack(name[:15]).stdout.decode().startswith(f"process {pid} {name[:15]}\n")


def test_a_script_has_a_name(tmp_path: Path) -> None:
    script = tmp_path / "wb-script"
    script.write_text("import time\ntime.sleep(600)\n")
    with subprocess.Popen([sys.executable, script]) as process:
        try:
            assert eventually(lambda: processes_named("wb-script") != {} and state(process.pid) == "S")
            assert list(processes_named("wb-script")) == [process.pid]
            assert stack("wb-script").stdout.decode().startswith(f"process {process.pid} ")
        finally:
            process.kill()


def test_several_are_listed(run: Callable[..., int]) -> None:
    first, second = run("wb-twice"), run("wb-twice", "\n\x1b[1m")
    done = stack("wb-twice")
    assert (done.returncode, done.stdout) == (2, b"")
    text = done.stderr.decode()
    assert "wb-twice is the name of 2 processes; choose one:\n" in text
    assert sorted(map(int, re.findall(r"^  (\d+)  .+/wb-twice.* 600$", text, re.MULTILINE))) == sorted([first, second])
    assert "\x1b" not in text


def test_a_file_comes_before_a_process(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = run("wb-file")
    monkeypatch.chdir(tmp_path)
    why = "wb-file: this ELF file is not a core file"
    assert told(stack("wb-file")) == (3, f"{why}; 1 process of this name runs, PID {pid}")
    assert told(stack("./wb-file")) == (3, f"./{why}")


def test_a_name_that_nobody_has() -> None:
    assert told(stack("wb-nobody")) == (3, "wb-nobody: there is no such file, and no running process of this name")
