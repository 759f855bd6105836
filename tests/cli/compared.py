"""What `walkback compare` needs, and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli.inprocess import run

NOT_TWO = "the file does not have two tables to compare; `walkback add` makes a .sframe section"
PUSHED = bytes.fromhex("01 03 10")
"""Of the rows of `main` the one behind the push: its start, its info byte and its CFA, rsp+16."""


def added(path: Path) -> Path:
    """A copy with its SFrame."""
    output = path.with_name(f"{path.name}.new")
    assert run("add", path, "-o", output).exit_code == 0
    return output


def objects(*args: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("compare", *args, "--json").stdout.splitlines()]
