"""Runs the real programs that tests compare with: `make peers` brings them, and without them those tests skip."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from effort import QUICK

if TYPE_CHECKING:
    from os import PathLike

BIN = Path(__file__).resolve().parent.parent / ".peers" / "bin"


def have(name: str) -> bool:
    return not QUICK and (BIN / name).exists()


def peer(name: str) -> str:
    """The path of a peer such as `readelf-2.40` or `aarch64-as-new`; call it inside a test or fixture."""
    if not have(name):
        missing(name)
    return str(BIN / name)


def root(name: str) -> Path:
    """The folder of a set of peers such as `trixie`, for its libraries and headers; call it as `peer`."""
    folder = BIN.parent / name
    if QUICK or not folder.is_dir():
        missing(f"the peers' {name}")
    return folder


def wheel(name: str) -> Path:
    """The library out of a wheel such as `cryptography-2.5`; call it as `peer`."""
    found = sorted((BIN.parent / "wheels").glob(f"{name}-*"))
    if QUICK or not found:
        missing(f"the wheel {name}")
    return found[-1]


def missing(what: str) -> NoReturn:
    """Skip the test for want of a peer, or fail it where all must be there."""
    reason = f"needs {what}: run `make peers`"
    if os.environ.get("WALKBACK_PEERS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def run(
    name: str, *args: str | PathLike[str], cwd: str | PathLike[str] | None = None, check: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Runs a peer to its end in the C locale; its output is kept as bytes."""
    env = os.environ | {"LC_ALL": "C"}
    return subprocess.run([peer(name), *args], cwd=cwd, env=env, capture_output=True, check=check)
