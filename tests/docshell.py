"""The shell in which the commands of a document run, one after the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from capture.targets import settled
from waiting import eventually


class Shell:
    """A shell that keeps its folder, its variables and what runs in the background, until it is closed."""

    def __init__(self, outputs: Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.process = subprocess.Popen(
            ["sh"],
            env={**os.environ, "PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.outputs = outputs
        self.runs = 0

    def ask(self, line: str) -> str:
        """Run a line of the shell that prints one line."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def run(self, command: str) -> str:
        """What a command prints: standard output, standard error and, if there is any of that, its exit status."""
        self.runs += 1
        out, error = (self.outputs / f"{self.runs}.{name}" for name in ("out", "error"))
        status = self.ask(f"{{ {command}\n}} </dev/null >{out} 2>{error}; status=$?; echo $status; (exit $status)")
        assert status, f"the shell ended: {error.read_text()}"
        if command.endswith("&"):
            self.wait_for_the_last()
        told = error.read_text()
        return out.read_text() + told + (f"[exit status {status}]\n" if status != "0" and told else "")

    def wait_for_the_last(self) -> None:
        """Wait until the program in the background has begun, and is where it stays."""
        started = Path(f"/proc/{self.ask('echo $!')}")
        shell = (Path(f"/proc/{self.process.pid}") / "exe").readlink()
        assert eventually(lambda: (started / "exe").readlink() != shell and settled(int(started.name)))

    def close(self) -> None:
        """End it, and what it left in the background."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
