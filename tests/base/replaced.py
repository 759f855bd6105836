"""What a file becomes, its mode, and an end in the midst of that."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

PARTS: list[bytes | memoryview] = [b"new ", memoryview(b"contents"), b""]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def killed_half_way(script: str, target: Path) -> None:
    """Runs a script on a file, and kills it when it says that it is half done."""
    with subprocess.Popen([sys.executable, "-c", script, target], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
