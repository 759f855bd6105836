"""Programs of Go, built by the peers."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from peers import root

if TYPE_CHECKING:
    from pathlib import Path

MACHINES = ("amd64", "arm64", "s390x")
VERSIONS = ("1.19", "1.22", "1.24", "new")


def build(source: Path, output: Path, version: str, machine: str = "amd64", *flags: str, **settings: str) -> Path:
    """A program of one file; what the compiler keeps for the next time is beside the output."""
    [go] = (root(f"go-{version}") / "usr" / "lib").glob("go-*/bin/go")
    given = {"GO111MODULE": "off", "GOCACHE": str(output.parent / "cache"), "CGO_ENABLED": "0", "GOARCH": machine}
    given |= {"GOTOOLCHAIN": "local", "GOFLAGS": "-p=2"} | settings
    environment = {"PATH": os.environ["PATH"], "HOME": str(output.parent)} | given
    command: list[str | Path] = [go, "build", "-trimpath", *flags, "-o", output, source]
    subprocess.run(command, cwd=source.parent, env=environment, check=True)
    return output
