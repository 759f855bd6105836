"""Programs of Go, built by the peers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from peers import root

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".cache" / "go"
"""What the compilers keep for the next time."""
MACHINES = ("amd64", "arm64", "s390x")
VERSIONS = ("1.19", "1.22", "1.24", "new")


def build(source: Path, output: Path, version: str, machine: str = "amd64", *flags: str, **settings: str) -> Path:
    """A program of one file, built if it is not there."""
    if output.exists():
        return output
    [go] = (root(f"go-{version}") / "usr" / "lib").glob("go-*/bin/go")
    given = {"GO111MODULE": "off", "GOCACHE": str(CACHE), "CGO_ENABLED": "0", "GOARCH": machine}
    given |= {"GOTOOLCHAIN": "local", "GOFLAGS": "-p=2"} | settings
    environment = {"PATH": os.environ["PATH"], "HOME": str(output.parent)} | given
    command: list[str | Path] = [go, "build", "-trimpath", *flags, "-o", output, source]
    subprocess.run(command, cwd=source.parent, env=environment, check=True)
    return output


def callers(folder: Path, version: str, program: str = "callers", c_flags: str = "", *flags: str) -> Path:
    """One of the programs that say what is called in their threads, without symbols; with `c_flags` there is C in it."""
    # Go 1.23 and newer link names of the runtime only if they are told to.
    linker = "-s -checklinkname=0" if version in {"1.24", "new"} else "-s"
    output = folder / "-".join((program, version, c_flags.replace(" ", ""), *flags))
    settings = {"CGO_ENABLED": "1", "CGO_CFLAGS": c_flags} if c_flags else {}
    return build(HERE / f"{program}.go", output, version, "amd64", f"-ldflags={linker}", *flags, **settings)
