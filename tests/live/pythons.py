"""The Pythons that are here: of this environment, of the system, of pyenv, and those that `make peers` brings."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import peers

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
VERSIONS = ("here", "system", "3.12", "3.13", "3.14", "3.15", "free-threaded")
"""`here` is the Python that runs the tests."""
_LOADER = "ld-linux-x86-64.so.2"


@cache
def _of_peers(version: str) -> tuple[tuple[str, ...], dict[str, str]] | None:
    """A Python of another release, which runs through that release's loader."""
    root = peers.BIN.parent / f"python{version}"
    libraries = [str(root / name) for name in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")]
    loader = next((f"{one}/{_LOADER}" for one in libraries if Path(one, _LOADER).exists()), None)
    if loader is None:
        return None
    program = str(root / f"usr/bin/python{version}")
    command = (loader, "--inhibit-cache", "--argv0", program, "--library-path", ":".join(libraries), program)
    return command, {"PYTHONHOME": str(root / "usr")}


@cache
def _elsewhere(name: str) -> tuple[str, ...] | None:
    """One that is installed: `python3.12`, or a free-threaded one."""
    wanted = ("python3.15t", "python3.14t", "python3.13t") if name == "free-threaded" else (f"python{name}",)
    folders = [*os.environ.get("PATH", "").split(":"), *os.environ.get("WALKBACK_PYTHONS", "").split(":")]
    found = [Path(folder, one) for one in wanted for folder in filter(None, folders)]
    found += [path for one in wanted for path in Path.home().glob(f".pyenv/versions/*/bin/{one}")]
    for path in found:
        # A shim of pyenv is there for versions that are not chosen as well.
        if path.exists() and not subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode:
            return (str(path),)
    return None


def python(name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command of a Python, and its variables."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    if name == "here":
        return (sys.executable,), variables
    if name == "system":
        found = shutil.which("python3", path="/usr/bin")
        if found is None or sys.version_info < (3, 11):
            pytest.skip("needs a Python of the system")
        return (found,), variables
    of_peers = _of_peers(name)
    if of_peers is not None:
        return of_peers[0], variables | of_peers[1]
    command = _elsewhere(name)
    if command is None:
        pytest.skip(f"needs Python {name}")
    return command, variables


def version_of(name: str) -> tuple[int, int]:
    """The version of a Python."""
    command, variables = python(name)
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([*command, "-c", code], env=variables, capture_output=True, check=True)
    major, minor = done.stdout.split()
    return int(major), int(minor)


@contextlib.contextmanager
def program(name: str, *arguments: str | Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program that a Python runs, with pipes to it and from it."""
    command, variables = python(name)
    process = subprocess.Popen(
        [*command, "-u", *arguments], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
