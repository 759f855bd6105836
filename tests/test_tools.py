"""The scripts beside the package find all that they import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kernels import ROOT


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "tools").glob("*.py")))
def test_a_script_can_be_imported(script: str) -> None:
    command = [sys.executable, "-c", f"import {script.removesuffix('.py')}"]
    subprocess.run(command, cwd=ROOT / "tools", check=True)
