"""What the tests of the command share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    # Late: with --interpreted nothing of the package may be imported before the tests are.
    from cli.hello import program

    return program(tmp_path)
