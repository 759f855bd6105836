"""`walkback stack`: wrong usage, and what cannot be looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capture.corebuilder import CoreBuilder
from capture.targets import state
from cli.commands import told
from cli.walked import stack
from waiting import eventually

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize(
    "args",
    [
        ["--exe", "x", "1"],
        ["--sysroot", "x", "1"],
        ["--sysroot", "/nowhere", "core"],
        ["--buildid-dir", "/nowhere", "core"],
        ["--buildid-dir", "/etc/passwd", "core"],
        ["--repeat", "2", "/bin/true"],
        ["--stack-bytes", "4096", "/bin/true"],
        ["--repeat", "0", "1"],
        ["--interval", "-1", "1"],
        ["--max-stack", "0", "1"],
        ["--json", "--format", "folded", "1"],
        ["--registers", "--json", "1"],
        ["--format", "svg", "1"],
        ["--only", "guess", "1"],
        [],
        ["1", "2"],
    ],
)
def test_wrong_usage(args: list[str]) -> None:
    done = stack(*args)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Error: " in done.stderr
    assert b"Traceback" not in done.stderr


def ended() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        return process.pid


@pytest.mark.whole
def test_what_cannot_be_looked_at_is_one_line_and_3(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("some text\n")
    short = tmp_path / "short"
    short.write_bytes(CoreBuilder().thread(1, []).build()[:70])
    pid = ended()
    for what, message in {
        pid: "there is no such process",
        0: "there is no such process",
        10**30: "there is no such process",
        tmp_path / "missing": "No such file or directory",
        text: "this is not an ELF file",
        "/bin/true": "this ELF file is not a core file",
        tmp_path: "this is a directory",
        "/dev/null": "this is not a regular file",
        short: "",
    }.items():
        done = stack(what)
        status, line = told(done)
        assert (status, done.stdout) == (3, b"")
        assert line.startswith(f"process {what}: " if isinstance(what, int) else f"{what}: ")
        assert message in line


def test_a_thread_of_the_kernel_and_a_zombie(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        assert eventually(lambda: state(process.pid) == "Z")
        assert told(stack(process.pid))[1].endswith("has not asked for its status yet (a zombie)")
    if Path("/proc/2/comm").exists() and Path("/proc/2/comm").read_text() == "kthreadd\n":
        assert "kernel thread" in told(stack(2))[1]


AS_NOBODY = """
import os, sys
from walkback.cli.main import cli, main
from walkback.capture.stacks import stack

# All that is needed is imported while its files can still be read.
cli.main(["stack", "--format", "folded", sys.argv[2], "-o", "/dev/null"], standalone_mode=False)
os.setuid(65534)
main()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be root, to be somebody else for once")
def test_a_process_of_somebody_else(target: int) -> None:
    command = [sys.executable, "-c", AS_NOBODY, "stack", str(target)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert told(done) == (
        3,
        f"process {target}: its memory may not be read: it belongs to somebody else, or is protected",
    )
