"""`walkback unwind`: what its options choose, and what it says of weights, lines and recorded chains."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cli.walked import FOLDED, complaints, unwind
from perfbuilder import CALLCHAIN, IP, TID, TIME, Attr, Builder
from recorded import PID, hello, recording

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("own_cache")]


def test_weights(recorded: Path) -> None:
    done = unwind("--weight", "period", recorded)
    assert done.stdout.decode().splitlines() == [
        "hello;_start;main 5000",
        "hello;_start;main;compute 10000",
        "hello;compute 6000",
    ]
    assert unwind("--weight", "samples", recorded).stdout == unwind(recorded).stdout


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
