"""`walkback unwind`: every format and option, comparing, errors, interruptions, terminals, real perf."""

from __future__ import annotations

import csv
import fcntl
import gzip
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from capture.targets import THREADS, compiled
from cli.commands import WALKBACK, on_a_terminal, run, told
from perfbuilder import CALLCHAIN, IP, TID, TIME, Attr, Builder
from perfdata.running import perf
from recorded import PID, hello, recording
from waiting import eventually

DOCS = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
FOLDED = ["hello;_start;main 1", "hello;_start;main;compute 4", "hello;compute 1"]
FORMATS = ("folded", "top", "perf-script", "json", "pprof", "speedscope", "firefox", "cbf", "html")
CUT = "1 of 6 stacks not complete: 1 stack-cut"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALKBACK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(recording(hello(tmp_path)))
    return path


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A recording that takes a while."""
    path = tmp_path / "long.data"
    path.write_bytes(recording(hello(tmp_path), times=20_000))
    return path


def unwind(*args: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return run("unwind", *map(str, args), **more)


def complaints(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Lines of standard error without the program's name."""
    lines = done.stderr.decode().splitlines()
    assert all(line.startswith("walkback: ") for line in lines), lines
    return [line.removeprefix("walkback: ") for line in lines]


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
    assert f"walkback: {folder}: data.0: this is no file, and is not read\n" in done.stderr.decode()


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
    own = DOCS.read_text().partition("## `walkback unwind`")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*`) \|", own, re.MULTILINE))))
    done = unwind("--json", recorded)
    assert done.stdout == unwind("--json", "--format", "json", recorded).stdout
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 6
    for one in found:
        assert set(one) == {"pid", "tid", "comm", "time", "event", "period", "frames", "end"}
        assert set(one) | set().union(*one["frames"]) <= documented
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


# Options


def test_weights(recorded: Path) -> None:
    done = unwind("--weight", "period", recorded)
    assert done.stdout.decode().splitlines() == [
        "hello;_start;main 5000",
        "hello;_start;main;compute 10000",
        "hello;compute 6000",
    ]
    assert unwind("--weight", "samples", recorded).stdout == unwind(recorded).stdout


@pytest.mark.whole
@pytest.mark.parametrize("form", ["folded", "top", "pprof", "speedscope", "firefox"])
def test_stacks_that_are_not_complete_are_marked_if_that_is_wanted(form: str, recorded: Path) -> None:
    plain, marked = (unwind("--format", form, *option, recorded).stdout for option in ([], ["--mark-incomplete"]))
    if form == "pprof":
        plain, marked = gzip.decompress(plain), gzip.decompress(marked)
    assert (b"[incomplete: stack-cut]" in plain, b"[incomplete: stack-cut]" in marked) == (False, True)


@pytest.mark.parametrize(("only", "hows"), [("sframe", "derived"), ("cfi", "cfi"), ("fp", "fp-guess")])
def test_one_way_alone(only: str, hows: str, recorded: Path) -> None:
    found = [json.loads(line) for line in unwind("--only", only, "--json", recorded).stdout.splitlines()]
    assert {frame["how"] for one in found for frame in one["frames"]} == {"registers", hows}


def test_few_frames_and_threads(recorded: Path) -> None:
    done = unwind("--max-stack", 2, recorded)
    assert done.stdout.decode().splitlines() == ["hello;_start;main 1", "hello;compute 1", "hello;main;compute 4"]
    assert complaints(done)[0] == f"{recorded}: 5 of 6 stacks not complete: 4 limit, 1 stack-cut"
    for threads in (1, 7):
        assert unwind("--threads", threads, recorded).stdout.decode().splitlines() == FOLDED


def test_files_of_another_machine(recorded: Path, tmp_path: Path) -> None:
    program = tmp_path / "hello"
    elsewhere = tmp_path / "root" / program.relative_to("/")
    elsewhere.parent.mkdir(parents=True)
    program.rename(elsewhere)
    done = unwind(recorded)
    assert done.stdout.decode().splitlines()[0].startswith("hello;[hello]")
    assert complaints(done)[-1] == f"{recorded}: {program}: No such file or directory"
    assert unwind("--sysroot", tmp_path / "root", recorded).stdout.decode().splitlines() == FOLDED


OLD, NEW = "11" * 20, "22" * 20


@pytest.fixture
def rebuilt(tmp_path: Path) -> Path:
    """A recording of a program that was built anew since; the old build is kept as `old`."""
    program = hello(tmp_path, f"-Wl,--build-id=0x{OLD}")
    path = tmp_path / "perf.data"
    path.write_bytes(recording(program, build_id=bytes.fromhex(OLD)))
    program.rename(tmp_path / "old")
    hello(tmp_path, f"-Wl,--build-id=0x{NEW}")
    return path


def test_a_program_that_was_rebuilt_since_is_told_once_and_with_advice(rebuilt: Path) -> None:
    for args in ([], ["--compare", "cfi"]):
        done = unwind(rebuilt, *args)
        assert done.returncode == 1
        (line,) = [line for line in complaints(done) if "was recorded" in line]
        assert line.startswith(
            f"{rebuilt}: {rebuilt.with_name('hello')}: the file there has the build ID {NEW}, and {OLD}"
        )
        assert line.count("hello") == 1
        assert "--sysroot" in line
        assert "--buildid-dir" in line


@pytest.mark.whole
@pytest.mark.parametrize("layout", [f"{OLD[2:]}/elf", OLD[2:]], ids=["folder", "file"])
def test_a_program_that_was_rebuilt_since_is_found_in_perfs_cache(layout: str, rebuilt: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache" / ".build-id" / OLD[:2] / layout
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "old")
    done = unwind("--buildid-dir", tmp_path / "cache", rebuilt)
    assert (done.returncode, done.stdout.decode().splitlines()) == (0, FOLDED)
    assert complaints(done)[0] == f"{rebuilt}: {CUT}"
    # The usual place comes from the environment, and a file found there must have the recorded build ID.
    assert unwind(rebuilt, env={"PERF_BUILDID_DIR": str(tmp_path / "cache")}).stdout == done.stdout
    place.unlink()
    place.symlink_to(tmp_path / "hello")
    assert unwind("--buildid-dir", tmp_path / "cache", rebuilt).returncode == 1


def test_a_file_without_recorded_build_id_that_has_changed_since_is_doubted(recorded: Path, tmp_path: Path) -> None:
    program = tmp_path / "hello"
    doubt = f"{recorded}: recorded without build IDs, and changed since, so that names may be wrong: {program}"
    assert doubt not in complaints(unwind(recorded))
    before = program.stat().st_ctime_ns - 1
    os.utime(recorded, ns=(before, before))
    for args in ([], ["--compare", "cfi"]):
        assert doubt in complaints(unwind(recorded, *args))
    assert unwind(recorded).stdout.decode().splitlines() == FOLDED
    # Files that somebody has fetched are younger, and the right ones all the same.
    assert doubt not in complaints(unwind("--sysroot", "/", recorded))


def test_a_damaged_file_in_perfs_cache_is_named(rebuilt: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache" / ".build-id" / OLD[:2] / OLD[2:] / "elf"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"damaged")
    lines = complaints(unwind("--buildid-dir", tmp_path / "cache", rebuilt))
    assert any(f"{place}: this is not an ELF file" in line for line in lines)


@pytest.mark.whole
@pytest.mark.parametrize("form", ["pprof", "speedscope", "firefox", "top"])
def test_periods_of_clocks_are_nanoseconds(form: str, recorded: Path) -> None:
    written = unwind("--weight", "period", "--format", form, recorded).stdout
    if form == "pprof":
        assert b"nanoseconds" in gzip.decompress(written)
    elif form == "speedscope":
        assert {one["unit"] for one in json.loads(written)["profiles"]} == {"nanoseconds"}
    elif form == "firefox":
        (samples,) = [one["samples"] for one in json.loads(written)["threads"]]
        assert (samples["weightType"], sum(samples["weight"])) == ("tracing-ms", pytest.approx(0.021))
    else:
        assert b"6 samples, 21000 nanoseconds" in written


def test_many_missing_files_are_not_all_told(tmp_path: Path) -> None:
    made = Builder(attrs=[Attr(IP | TID | TIME | CALLCHAIN)])
    for number in range(50):
        start = 0x10000 * (number + 1)
        made.mmap2(PID, start, 0x1000, 0, f"/nowhere/lib{number}.so", time=1)
        made.sample(ip=start + 16, pid=PID, tid=PID, time=2 + number, chain=[2**64 - 512, start + 16])
    path = tmp_path / "perf.data"
    path.write_bytes(made.file())
    lines = complaints(unwind(path))
    assert len(lines) <= 23
    assert lines[-1] == f"{path}: and 30 more like these"


def test_lines_of_source_files(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recording(hello(tmp_path, "-g")))
    found = [json.loads(line) for line in unwind("--lines", "--json", path).stdout.splitlines()]
    if "line" not in found[0]["frames"][0]:
        pytest.skip("needs llvm-symbolizer or addr2line")
    assert {Path(frame["file"]).name for one in found for frame in one["frames"]} == {"hello.s"}


@pytest.mark.whole
def test_recorded_call_chains_are_kept_where_there_are_no_registers(tmp_path: Path) -> None:
    hello(tmp_path)
    made = Builder(attrs=[Attr(IP | TID | TIME | CALLCHAIN)])
    made.comm(PID, PID, "hello", time=1)
    made.mmap2(PID, 0x401000, 0x2C, 0x1000, str(tmp_path / "hello"), time=2)
    chain = [2**64 - 128, 0xFFFFFFFF81000010, 2**64 - 512, 0x40101D, 0x401017, 0x401005]
    made.sample(ip=chain[1], pid=PID, tid=PID, time=3, chain=chain)
    path = tmp_path / "perf.data"
    path.write_bytes(made.file())
    done = unwind(path)
    assert done.stdout == b"hello;_start;main;compute;[kernel.kallsyms] 1\n"
    assert unwind("--no-kernel", path).stdout == b"hello;_start;main;compute 1\n"
    assert unwind("--kernel", path).stdout == done.stdout
    compared = unwind("--compare", "sframe,fp", path)
    assert compared.returncode == 1
    assert (
        complaints(compared)[0]
        == f"{path}: no sample has registers and stack; perf record --call-graph dwarf,16384 records them"
    )
    assert [line.split()[1:4] for line in compared.stdout.decode().splitlines()[1:]] == [["0", "-", "-"]] * 2
    assert complaints(done) == [
        f"{path}: 1 of 1 stack not complete: 1 no-registers",
        f"{path}: no sample has registers and stack; perf record --call-graph dwarf,16384 records them",
    ]
    found = json.loads(unwind("--json", path).stdout)
    assert {frame["how"] for frame in found["frames"]} == {"recorded"}


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
    own = DOCS.read_text().partition("## `walkback unwind`")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|[^|]*\|([^|]*)\|", own, re.MULTILINE))))
    one, other = map(json.loads, unwind("--compare", "fp,sframe", "--json", recorded).stdout.splitlines())
    assert (one["method"], other["method"]) == ("fp", "sframe")
    assert set(one) <= documented
    assert one["ends"] == {"no-progress": 4} or sum(one["ends"].values()) == 6
    assert sum(one["hows"].values()) == one["frames"] == 10


# Errors


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
    assert f"{path}: the kernel lost 77 records for want of room (perf record -m makes more)" in complaints(
        unwind(path)
    )


# Output


@pytest.mark.whole
@pytest.mark.usefixtures("interruptible")
def test_the_output_is_there_whole_or_not_at_all(long: Path, tmp_path: Path) -> None:
    output = tmp_path / "folder" / "output"
    output.parent.mkdir()
    output.write_text("old")
    for number, (form, signals) in enumerate(
        [("json", signal.SIGKILL), ("json", signal.SIGTERM), ("json", signal.SIGINT)]
    ):
        with subprocess.Popen(
            [WALKBACK, "unwind", "--format", form, "-o", output, long], stderr=subprocess.PIPE
        ) as process:
            files = 2 if number == 0 else 3
            assert eventually(lambda files=files: len(list(output.parent.iterdir())) == files)
            process.send_signal(signals)
            assert process.wait() == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[signals]
        assert output.read_text() == "old"
        assert len(list(output.parent.iterdir())) == 2  # that of the killed one stays


def test_what_is_read_is_not_written_over(recorded: Path, tmp_path: Path) -> None:
    """A recording cannot be made again."""
    before = recorded.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(recorded)
    for arguments in (
        ["-o", recorded, recorded],
        ["-o", link, recorded],
        ["--compare", "fp", "--chart", recorded, link],
    ):
        assert unwind(*arguments).returncode == 2
    assert recorded.read_bytes() == before


def test_an_output_that_cannot_be_written(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "output"
    for form in ("folded", "json"):
        assert told(unwind("--format", form, "-o", path, recorded)) == (
            3,
            f"cannot write {path}: No such file or directory",
        )
    assert told(unwind("--compare", "fp", "--chart", path, recorded))[0] == 3
    for form in ("folded", "json"):
        with Path("/dev/full").open("w") as full:
            done = unwind("--format", form, recorded, stdout=full)
        assert told(done) == (3, "cannot write the output: No space left on device")
    assert not any(one.name.startswith(".walkback") for one in tmp_path.iterdir())


@pytest.mark.whole
def test_a_reader_that_has_seen_enough_ends_it_quietly(long: Path) -> None:
    with subprocess.Popen(
        [WALKBACK, "unwind", "--json", long], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def with_errors_on_a_terminal(*args: object) -> tuple[bytes, bytes]:
    """What a command writes to a pipe, and what to the terminal that its standard error is."""
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, 0x5414, struct.pack("4H", 24, 100, 0, 0))  # TIOCSWINSZ
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        [WALKBACK, *map(str, args)], stdout=subprocess.PIPE, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        shown = b""
        os.set_blocking(leader, False)
        end = time.monotonic() + 60
        done = False
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        out = b""
        while time.monotonic() < end and not done:
            done = process.poll() is not None
            out += process.stdout.read() or b""
            try:
                shown += os.read(leader, 65536)
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                pass
    os.close(leader)
    return out, shown


@pytest.mark.whole
def test_a_bar_is_shown_on_terminals_only(long: Path, recorded: Path) -> None:
    out, shown = with_errors_on_a_terminal("unwind", "--json", long)
    assert b"unwinding" in shown
    assert b"\x1b" not in out
    assert len(out.splitlines()) == 120_000
    assert b"\x1b" not in unwind(recorded).stderr
    assert b"comparing" in with_errors_on_a_terminal("unwind", "--compare", "fp", long)[1]


def test_a_terminal(recorded: Path) -> None:
    shown = on_a_terminal("unwind", "--json", recorded)
    assert b"unwinding" not in shown  # lines that come one by one would tear the bar
    assert b'"end":"stack-cut"}\r\n' in shown
    assert b"--format pprof is not for a terminal; use -o FILE, or a pipe" in on_a_terminal(
        "unwind", "--format", "pprof", recorded
    )
    assert "█".encode() in on_a_terminal("unwind", "--compare", "sframe,fp", recorded)
    assert "█".encode() not in unwind("--compare", "sframe,fp", recorded).stdout


# perf


@pytest.mark.peers
def test_a_real_recording_of_a_program_that_was_rebuilt_since(tmp_path: Path) -> None:
    program, path, cache = compiled(tmp_path, THREADS), tmp_path / "perf.data", tmp_path / "cache"
    limited = ("timeout", "--foreground", "-s", "TERM", "1", program)
    way = ("-q", "-e", "cpu-clock", "-F", "99", "--call-graph", "dwarf,4096")
    done = perf("--buildid-dir", cache, "record", *way, "-o", path, "--", *limited)
    if not path.exists():
        pytest.skip(f"perf cannot record so here: {done.stderr.decode()[-200:]}")
    compiled(tmp_path, THREADS, "-O3", "-DREBUILT")
    script = unwind("--format", "perf-script", "--buildid-dir", cache, path).stdout.decode()
    theirs = perf("--buildid-dir", cache, "script", "-i", path).stdout.decode()
    assert script.count("busy+0x") == theirs.count("busy+0x") > 10


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
