"""Killed at any moment, `convert`, `fix` and `add` in place leave the file as it was or as it is to be."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corpus import corpus
from grafting import compiled
from waiting import PATIENCE
from walkback import add, convert, fix

pytestmark = pytest.mark.peers

ROUNDS = 150


def sample(name: str, producer: str) -> Path:
    [found] = [one.path for one in corpus() if (one.path.name, one.producer, one.arch) == (name, producer, "amd64")]
    return found


@pytest.mark.whole
@pytest.mark.parametrize("verb", ["convert", "fix", "add"])
def test_a_file_is_the_old_one_or_the_new_one_whenever_its_writer_is_killed(verb: str, tmp_path: Path) -> None:
    folder, former, new = tmp_path / "folder", tmp_path / "former", tmp_path / "new"
    folder.mkdir()
    path = folder / "file"
    if verb == "convert":
        convert(sample("amalgamated.c-O2.so", "2.44"), former, version=3)
        convert(former, new, version=2)
    elif verb == "fix":
        shutil.copy(sample("program-lld.so", "new"), former)
        fix(former, new)
    else:
        shutil.copy(compiled(tmp_path, "static", "-static"), former)
        add(former, new)
    shutil.copy(former, path)
    assert former.read_bytes() != new.read_bytes()
    words: list[str | Path] = [verb, path, former, new, str(ROUNDS)]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("victim.py"), *words],
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    told = json.loads(done.stdout)
    seen = {"former": 0, "new": 0, "neither": 0, **told["seen"]}
    assert seen["neither"] == seen["ended by itself"] == 0
    assert seen["former"] > 0
    assert seen["new"] > 0
    assert sum(seen.values()) == ROUNDS
    # What is left of those that were killed while they wrote: hidden, and of a name that nobody looks for.
    left = [name for name in told["beside"] if name != "file"]
    assert all(name.startswith(".") for name in left), left
    # It is in nobody's way, and nobody reads it.
    shutil.copy(former, path)
    verbs: dict[str, Callable[[], object]] = {
        "convert": lambda: convert(path, version=2),
        "fix": lambda: fix(path),
        "add": lambda: add(path),
    }
    verbs[verb]()
    assert path.read_bytes() == new.read_bytes()
    assert sorted(one.name for one in folder.iterdir()) == sorted(["file", *left])
