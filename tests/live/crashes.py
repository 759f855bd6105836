"""Programs that have ended with a core file, and what gdb and eu-stack say of them."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from walkback.stacks.stacks import HOW_WORDS

WAYS = ("overflow", "null", "data", "nowhere", "abort", "malloc", "handler", "handlers", "overflow-handler", "callback")


def crashed(folder: Path, *command: str | Path) -> Path:
    """The core that the kernel wrote."""
    done = subprocess.run(command, cwd=folder, preexec_fn=allow, capture_output=True, check=False)
    assert done.returncode < 0, done
    return core_in(folder)


def allow() -> None:
    """Let this process leave a core file."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))


def core_in(folder: Path) -> Path:
    """The core that a process left in its folder."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith(("|", "/")):
        pytest.skip(f"the kernel does not write core files beside the program, but to {pattern}")
    cores = [path for path in folder.iterdir() if path.name.startswith("core")]
    if not cores:
        pytest.skip("core files are not allowed here (ulimit -c)")
    return cores[0]


def told(shot: Any, thread: int = 0) -> str:
    first, end = (int(shot.stacks.first[thread + i]) for i in (0, 1))
    hows = [HOW_WORDS[how] for how in shot.stacks.how[first:end].tolist()]
    return "\n".join(f"{label} {how}" for label, how in zip(shot.labels(thread), hows, strict=True))
