"""The lowest versions that are tested are those that are declared."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINTERS = {"import-linter", "mypy", "ruff"}
"""The suite runs without these."""


def test_the_lowest_versions_are_those_that_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    declared = dict(
        re.findall(r"^([\w-]+)(?:\[\w+\])?>=([\d.]+)", one)[0]
        for one in (*project["project"]["dependencies"], *groups["dev"], *groups["cloud"])
    )
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "tools" / "lowest.txt").read_text(), re.MULTILINE))
    assert set(pinned) == set(declared) - LINTERS
    for name, version in pinned.items():
        assert (version + ".0.0.").startswith(declared[name] + "."), name
