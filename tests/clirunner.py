"""click's runner with standard error apart, which is a choice before click 8.2 and the rule since."""

from __future__ import annotations

import inspect
from typing import Any

from click.testing import CliRunner


def runner() -> CliRunner:
    apart = "mix_stderr" in inspect.signature(CliRunner).parameters
    options: dict[str, Any] = {"mix_stderr": False} if apart else {}
    return CliRunner(**options)
