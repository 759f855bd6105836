"""`walkback store` as a process, and what it says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from cli.commands import run

FOLDED = "hello;_start;main 1\nhello;_start;main;compute 4\nhello;compute 1\n"


def asked(store: Path, *args: object) -> subprocess.CompletedProcess[bytes]:
    return run("store", store, *map(str, args))


def text(store: Path, *args: object) -> str:
    done = asked(store, *args)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    return done.stdout.decode()


def objects(store: Path, *args: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text(store, *args, "--json").splitlines()]
