"""`walkback unwind`: wrong usage, and recordings that cannot be read or lack something."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from cli.commands import WALKBACK, told
from cli.walked import FORMATS, complaints, unwind
from perfbuilder import IP, TID, TIME, Attr, Builder
from recorded import PID, hello, recording

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.whole
@pytest.mark.parametrize(
    "args",
    [
        ["--compare", "sframe,orc", "x"],
        ["--compare", "", "x"],
        ["--compare", "fp", "--format", "top", "x"],
        ["--compare", "fp", "--only", "fp", "x"],
        ["--compare", "fp", "-o", "y", "x"],
        ["--chart", "y", "x"],
        ["--limit", "3", "x"],
        ["--limit", "0", "--format", "top", "x"],
        ["--json", "--format", "folded", "x"],
        ["--format", "svg", "x"],
        ["--weight", "bytes", "x"],
        ["--threads", "0", "x"],
        ["--max-stack", "0", "x"],
        [],
        ["x", "y"],
    ],
)
def test_wrong_usage(args: list[str]) -> None:
    done = unwind(*args)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Error: " in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.whole
def test_what_cannot_be_read_is_one_line_and_3(recorded: Path, tmp_path: Path) -> None:
    text, empty, begun = tmp_path / "text", tmp_path / "empty", tmp_path / "begun"
    text.write_text("some text, more than a header has of bytes, since there is a hundred of them and a few " * 2)
    empty.touch()
    begun.write_bytes(recorded.read_bytes()[:50])
    for what, message in {
        tmp_path / "missing": "No such file or directory",
        text: "this is not a perf.data file",
        empty: "",
        begun: "the file ends within its header",
        tmp_path: "this is a directory",
        "/dev/null": "this is not a regular file",
        tmp_path / "hello": "this is not a perf.data file",
    }.items():
        for options in ([], ["--format", "json"], ["--compare", "fp"]):
            done = unwind(*options, what)
            status, line = told(done)
            assert (status, done.stdout) == (3, b"")
            assert line.startswith(f"{what}: ")
            assert message in line
    done = subprocess.run([WALKBACK, "unwind", "-"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert told(done) == (3, "/dev/stdin: this is not a perf.data file")


def test_a_recording_that_is_cut_off_is_walked_as_far_as_it_goes(recorded: Path, tmp_path: Path) -> None:
    contents = recording(tmp_path / "hello", pipe=True)
    for name, whole, cut in (("file", recorded.read_bytes(), 800), ("pipe", contents, len(contents) - 300)):
        path = tmp_path / name
        path.write_bytes(whole[:cut])
        done = unwind(path)
        assert done.returncode == 1
        assert any("cut off" in line or "ends" in line for line in complaints(done))
        assert b"hello;_start;main;compute " in done.stdout


@pytest.mark.whole
def test_a_recording_without_samples(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    made = Builder(attrs=[Attr(IP | TID | TIME)])
    made.comm(PID, PID, "idle", time=1)
    path.write_bytes(made.file())
    for form in FORMATS:
        done = unwind("--format", form, path)
        assert (done.returncode, complaints(done)) == (1, [f"{path}: there are no samples"])
    done = unwind("--compare", "fp", path)
    assert (done.returncode, complaints(done)) == (1, [f"{path}: there are no samples"])


def test_lost_records_are_told(tmp_path: Path) -> None:
    program = hello(tmp_path)
    contents = bytearray(recording(program))
    # COMM becomes LOST: an ID, and how many.
    place = contents.index(struct.pack("<IH", 3, 0))
    contents[place : place + 4] = struct.pack("<I", 2)
    contents[place + 8 : place + 24] = struct.pack("<QQ", 0, 77)
    path = tmp_path / "perf.data"
    path.write_bytes(contents)
    assert (
        f"{path}: the kernel lost 77 records because its buffer was full (perf record -m makes it larger)"
        in complaints(unwind(path))
    )
