"""Damaged core files, and memory that leads nowhere, to the whole verb: it ends soon, with little memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from effort import rounds
from emulation import LOADER, built, core_of, root
from live.crashes import crashed
from live.debuggers import debugger
from live.subjects import HERE

COUNT = rounds(20, quick=5, share=100)

pytestmark = [pytest.mark.soak, pytest.mark.whole]


def judged(core: Any, *options: Any) -> None:
    command = [sys.executable, HERE / "mutate.py", core, str(COUNT), os.environ.get("WALKBACK_SEED", "20"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert "BAD" not in done.stdout, done.stdout[:8000]


@pytest.mark.parametrize("way", ["handler", "overflow"])
def test_hostile_cores(way: str, tmp_path: Path) -> None:
    program = tmp_path / "crash"
    command: list[str | Path] = [
        debugger("gcc"),
        "-O2",
        "-w",
        "-pthread",
        "-fno-inline",
        "-o",
        program,
        HERE / "crash.c",
    ]
    subprocess.run(command, check=True)
    judged(crashed(tmp_path, program, way), "--exe", program)


@pytest.mark.peers
@pytest.mark.parametrize("arch", LOADER)
def test_hostile_cores_of_emulators(arch: str, tmp_path: Path) -> None:
    program = built(tmp_path / "crash", arch, HERE / "crash.c", "-O2", "-w")
    core = core_of(tmp_path, arch, program, "handler")
    judged(core, "--exe", program, "--sysroot", root(arch))
