"""perf, run as people run it."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest


def perf(*args: Any, **more: Any) -> Any:
    """Run perf; without it there is nothing to compare with."""
    program = shutil.which("perf")
    if program is None:
        if os.environ.get("WALKBACK_PEERS") == "required":
            pytest.fail("needs perf")
        pytest.skip("needs perf")
    env = os.environ | {"LC_ALL": "C", "PERF_CONFIG": "/dev/null"}
    return subprocess.run([program, *args], env=env, capture_output=True, check=False, **more)
