"""What the tests of the command share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hello import program


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    return program(tmp_path)
