"""What the tests of the base share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file to be replaced."""
    path = tmp_path / "target"
    path.write_bytes(b"old")
    return path
