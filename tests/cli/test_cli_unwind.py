"""`walkback unwind`: every format, comparing, and a real recording."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from capture.targets import THREADS, compiled
from cli.commands import WALKBACK, run
from cli.documented import undocumented
from cli.walked import CUT, FOLDED, FORMATS, complaints, unwind
from perfdata.running import perf
from recorded import PID, recording

pytestmark = pytest.mark.usefixtures("own_cache")


# Formats


def test_folded_stacks_are_the_default(recorded: Path) -> None:
    done = unwind(recorded)
    assert done.returncode == 0
    assert done.stdout.decode().splitlines() == FOLDED
    assert complaints(done) == [
        f"{recorded}: {CUT}",
        f"{recorded}: perf record --call-graph dwarf,65528 copies more of each stack",
    ]
    assert unwind("--format", "folded", recorded).stdout == done.stdout


def test_standard_input(recorded: Path, tmp_path: Path) -> None:
    for contents in (recording(tmp_path / "hello", pipe=True), recorded.read_bytes()):
        command: list[str | Path] = [WALKBACK, "unwind", "-"]
        done = subprocess.run(command, input=contents, capture_output=True, check=False)
        if contents[8:9] == b"\x10":
            assert done.stdout.decode().splitlines() == FOLDED
            assert complaints(done)[0] == f"/dev/stdin: {CUT}"
    with recorded.open("rb") as file:
        done = subprocess.run([WALKBACK, "unwind", "-"], stdin=file, capture_output=True, check=False)
    assert done.stdout.decode().splitlines() == FOLDED


def test_a_folder_that_perf_wrote(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    recorded.rename(folder / "data")
    assert unwind(folder).stdout.decode().splitlines() == FOLDED
    assert run("store", tmp_path / "store", "append", folder).returncode == 0
    assert run("cif", "encode", folder, "-o", tmp_path / "map").returncode == 0
    done = unwind(folder, "-o", folder / "data")
    assert done.returncode == 2
    assert b"is what is read, and would be lost" in done.stderr
    (folder / "data.0").symlink_to("nowhere")
    done = unwind(folder)
    assert done.returncode == 1
    assert f"walkback: {folder}: data.0: not a regular file; it is not read\n" in done.stderr.decode()


@pytest.mark.whole
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_goes_to_a_file_and_to_a_pipe(form: str, recorded: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    done = unwind("--format", form, "-o", output, recorded)
    assert (done.returncode, done.stdout) == (0, b"")
    assert unwind("--format", form, recorded).stdout == output.read_bytes()
    contents = output.read_bytes()
    plain = gzip.decompress(contents) if form == "pprof" else contents
    assert form == "cbf" or b"compute" in plain
    if form in {"json", "speedscope", "firefox"}:
        assert all(json.loads(line) for line in plain.splitlines())
    if form in {"folded", "top", "perf-script"}:
        assert plain.isascii()


def test_the_tables(recorded: Path) -> None:
    lines = unwind("--format", "top", recorded).stdout.decode().splitlines()
    assert lines[0] == f"{recorded}: 6 samples, 1 with incomplete stacks (16.67 %)"
    assert re.fullmatch(r" +5 +83\.33 +5 +83\.33  compute  hello", lines[3])
    assert len([line for line in lines if line.lstrip().startswith("self")]) == 3
    short = unwind("--format", "top", "--limit", "1", recorded).stdout.decode().splitlines()
    assert len(short) == 1 + 3 * 3
    assert set(short) <= set(lines)


def test_the_text_of_perf_script(recorded: Path) -> None:
    first = unwind("--format", "perf-script", recorded).stdout.decode().split("\n\n")[0].splitlines()
    assert re.fullmatch(rf"hello +{PID} +0\.001000: +1000 cpu-clock: ?", first[0])
    assert [line.split()[1] for line in first[1:]] == ["compute+0x4", "main+0x5", "_start+0x4"]


def test_json_has_the_documented_keys(recorded: Path) -> None:
    done = unwind("--json", recorded)
    assert done.stdout == unwind("--json", "--format", "json", recorded).stdout
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 6
    for one in found:
        assert set(one) == {"pid", "tid", "comm", "time", "event", "period", "frames", "end"}
    assert undocumented(found, "unwind") == []
    assert [one["time"] for one in found] == [1_000_000 * number for number in range(1, 7)]
    assert [one["period"] for one in found] == [1000 * number for number in range(1, 7)]
    assert [one["end"] for one in found] == ["complete"] * 5 + ["stack-cut"]
    top, *others = found[0]["frames"]
    assert (top["pc"], top["symbol"], top["how"]) == (top["lookup"], "compute", "registers")
    assert [(one["pc"] - one["lookup"], one["symbol"], one["how"]) for one in others] == [
        (1, "main", "cfi"),
        (1, "_start", "cfi"),
    ]
    assert Path(top["module"]).name == "hello"


# Comparing


def test_ways_are_compared(recorded: Path, tmp_path: Path) -> None:
    chart = tmp_path / "chart.svg"
    done = unwind("--compare", "sframe,cfi,fp,auto", "--chart", chart, recorded)
    assert (done.returncode, done.stderr) == (0, b"")
    rows = list(csv.reader(io.StringIO(re.sub(r"  +", ",", done.stdout.decode()))))
    assert [row[0] for row in rows] == ["method", "sframe", "cfi", "fp", "auto"]
    assert rows[3][1:8] == ["6", "0 %", "16.67 %", "10", "66.67 %", "33.33 %", "0 %"]
    assert rows[1][1:8] == rows[2][1:8] == rows[4][1:8] == ["6", "83.33 %", "100 %", "15", "100 %", "0 %", "0 %"]
    assert ElementTree.fromstring(chart.read_text()).tag.endswith("svg")


def test_comparing_as_json_has_the_documented_keys(recorded: Path) -> None:
    one, other = map(json.loads, unwind("--compare", "fp,sframe", "--json", recorded).stdout.splitlines())
    assert (one["method"], other["method"]) == ("fp", "sframe")
    assert undocumented([one, other], "unwind") == []
    assert one["ends"] == {"no-progress": 4} or sum(one["ends"].values()) == 6
    assert sum(one["hows"].values()) == one["frames"] == 10


@pytest.mark.peers
def test_a_real_recording_as_a_file_and_through_a_pipe(tmp_path: Path) -> None:
    program = compiled(tmp_path, THREADS)
    path = tmp_path / "perf.data"
    recording_of = ("record", "-q", "-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,4096")
    limited = ("timeout", "--foreground", "-s", "TERM", "1", program)
    done = perf(*recording_of, "-o", path, "--", *limited)
    if not path.exists():
        pytest.skip(f"perf cannot record so here: {done.stderr.decode()[-200:]}")
    piped = perf(*recording_of, "-o", "-", "--", *limited).stdout
    for found in (
        unwind(path),
        subprocess.run([WALKBACK, "unwind", "-"], input=piped, capture_output=True, check=False),
    ):
        assert found.returncode == 0, found.stderr
        counts = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in found.stdout.decode().splitlines()}
        busy = sum(count for names, count in counts.items() if ";run;busy;busy;busy" in names)
        assert 2 * busy > sum(counts.values()) > 0
        assert busy > 0.8 * sum(counts.values())
    script = unwind("--format", "perf-script", path).stdout.decode()
    theirs = perf("script", "-i", path).stdout.decode()
    assert script.count("busy+0x") == theirs.count("busy+0x")
