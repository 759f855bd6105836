"""`--for`: the verbs that write for a consumer, and what `check` says of one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cli.inprocess import run
from sframefiles import linked, small, written
from walkback import sframe

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("verb", ["add", "convert", "derive", "fix", "link"])
def test_the_consumer_decides_the_version(verb: str, tmp_path: Path) -> None:
    path, output = written(tmp_path, linked(small(3).bytes())), tmp_path / "output"
    both = run(verb, path, "-o", output, "--for", "glibc", "--version", "2")
    assert both.exit_code == 2
    assert "--version and --for exclude each other" in both.stderr
    assert not output.exists()


@pytest.mark.parametrize(("consumer", "version"), [("glibc", 2), ("linux", 3)])
@pytest.mark.parametrize("verb", ["convert", "fix", "link"])
def test_no_number_is_needed(verb: str, consumer: str, version: int, tmp_path: Path) -> None:
    path, output = written(tmp_path, linked(small(5 - version).bytes())), tmp_path / "output"
    done = run(verb, path, "-o", output, "--for", consumer)
    assert done.exit_code == 0, done.output
    (source,) = sframe.read(output)
    assert [piece.section.version for piece in source.pieces()] == [version]


def test_convert_needs_one_of_both(tmp_path: Path) -> None:
    done = run("convert", written(tmp_path, linked(small(3).bytes())))
    assert done.exit_code == 2
    assert "Missing option '--version' or '--for'." in done.stderr


def test_what_a_consumer_cannot_use_is_wrong_usage(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small(3).bytes()))
    assert run("fix", path, "--for", "linux", "--pcrel", "no").exit_code == 2
    assert run("link", path, "-o", tmp_path / "output", "--for", "glibc", "--view", "linking").exit_code == 2


def test_check_counts_the_places_where_the_walk_stops(tmp_path: Path) -> None:
    builder = small(2)
    for function in builder.functions:
        function.rows[0].start = 1
        function.rows[1].start = 2
    path = written(tmp_path, linked(builder.bytes()))
    done = run("check", "--for", "glibc", "--limit", "2", path)
    assert done.exit_code == 1
    place, code = "no row holds for its first 1 byte: a walk comes there, and the walk falls back", "[glibc-no-row]"
    assert done.stdout.splitlines() == [
        f"{path}: .sframe+0x1c: stops: function 0 (f0): {place} {code}",
        f"{path}: .sframe+0x30: stops: function 1 (f1): {place} {code}",
        f"{path}: .sframe: and 1 more {code}",
        f"{path}: .sframe: glibc would load it; its walk would stop at 3 places",
    ]
    report = json.loads(run("check", "--for", "glibc", "--json", path).stdout)
    assert (report["loads"], report["stops"], report["findings"][0]["severity"]) == (True, 3, "stops")
