"""The same samples in every form of a recording, with any number of threads and in every format: the same stacks."""

from __future__ import annotations

import json
import os
import platform
import re
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

import perfbuilder as pb
from perfbuilder import Attr, Builder
from recorded import hello, in_compute, recording, symbols, text
from recordings.differences import class_of, first_difference
from recordings.dumps import dumped
from recordings.perfprograms import PROGRAMS, command_of
from recordings.perfscript import ours, perf, record, theirs
from waiting import PATIENCE

INLINED = 5
"""What `flamegraph_colours.js` calls so."""

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the programs are for this machine"),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forms")
    program = replace(PROGRAMS["signals"], options=("-g", *PROGRAMS["signals"].options))
    return record(folder / "perf.data", command_of(program, folder))


def unwind(*arguments: Path | str, stdin: IO[bytes] | None = None) -> subprocess.CompletedProcess[bytes]:
    """The verb, in a process of its own."""
    command = [sys.executable, "-m", "walkback", "unwind", *arguments]
    return subprocess.run(command, stdin=stdin, capture_output=True, timeout=PATIENCE, check=False)


def printed(*arguments: Path | str, stdin: IO[bytes] | None = None) -> str:
    done = unwind(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def through_pipe(path: Path, *arguments: str) -> str:
    """The verb on what comes through a real pipe."""
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        return printed("-", *arguments, stdin=cat.stdout)


def piped(path: Path, folder: Path) -> Path:
    """The same recording in the form for pipes, as perf makes it."""
    output = folder / "pipe.data"
    with output.open("wb") as file:
        subprocess.run([perf(), "inject", "-i", path, "-o", "-"], stdout=file, check=True)
    return output


def compressed(path: Path, folder: Path, pieces: int) -> Path:
    """The same recording with all its records compressed."""
    contents = path.read_bytes()
    begin, size = struct.unpack_from("<2Q", contents, 40)
    (bits,) = struct.unpack_from("<Q", contents, 72)
    builder = Builder()
    builder.compress(contents[begin : begin + size], pieces)
    records = b"".join(builder.records)
    head, tail = bytearray(contents[:begin]), bytearray(contents[begin + size :])
    struct.pack_into("<Q", head, 48, len(records))
    for number in range(bits.bit_count()):
        (place,) = struct.unpack_from("<Q", tail, 16 * number)
        struct.pack_into("<Q", tail, 16 * number, place - size + len(records))
    output = folder / f"compressed{pieces}.data"
    output.write_bytes(bytes(head) + records + bytes(tail))
    return output


def test_forms_are_equal(recorded: Path, tmp_path: Path) -> None:
    expected = printed(recorded, "--json")
    assert expected.count("\n") > 50
    assert printed(compressed(recorded, tmp_path, 50), "--json") == expected
    assert printed(compressed(recorded, tmp_path, 3), "--json") == expected
    pipe = piped(recorded, tmp_path)
    assert through_pipe(pipe, "--json") == expected
    with pipe.open("rb") as file:
        assert printed("-", "--json", stdin=file) == expected
    assert printed(pipe, "--json") == expected
    assert through_pipe(pipe) == printed(recorded)


def test_threads_are_equal(recorded: Path) -> None:
    one = printed(recorded, "--json", "--threads", "1")
    assert printed(recorded, "--json", "--threads", "4") == one
    assert printed(recorded, "--json", "--threads", "4", "--no-cache") == one


def test_a_recording_that_perf_has_compressed(tmp_path: Path) -> None:
    program = PROGRAMS["aligned"]
    path = record(tmp_path / "perf.data", command_of(program, tmp_path), "-z")
    sizes = dumped(path)
    shown = {(one.tid, one.time): one for one in theirs(path)}
    walked = ours(path)
    assert len(walked) == len(shown) > 50
    for one in walked:
        difference = first_difference(shown[one.tid, one.time], one, sizes[one.tid, one.time])
        assert difference is None or class_of(difference) is not None


def test_a_recording_that_comes_through_a_pipe_as_it_is_made(tmp_path: Path) -> None:
    program = command_of(PROGRAMS["aligned"], tmp_path)
    command = [perf(), "record", "-q", "-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,8192", "-o", "-"]
    with subprocess.Popen(
        [*command, "--no-bpf-event", "--", *program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as recorder:
        out = printed("-", "--json", stdin=recorder.stdout)
    samples = [json.loads(line) for line in out.splitlines()]
    assert len(samples) > 50
    assert sum(one["end"] == "complete" for one in samples) > len(samples) // 2
    assert any(frame["symbol"] == "aligned" for one in samples for frame in one["frames"])


def label(symbol: str | None, module: str | None) -> str:
    """The name of a frame in `perf-script`, with the file's in place of one that is not known."""
    if symbol:
        return symbol
    name = (module or "").rpartition("/")[2]
    return name if name.startswith("[") else f"[{name or 'unknown'}]"


def test_formats_say_the_same(recorded: Path) -> None:
    samples = [json.loads(line) for line in printed(recorded, "--json").splitlines()]
    stacks = [[label(frame["symbol"], frame["module"]) for frame in one["frames"]] for one in samples]
    script: list[Any] = []
    for line in printed(recorded, "--format", "perf-script").splitlines():
        if line.startswith("\t"):
            _, _, rest = line.strip().partition(" ")
            name, module = re.fullmatch(r"(.*) \((.*)\)", rest).groups()
            name = re.sub(r"\+0x[0-9a-f]+$", "", name)
            script[-1].append(label("" if name == "[unknown]" else name, "" if module == "[unknown]" else module))
        elif line:
            script.append([])
    assert script == stacks
    assert any(frame["how"] == "inlined" for one in samples for frame in one["frames"])
    for sample, stack in zip(samples, stacks, strict=True):
        stack[:] = [
            name + "_[i]" * (frame["how"] == "inlined") for name, frame in zip(stack, sample["frames"], strict=True)
        ]
    folded = Counter(";".join([one["comm"], *reversed(stack)]) for one, stack in zip(samples, stacks, strict=True))
    found = dict(line.rsplit(" ", 1) for line in printed(recorded).splitlines())
    assert {stack: int(count) for stack, count in found.items()} == dict(folded)
    (drawn,) = re.findall(r'application/json">(.*?)</script>', printed(recorded, "--format", "html"))
    graph = json.loads(drawn)
    inlined = {name for name, kind in zip(graph["names"], graph["kind"], strict=True) if kind == INLINED}
    assert inlined == {name.removesuffix("_[i]") for stack in stacks for name in stack if name.endswith("_[i]")}


def test_lost_records_are_counted(tmp_path: Path) -> None:
    program = hello(tmp_path)
    made = recording(program)
    begin, size = struct.unpack_from("<2Q", made, 40)
    lost = struct.pack("<IHHQQ", 2, 0, 24, 1, 17) * 2
    (tmp_path / "lost.data").write_bytes(_with_records(made, begin, size, lost))
    done = unwind(tmp_path / "lost.data")
    assert b"lost 34 records" in done.stderr
    (tmp_path / "whole.data").write_bytes(made)
    whole = unwind(tmp_path / "whole.data")
    assert whole.stdout == done.stdout
    assert b"the kernel lost" not in whole.stderr


def _with_records(contents: bytes, begin: int, size: int, more: bytes) -> bytes:
    """More records at the end of a file's; its features move."""
    head, tail = bytearray(contents[:begin]), bytearray(contents[begin + size :])
    struct.pack_into("<Q", head, 48, size + len(more))
    bits = sum(word.bit_count() for word in struct.unpack_from("<4Q", contents, 72))
    for number in range(bits):
        (place,) = struct.unpack_from("<Q", tail, 16 * number)
        struct.pack_into("<Q", tail, 16 * number, place + len(more))
    return bytes(head) + contents[begin : begin + size] + more + bytes(tail)


def test_kernel_chains_stand_before_the_program(tmp_path: Path) -> None:
    program = hello(tmp_path)
    names = symbols(program)
    attr = Attr(
        pb.IP | pb.TID | pb.TIME | pb.CALLCHAIN | pb.REGS_USER | pb.STACK_USER, regs_user=0x1C0, stack_user=1024
    )
    made = Builder(attrs=[attr])
    start, size, offset = text(program)
    made.comm(7, 7, "hello", time=1)
    made.mmap2(7, start, size, offset, os.fspath(program), time=2)
    registers, stack = in_compute(names)
    kernel = [0xFFFFFFFF81000123, 0xFFFFFFFF81000456]
    made.sample(
        pid=7, tid=7, time=3, ip=kernel[0], misc=pb.KERNEL, chain=[pb.CONTEXT_KERNEL, *kernel], stack=stack,
        registers={6: registers["rbp"], 7: registers["rsp"], 8: registers["rip"]},
    )  # fmt: skip
    (tmp_path / "perf.data").write_bytes(made.file())
    (one,) = [json.loads(line) for line in printed(tmp_path / "perf.data", "--json").splitlines()]
    assert [frame["pc"] for frame in one["frames"]][:3] == [*kernel, registers["rip"]]
    assert [frame["how"] for frame in one["frames"]][:3] == ["recorded", "recorded", "registers"]
    assert one["end"] == "complete"
    (without,) = [json.loads(line) for line in printed(tmp_path / "perf.data", "--json", "--no-kernel").splitlines()]
    assert without["frames"] == one["frames"][2:]
