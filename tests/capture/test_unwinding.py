"""Recordings unwound: batches, recorded chains where there are no registers, sums, and what cannot be had."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfbuilder import CALLCHAIN, CPU, IP, TID, TIME, Attr, Builder
from recorded import KINDS, PID, SP, hello, in_compute, recording, symbols, text
from walkback.base.errors import ArgumentError, UnreadableError
from walkback.capture.unwinding import Collector, Unwinding, unwind
from walkback.export.formats import FORMATS
from walkback.stacks.profile import Profile, SampleBatch
from walkback.stacks.stacks import End, How

pytestmark = pytest.mark.kernel

USER, THE_KERNEL = 2**64 - 512, 2**64 - 128
IN_KERNEL = 0xFFFFFFFF81000010


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return hello(tmp_path)


@pytest.fixture
def recorded(tmp_path: Path, program: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(recording(program))
    return path


def written(path: Path, made: Builder) -> Path:
    path.write_bytes(made.file())
    return path


def builder(program: Path, *attrs: Attr) -> Builder:
    made = Builder(attrs=list(attrs))
    made.comm(PID, PID, "hello", time=1)
    start, size, offset = text(program)
    made.mmap2(PID, start, size, offset, str(program), time=2)
    return made


def stacks(batch: SampleBatch) -> list[list[str]]:
    labels = batch.frames.labels()
    return [
        [labels[number] for number in batch.frame[first:end].tolist()]
        for first, end in zip(batch.first[:-1].tolist(), batch.first[1:].tolist(), strict=True)
    ]


def folded(found: Profile) -> list[str]:
    out = io.BytesIO()
    FORMATS["folded"].export(found, out)
    return out.getvalue().decode().splitlines()


def test_batches_have_columns_of_samples_and_frames(recorded: Path) -> None:
    (batch,) = Unwinding(recorded)
    assert stacks(batch) == [["compute", "main", "_start"]] * 4 + [["main", "_start"], ["compute"]]
    assert batch.pid.tolist() == batch.tid.tolist() == [PID] * 6
    assert batch.time.tolist() == [1_000_000 * number for number in range(1, 7)]
    assert batch.period.tolist() == [1000 * number for number in range(1, 7)]
    assert [batch.comms[number] for number in batch.comm] == ["hello"] * 6
    assert batch.end.tolist() == [End.COMPLETE] * 5 + [End.STACK_CUT]
    assert (batch.pc - batch.lookup).tolist() == [0, 1, 1] * 4 + [0, 1, 0]
    assert batch.cpu is None
    assert batch.events == ["cpu-clock"]


def test_names_and_frames_stay_from_batch_to_batch(tmp_path: Path, program: Path) -> None:
    path = tmp_path / "many.data"
    path.write_bytes(recording(program, times=2000))
    batches = list(Unwinding(path))
    assert len(batches) > 1
    assert sum(map(len, batches)) == 12_000
    assert {len(batch.frames) for batch in batches} == {4}
    assert np.diff(np.concatenate([batch.time for batch in batches]).astype(np.int64)).min() > 0


def test_processors_where_they_were_recorded(tmp_path: Path, program: Path) -> None:
    made = builder(program, Attr(IP | TID | TIME | CPU | CALLCHAIN))
    made.sample(ip=1, pid=PID, tid=PID, time=3, cpu=5, chain=[USER, 1])
    (batch,) = Unwinding(written(tmp_path / "perf.data", made))
    assert batch.cpu.tolist() == [5]


def test_a_path_a_stream_and_a_pipe_say_the_same(recorded: Path, program: Path) -> None:
    expected = folded(unwind(recorded))
    assert expected == ["hello;_start;main 1", "hello;_start;main;compute 4", "hello;compute 1"]
    assert folded(unwind(str(recorded))) == expected
    with recorded.open("rb") as file:
        assert folded(unwind(file)) == expected
    assert folded(unwind(io.BytesIO(recording(program, pipe=True)))) == expected


def test_options(recorded: Path) -> None:
    assert folded(unwind(recorded, max_stack=1)) == ["hello;compute 5", "hello;main 1"]
    assert folded(unwind(recorded, by_period=True))[0] == "hello;_start;main 5000"
    found = unwind(recorded, only="fp")
    assert End.COMPLETE not in found.end
    (batch,) = Unwinding(recorded, only="sframe", threads=3, cache=False)
    assert set(batch.how.tolist()) == {How.REGISTERS, How.DERIVED}


def test_threads_change_nothing(tmp_path: Path, program: Path) -> None:
    path = tmp_path / "many.data"
    path.write_bytes(recording(program, times=1000))
    one, many = (list(Unwinding(path, threads=threads)) for threads in (1, 5))
    for a, b in zip(one, many, strict=True):
        for name in ("first", "frame", "pc", "lookup", "how", "end"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), name


# Recorded call chains


def test_chains_of_samples_without_registers(tmp_path: Path, program: Path) -> None:
    made = builder(program, Attr(IP | TID | TIME | CALLCHAIN))
    made.sample(
        ip=IN_KERNEL, pid=PID, tid=PID, time=3,
        chain=[THE_KERNEL, IN_KERNEL, IN_KERNEL + 64, USER, 0x40101D, 0x401017, 0x401005, 0x999],
    )  # fmt: skip
    made.sample(ip=0x40101D, pid=PID, tid=PID, time=4, chain=[])
    made.sample(ip=IN_KERNEL, pid=PID, tid=PID, time=5, chain=[THE_KERNEL, IN_KERNEL])
    made.sample(ip=0x401011, pid=PID, tid=PID, time=6, chain=[USER, 0x401011])
    path = written(tmp_path / "perf.data", made)
    (batch,) = Unwinding(path)
    kernel = "[kernel.kallsyms]"
    assert stacks(batch) == [
        [kernel, kernel, "compute", "main", "_start", "[unknown]"],
        [],
        [kernel],
        ["main"],
    ]
    assert set(batch.how.tolist()) == {How.RECORDED}
    assert set(batch.end.tolist()) == {End.NO_REGISTERS}
    assert (batch.pc - batch.lookup).tolist() == [0, 0, 0, 1, 1, 1, 0, 0]
    (batch,) = Unwinding(path, kernel=False)
    assert stacks(batch) == [["compute", "main", "_start", "[unknown]"], [], [], ["main"]]


def test_some_samples_have_registers_and_some_have_none(tmp_path: Path, program: Path) -> None:
    made = builder(program, Attr(KINDS, regs_user=0b111 << 6, stack_user=1024))
    registers, stack = in_compute(symbols(program))
    values = {6: registers["rbp"], 7: registers["rsp"], 8: registers["rip"]}
    for number in range(40):
        more: dict[str, Any] = {"registers": values, "stack": stack} if number % 3 else {}
        chain = [[], [THE_KERNEL, IN_KERNEL], [USER, 0x401011, 0x401005]][number % 4 % 3]
        made.sample(ip=registers["rip"], pid=PID, tid=PID, time=10 + number, chain=chain, **more)
    (batch,) = Unwinding(written(tmp_path / "perf.data", made))
    for number, found in enumerate(stacks(batch)):
        kernel = ["[kernel.kallsyms]"] if number % 4 % 3 == 1 else []
        own = ["main", "_start"] if number % 4 % 3 == 2 else []
        assert found == kernel + (["compute", "main", "_start"] if number % 3 else own)
        # Registers are recorded, and what has none is a thread of the kernel, whose whole stack the chain holds.
        is_whole = number % 3 or kernel
        assert batch.end[number] == (End.COMPLETE if is_whole else End.NO_REGISTERS)


def test_chains_in_processes_of_their_own(tmp_path: Path, program: Path) -> None:
    made = builder(program, Attr(IP | TID | TIME | CALLCHAIN))
    start, size, offset = text(program)
    made.mmap2(7, start + (1 << 32), size, offset, str(program), time=2)
    made.sample(ip=0x40101D, pid=PID, tid=PID, time=3, chain=[USER, 0x40101D])
    made.sample(ip=0x40101D, pid=7, tid=7, time=4, chain=[USER, 0x40101D + (1 << 32), 0x40101D])
    made.sample(ip=0x40101D, pid=8, tid=8, time=5, chain=[USER, 0x40101D])
    (batch,) = Unwinding(written(tmp_path / "perf.data", made))
    assert stacks(batch) == [["compute"], ["compute", "[unknown]"], ["[unknown]"]]


# Sums


def test_a_profile_knows_threads_times_and_files(recorded: Path, program: Path) -> None:
    unwinding = Unwinding(recorded)
    collector = Collector(unwinding, threads=True, times=True)
    for batch in unwinding:
        collector.add(batch)
    found = collector.profile()
    assert found.title == str(recorded)
    assert found.duration == 5_000_000
    assert found.unit == "samples"
    assert set(found.pid.tolist()) == set(found.tid.tolist()) == {PID}
    assert found.timeline is not None
    assert len(found.timeline) == 6
    assert [one.file for one in found.mappings] == [str(program)]
    assert found.count.sum() == found.weight.sum() == 6
    plain = unwind(recorded, by_period=True)
    assert (plain.timeline, plain.pid, plain.unit) == (None, None, "nanoseconds")
    assert plain.weight.sum() == 21_000


def test_a_recording_without_samples(tmp_path: Path, program: Path) -> None:
    found = unwind(written(tmp_path / "perf.data", builder(program, Attr(KINDS))))
    assert (len(found.weight), found.duration, folded(found)) == (0, 0, [])


# What cannot be had


def test_a_file_that_is_not_there_is_told_once(recorded: Path, program: Path) -> None:
    program.unlink()
    unwinding = Unwinding(recorded)
    (batch,) = unwinding
    assert stacks(batch)[0][0] == "[hello]"
    assert unwinding.troubles == [f"{program}: No such file or directory"]


def test_another_file_than_was_recorded_is_not_taken(tmp_path: Path, program: Path) -> None:
    made = Builder(attrs=[Attr(KINDS, regs_user=0b111 << 6, stack_user=1024)])
    start, size, offset = text(program)
    made.mmap2(PID, start, size, offset, str(program), time=2, build_id=bytes(range(20)))
    made.sample(ip=0x40101D, pid=PID, tid=PID, time=3, registers={6: 0, 7: SP, 8: 0x40101D}, stack=bytes(64))
    unwinding = Unwinding(written(tmp_path / "perf.data", made))
    (batch,) = unwinding
    assert stacks(batch)[0] == ["[hello]"]
    (line,) = unwinding.troubles
    assert bytes(range(20)).hex() in line


def test_what_is_no_recording(tmp_path: Path, program: Path) -> None:
    for source in (program, tmp_path / "missing", tmp_path, io.BytesIO(b"some text"), io.BytesIO()):
        with pytest.raises(UnreadableError):
            Unwinding(source)


def test_a_recording_in_memory_is_read_like_its_file(recorded: Path) -> None:
    data = recorded.read_bytes()
    with recorded.open("rb") as file:
        sources: list[Any] = [recorded, file, data, memoryview(data), io.BytesIO(data)]
        columns = [unwind(source).columns() for source in sources]
    stacks = [list(zip(its["stack"].tolist(), its["weight"].tolist(), strict=True)) for its in columns]
    assert sum(weight for _, weight in stacks[0]) == 6
    assert stacks == stacks[:1] * len(sources)


@pytest.mark.parametrize("source", [None, ["a", "text"], 1.5], ids=["nothing", "list", "number"])
def test_what_is_no_recording_at_all_is_a_wrong_type(source: Any) -> None:
    with pytest.raises(TypeError, match="a path, bytes, or a stream of bytes is needed"):
        unwind(source)


def test_a_stream_has_its_own_bytes_and_not_those_of_a_file_below(recorded: Path) -> None:
    packed = recorded.with_suffix(".gz")
    packed.write_bytes(gzip.compress(recorded.read_bytes()))
    with gzip.open(packed) as file, pytest.raises(UnreadableError, match="give it as a file"):
        unwind(file)  # type: ignore[arg-type]


def test_an_empty_recording_has_the_name_that_it_was_given(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"^<bytes>: the file is empty$"):
        unwind(b"")
    (tmp_path / "empty").touch()
    with (tmp_path / "empty").open("rb") as file, pytest.raises(UnreadableError, match=r"/empty: the file is empty$"):
        unwind(file)


def test_a_stream_that_does_not_wait_is_refused() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with (
        open(reading, "rb", buffering=0) as pipe,
        open(writing, "wb"),
        pytest.raises(UnreadableError, match="nothing to read yet"),
    ):
        unwind(pipe)


def test_a_recording_is_walked_once(recorded: Path) -> None:
    unwinding = Unwinding(recorded)
    assert list(unwinding)
    with pytest.raises(ArgumentError, match="has been read; open it again"):
        list(unwinding)
