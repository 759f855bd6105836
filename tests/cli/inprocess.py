"""The command without a process of its own, and the documents of its verbs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import Result

from clirunner import runner
from walkback.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator


PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "verbs"


def run(*args: object) -> Result:
    result = runner().invoke(cli, [str(arg) for arg in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def told_object(*args: object) -> dict[str, Any]:
    """The one object that a command prints as JSON."""
    (line,) = run(*args, "--json").stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from objects(part)
    elif isinstance(value, list):
        for part in value:
            yield from objects(part)
