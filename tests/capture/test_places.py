"""The rules that stacks pass, and the functions that samples are in."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from cli.commands import run
from recorded import SOURCE, hello, recording
from walkback.capture.methods import Comparing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A recording of a program whose `main` has one register at the wrong place."""
    text = SOURCE.read_text().replace(".cfi_offset rbx, -16", ".cfi_offset rbx, -24")
    path = tmp_path / "hello"
    command: list[str | Path] = ["gcc", "-nostdlib", "-static", "-x", "assembler", "-o", path, "-"]
    subprocess.run(command, input=text.encode(), check=True)
    (tmp_path / "perf.data").write_bytes(recording(path, times=3))
    return tmp_path / "perf.data"


def test_wrong_rules_that_stacks_pass_are_found(wrong: Path) -> None:
    comparing = Comparing(wrong, ["fp"], cache=False)
    assert comparing.mismatches() == []
    assert sum(comparing) == 18
    [one] = comparing.mismatches()
    assert (one.file, one.stacks) == (str(wrong.parent / "hello"), 12)
    assert (one.mismatch.function, one.mismatch.what, one.mismatch.claimed) == ("main", "rbx", "*(CFA-24)")


def test_the_command_names_them(wrong: Path) -> None:
    done = run("unwind", "--compare", "fp", wrong)
    assert done.returncode == 0
    line = done.stdout.decode().splitlines()[-1]
    assert line.startswith(f"wrong rule on 12 stacks: {wrong.parent / 'hello'}: 0x")
    assert "main+0x1 (7 bytes): wrong-slot: the table has rbx *(CFA-24), the code unchanged" in line
    row, found = map(json.loads, run("unwind", "--compare", "fp", "--json", wrong).stdout.splitlines())
    assert (row["method"], found["type"], found["stacks"], found["function"]) == ("fp", "mismatch", 12, "main")


def test_what_stacks_do_not_pass_is_not_named(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recording(hello(tmp_path)))
    comparing = Comparing(path, ["fp"])
    assert sum(comparing) == 6
    assert comparing.mismatches() == []


def test_frame_pointers_are_weighed_by_samples(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recording(hello(tmp_path)))
    found = run("verify", "--frame-pointers", "--weight", path, "--json", tmp_path / "hello")
    *_, file = map(json.loads, found.stdout.splitlines())
    assert (file["samples"], file["kept_samples"], file["all_samples"]) == (6, 5, 6)
    shutil.copy(tmp_path / "hello", tmp_path / "copy")
    shutil.copy("/bin/true", tmp_path / "other")
    first, *_ = run("verify", "--frame-pointers", "--weight", path, tmp_path / "copy").stdout.decode().splitlines()
    assert first.endswith("of the code, and in 83.333 % of its 6 samples, which are 100 % of all 6")
    first, *_ = run("verify", "--frame-pointers", "--weight", path, tmp_path / "other").stdout.decode().splitlines()
    assert first.endswith("of the code, and none of the 6 samples is in it")


def test_a_weight_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    hello(tmp_path)
    done = run("verify", "--frame-pointers", "--weight", tmp_path / "hello", tmp_path / "hello")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (3, b"", 1)
    assert run("verify", "--weight", tmp_path / "hello", tmp_path / "hello").returncode == 2
