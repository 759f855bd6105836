"""`walkback derive`, `add` and `drop`: names of files and symbols that spoil no line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli.awkward import lines
from cli.commands import run as process
from cli.commands import told
from cli.hello import (
    AWKWARD,
    SPELLED,
    hello_object,
    program,
    spoilt,
)
from sframefiles import written

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_names_of_files_and_symbols_spoil_no_line(tmp_path: Path, verb: str) -> None:
    path = spoilt(program(tmp_path, name=AWKWARD))
    done = process(verb, path, "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, b"")
    first, _, third, *_ = lines(done.stdout)
    assert first.startswith(f"{tmp_path}/two\\x0alines\\x07: .eh_frame has ")
    assert f" {SPELLED} (9 bytes): " in third


def test_the_name_of_an_output_spoils_no_line(hello: Path) -> None:
    text = lines(process("add", hello, "-o", hello.parent / AWKWARD).stdout)
    assert f"  proved: the same rule at every address; written to {hello.parent}/two\\x0alines\\x07" in text


def test_the_name_of_a_text_section_spoils_no_line(tmp_path: Path) -> None:
    path = spoilt(hello_object(tmp_path), b".text\0", b".t\n\x07t\0")
    _, _, third, _ = lines(process("derive", path, "-o", tmp_path / "s").stdout)
    assert third.startswith("  not covered: .t\\x0a\\x07t+0x23 leap")


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_json_has_every_name_whole_in_one_line(tmp_path: Path, verb: str) -> None:
    path = spoilt(program(tmp_path, name=AWKWARD))
    text, end = lines(process(verb, path, "-o", tmp_path / "out", "--json").stdout)
    found = json.loads(text)
    assert (found["file"], end) == (str(path), "")
    assert found["uncovered"][0]["name"] in {"l\n\x07\\xff", "l\n\x07\udcff"}


@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_an_error_about_such_a_name_is_one_line(tmp_path: Path, verb: str) -> None:
    path = written(tmp_path, b"some text\n", AWKWARD)
    assert told(process(verb, path, "-o", tmp_path / "out")) == (
        3,
        f"{tmp_path}/two\\x0alines\\x07: this is not an ELF file",
    )


def test_a_name_that_is_no_utf_8_is_taken_and_shown(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/na\xffme"
    program(tmp_path).rename(os.fsdecode(name))
    for command in (["add", name], ["derive", name, "-o", tmp_path / "s"]):
        done = process(*command)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.startswith(name)
    assert process("drop", name).returncode == 0
