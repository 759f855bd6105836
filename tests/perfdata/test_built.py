"""Recordings made by hand: what no machine here records, both byte orders, every kind of field."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfbuilder as pb
from perfbuilder import Attr, Builder
from walkback.base.arch import ByteOrder
from walkback.base.errors import UnreadableError
from walkback.capture.perfdata import Recording
from walkback.capture.perfdata.batch import RecordedBatch
from walkback.naming.modules import Modules

pytestmark = pytest.mark.kernel

BASE = pb.IP | pb.TID | pb.TIME | pb.CPU | pb.PERIOD
WALKABLE = BASE | pb.REGS_USER | pb.STACK_USER
ORDERS: dict[str, ByteOrder] = {"x86_64": "little", "aarch64": "little", "s390x": "big"}


def read(contents: bytes, tmp_path: Path, **more: Any) -> tuple[Recording, list[RecordedBatch]]:
    path = tmp_path / "perf.data"
    path.write_bytes(contents)
    recording = Recording.open(path, Modules(), **more)
    return recording, list(recording.batches())


def only(contents: bytes, tmp_path: Path, **more: Any) -> tuple[Recording, RecordedBatch]:
    recording, batches = read(contents, tmp_path, **more)
    assert not recording.troubles
    assert len(batches) == 1
    return recording, batches[0]


def walkable(machine: str = "x86_64", **more: Any) -> Builder:
    more = {"sample_type": WALKABLE, "regs_user": pb.MASKS[machine], "stack_user": 64} | more
    return Builder(ORDERS[machine], machine, [Attr(**more)])


# Fields

LISTS = {
    "none": {},
    "lengths": {
        "chain": [pb.CONTEXT_USER, 1, 2], "raw": b"12345678901", "branches": [(1, 2, 3), (4, 5, 6)],
    },
}  # fmt: skip


@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("values", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("seed", range(24))
def test_any_fields_before_the_stack(byteorder: ByteOrder, values: dict[str, Any], seed: int, tmp_path: Path) -> None:
    chosen = int(np.random.default_rng(seed).integers(0, 1 << 24))
    kinds = chosen | WALKABLE
    builder = Builder(byteorder, "x86_64", [Attr(kinds, regs_user=pb.MASKS["x86_64"], read_format=1 << 2)])
    builder.attrs[0].ids = (77,)
    builder.attrs[0].branches = (chosen & 1) << 17
    registers = {bit: 1000 + bit for bit in range(24)}
    for i in range(3):
        builder.sample(
            ip=0x1234, pid=5, tid=6 + i, time=100 + i, cpu=i, period=9, registers=registers, stack=bytes(range(64)),
            **values, read=[9 * (i + 1), 77],
        )  # fmt: skip
    for contents in (builder.file(), builder.pipe()):
        recording, batch = only(contents, tmp_path)
        assert recording.counts.damaged == 0
        assert recording.byteorder == byteorder
        assert batch.pid.tolist() == [5] * 3
        assert batch.tid.tolist() == [6, 7, 8]
        assert batch.time.tolist() == [100, 101, 102]
        assert batch.cpu.tolist() == [0, 1, 2]
        assert batch.period.tolist() == [9] * 3
        memory = batch.samples.memory
        assert memory.start.tolist() == [1007] * 3
        assert memory.size.tolist() == [64] * 3
        for offset in memory.offset.tolist():
            assert bytes(memory.buffer[offset : offset + 64]) == bytes(range(64))
        assert batch.samples.cut.tolist() == [1007 + 64] * 3
        chain = batch.chain_pc[: batch.chain_first[1]].tolist()
        if kinds & pb.CALLCHAIN:
            assert chain == values.get("chain", [])[1:]
        else:
            assert chain == [0x1234]


@pytest.mark.parametrize("form", range(32))
def test_every_read_format(form: int, tmp_path: Path) -> None:
    group, times, each = form >> 3 & 1, (form & 1) + (form >> 1 & 1), 1 + (form >> 2 & 1) + (form >> 4 & 1)
    builder = walkable(sample_type=WALKABLE | pb.READ | pb.CALLCHAIN, read_format=form)
    members = 3 if group else 1
    builder.attrs[0].ids = (8,)
    values = ([members] if group else [1]) + [4] * times + [8] * (members * each - (0 if group else 1))
    builder.sample(read=values, chain=[pb.CONTEXT_KERNEL, 5, 6, pb.CONTEXT_USER, 7], registers={7: 3}, stack=b"x" * 8)
    _, batch = only(builder.file(), tmp_path)
    assert batch.chain_pc.tolist() == [5, 6, 7]
    assert batch.chain_kernel.tolist() == [True, True, False]


def test_contexts_of_chains(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE | pb.CALLCHAIN)])
    builder.sample(misc=pb.KERNEL, chain=[1, pb.CONTEXT_GUEST, 2, pb.CONTEXT_USER, 3, 4])
    builder.sample(misc=pb.USER, chain=[5])
    builder.sample(misc=4, chain=[6, 7])
    builder.sample(chain=[pb.CONTEXT_KERNEL, 8, 2**64 - 640, 99, pb.CONTEXT_USER])
    _, batch = only(builder.file(), tmp_path)
    assert batch.chain_first.tolist() == [0, 3, 4, 4, 5]
    assert batch.chain_pc.tolist() == [1, 3, 4, 5, 8]
    assert batch.chain_kernel.tolist() == [True, False, False, False, True]
    assert batch.samples.known.tolist() == [0] * 4


# Machines


@pytest.mark.parametrize("machine", pb.MASKS)
def test_registers_of_each_machine(machine: str, tmp_path: Path) -> None:
    builder = walkable(machine)
    builder.sample(registers={bit: 100 + bit for bit in range(64)}, stack=b"12345678", room=64)
    recording, batch = only(builder.file(), tmp_path)
    row = batch.samples.registers[0].tolist()
    known = int(batch.samples.known[0])
    names = recording.machine.register_names
    if machine == "x86_64":
        order = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "pc", *"......."]
        order += [f"r{number}" for number in range(8, 16)]
        assert row[16] == 108
    elif machine == "aarch64":
        order = [*(f"x{number}" for number in range(31)), "sp", "pc"]
    else:
        order = [*(f"r{n}" for n in range(16)), *(f"f{n}" for n in range(16)), ".", "pc"]
    expected = {32 if name == "pc" else names.index(name): 100 + bit for bit, name in enumerate(order) if name != "."}
    if machine == "x86_64":
        expected[16] = 108
    assert {column: value for column, value in enumerate(row) if known >> column & 1} == expected
    assert batch.samples.memory.start[0] == row[recording.machine.sp]
    assert batch.samples.memory.size[0] == 8
    assert batch.samples.cut[0] == 0


@pytest.mark.parametrize("machine", pb.MASKS)
def test_the_machine_is_seen_by_its_registers(machine: str, tmp_path: Path) -> None:
    builder = walkable(machine)
    builder.sample(registers={}, stack=b"")
    contents = builder.file(data_size=0)
    recording, _ = read(contents, tmp_path)
    assert recording.machine.name == {"x86_64": "AMD64", "aarch64": "AArch64", "s390x": "s390x"}[machine]


def test_samples_without_registers_are_counted(tmp_path: Path) -> None:
    builder = walkable()
    builder.sample(registers=None)
    builder.sample(registers={7: 5}, abi=1, stack=b"x" * 8)
    builder.sample(registers={7: 5}, stack=b"")
    builder.sample(registers={7: 2**64 - 4}, stack=b"x" * 8)
    recording, batch = only(builder.file(), tmp_path)
    assert (recording.counts.without_registers, recording.counts.narrow) == (1, 1)
    assert [bool(known) for known in batch.samples.known.tolist()] == [False, False, True, True]
    assert batch.samples.memory.size.tolist() == [0, 0, 0, 0]
    assert batch.samples.end_segment.tolist() == batch.samples.first_segment.tolist()


# Events


@pytest.mark.parametrize("kinds", [pb.IDENTIFIER, pb.ID])
@pytest.mark.parametrize("size", [72, 96, 112, 136, 200])
def test_events_are_told_apart_by_their_ids(kinds: int, size: int, tmp_path: Path) -> None:
    first = Attr(BASE | kinds, "one", (11, 12), size=size, freq=True, period=4000)
    second = Attr((BASE | kinds) & ~pb.PERIOD, "two", (21,), size=size, period=500)
    builder = Builder(attrs=[first, second])
    builder.comm(1, 1, "name", time=4)
    builder.sample(1, pid=1, tid=1, time=6)
    builder.sample(0, pid=1, tid=1, time=5, id=12, period=3)
    builder.sample(0, id=999)
    builder.sample(0, id=0, time=7)
    for contents in (builder.file(), builder.pipe()):
        recording, batch = only(contents, tmp_path)
        assert recording.events == ["one", "two"]
        assert batch.event.tolist() == [0, 1, 0]
        assert batch.period.tolist() == [3, 500, 1]
        assert batch.time.tolist() == [5, 6, 7]
        assert recording.counts.unknown_ids == 1


def test_names_of_events_that_the_header_lacks(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE, "")])
    builder.sample()
    assert only(builder.file(), tmp_path)[0].events == ["cpu-clock"]


# Order


def test_rounds_bring_records_into_order(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE)])
    for times in ([10, 30], [20, 50], [40, 60], [55]):
        for time in times:
            builder.sample(time=time)
        builder.finished_round()
    _, batches = read(builder.file(), tmp_path)
    assert [time for batch in batches for time in batch.time.tolist()] == [10, 20, 30, 40, 50, 55, 60]


def test_records_have_effect_at_their_times(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE)])
    for time in (10, 20, 30):
        builder.sample(pid=1, tid=1, time=time)
    builder.comm(1, 1, "late", time=25)
    builder.comm(1, 1, "early", time=5)
    recording, batch = only(builder.file(), tmp_path)
    assert [recording.comms[i] for i in batch.comm] == ["early", "early", "late"]


def test_records_without_a_time_go_first(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE)])
    builder.sample(pid=1, tid=1, time=10)
    builder.comm(1, 1, "made up", time=0)
    recording, batch = only(builder.file(), tmp_path)
    assert [recording.comms[i] for i in batch.comm] == ["made up"]


def test_without_times_the_order_of_the_file_holds(tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(BASE & ~pb.TIME)])
    builder.sample(pid=1, tid=1)
    builder.comm(1, 1, "one")
    builder.sample(pid=1, tid=1)
    builder.comm(1, 1, "two", misc=pb.EXEC)
    builder.sample(pid=1, tid=1)
    recording, batch = only(builder.file(), tmp_path)
    assert [recording.comms[i] for i in batch.comm] == [":1", "one", "two"]
    assert batch.time.tolist() == [0, 0, 0]


def test_a_bound_lets_the_oldest_go(tmp_path: Path) -> None:
    builder = walkable()
    for i in range(1000):
        builder.sample(time=i + 1, registers={7: 5}, stack=bytes([i % 256]) * 64)
    stream = io.BytesIO(builder.pipe())
    recording = Recording.open(stream, Modules(), bound=1000)
    batches = list(recording.batches())
    assert recording.counts.early
    assert [time for batch in batches for time in batch.time.tolist()] == list(range(1, 1001))
    for batch in batches:
        for time, offset in zip(batch.time.tolist(), batch.samples.memory.offset.tolist(), strict=True):
            assert batch.samples.memory.buffer[offset] == (time - 1) % 256


# Forms


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("pieces", [1, 7])
def test_compressed_records(two: bool, byteorder: ByteOrder, pieces: int, tmp_path: Path) -> None:
    builder = Builder(byteorder, attrs=[Attr(WALKABLE, regs_user=pb.MASKS["x86_64"])])
    for i in range(50):
        builder.sample(pid=1, tid=1, time=i + 10, registers={7: 5}, stack=bytes([i]) * 800)
    inner = b"".join(builder.records)
    builder.records = []
    builder.comm(1, 1, "name", time=1)
    builder.compress(inner, pieces, two=two)
    builder.finished_round()
    builder.sample(pid=1, tid=1, time=100, registers={7: 5}, stack=bytes([50]) * 800)
    for contents in (builder.file(), builder.pipe()):
        recording, batch = only(contents, tmp_path)
        assert batch.time.tolist() == [*range(10, 60), 100]
        assert {recording.comms[i] for i in batch.comm} == {"name"}
        for i, offset in enumerate(batch.samples.memory.offset.tolist()):
            assert bytes(batch.samples.memory.buffer[offset : offset + 800]) == bytes([i]) * 800


def test_a_stream_in_small_reads(tmp_path: Path) -> None:
    builder = walkable()
    for i in range(20):
        builder.sample(time=i, registers={7: 5}, stack=bytes([i]) * 64)
    drips: Any = Drips(builder.pipe())
    recording = Recording.open(drips, Modules())
    batches = list(recording.batches())
    assert sum(map(len, batches)) == 20
    assert recording.total is None
    assert recording.position() == len(builder.pipe())


class Drips(io.RawIOBase):
    """A stream that gives 7 bytes at a time."""

    def __init__(self, contents: bytes) -> None:
        self.rest = contents

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        count = min(7, len(target), len(self.rest))
        target[:count] = self.rest[:count]
        self.rest = self.rest[count:]
        return count


@pytest.mark.parametrize("size", [1000, 5 << 20])
def test_data_behind_a_record_is_passed_over(size: int, tmp_path: Path) -> None:
    builder = walkable()
    builder.sample(time=1, registers={7: 5}, stack=b"x" * 64)
    builder.record(71, 0, builder.words([size, 0, 0, 0, 0]))
    builder.records.append(bytes(size))
    builder.sample(time=2, registers={7: 5}, stack=b"y" * 64)
    builder.record(200, 0, b"")
    for contents in (builder.file(), builder.pipe()):
        recording, batches = read(contents, tmp_path)
        assert [time for batch in batches for time in batch.time.tolist()] == [1, 2]
        assert recording.counts.unknown_records == 1
        assert not recording.troubles
    recording = Recording.open(io.BytesIO(builder.pipe()), Modules())
    assert sum(map(len, recording.batches())) == 2


def test_lost_records_are_counted(tmp_path: Path) -> None:
    builder = walkable()
    builder.record(2, 0, builder.words([1, 5]) + builder.trailer())
    builder.record(2, 0, builder.words([1, 6]) + builder.trailer())
    builder.record(13, 0, builder.words([7]) + builder.trailer())
    recording, _ = read(builder.file(), tmp_path)
    assert (recording.counts.lost, recording.counts.lost_samples) == (11, 7)


def test_odd_sizes(tmp_path: Path) -> None:
    builder = walkable()
    builder.sample(time=1, registers={7: 5}, stack=b"x" * 64)
    builder.record(200, 0, b"abc")
    builder.sample(time=2, registers={7: 5}, stack=b"y" * 64)
    _, batch = only(builder.file(), tmp_path)
    memory = batch.samples.memory
    assert [bytes(memory.buffer[at : at + 1]) for at in memory.offset.tolist()] == [b"x", b"y"]


# Groups


@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("times", [0, 3])
def test_counters_of_a_group_have_samples_of_what_they_counted_since(
    byteorder: ByteOrder, times: int, tmp_path: Path
) -> None:
    """Also with the times that counters ran, and with how much was lost, between the words that matter."""
    for lost in (0, 1):
        kinds = BASE | pb.ID | pb.READ
        how = times | 1 << 2 | 1 << 3 | lost << 4
        names = (("cpu-clock", 7), ("faults", 8), ("other", 9))
        attrs = [Attr(kinds, name, (number,), read_format=how) for name, number in names]
        builder = Builder(byteorder, "x86_64", attrs)
        values = [(100, 5, 0), (250, 5, 0), (250, 6, 2), (400, 4, 2)]
        for number, three in enumerate(values):
            read = [3, *[77] * times.bit_count()]
            read += [word for one, value in zip((7, 8, 9), three, strict=True) for word in (value, one, 99)[: 2 + lost]]
            builder.sample(0, pid=1, tid=2, time=10 + number, period=1000, read=read)
        recording, batch = only(builder.file(), tmp_path)
        found = zip(batch.time.tolist(), batch.event.tolist(), batch.period.tolist(), strict=True)
        # A counter that shows less than before, or the same, has counted nothing.
        assert list(found) == [(10, 0, 100), (10, 1, 5), (11, 0, 150), (12, 1, 1), (12, 2, 2), (13, 0, 150)]
        assert recording.events == ["cpu-clock", "faults", "other"]
        assert set(batch.tid.tolist()) == {2}


def test_counters_that_threads_inherit_are_each_threads_own(tmp_path: Path) -> None:
    kinds = BASE | pb.ID | pb.READ
    for inherit, expected in ((False, [100, 90]), (True, [100, 30, 20])):
        builder = Builder("little", "x86_64", [Attr(kinds, "a", (7,), read_format=1 << 2, inherit=inherit)])
        for time, (tid, value) in enumerate(((1, 100), (2, 30), (1, 120))):
            builder.sample(0, pid=1, tid=tid, time=time + 1, period=1, read=[value, 7])
        assert only(builder.file(), tmp_path)[1].period.tolist() == expected


def test_readings_of_a_counter_that_no_event_has_are_counted(tmp_path: Path) -> None:
    builder = Builder("little", "x86_64", [Attr(BASE | pb.ID | pb.READ, "a", (7,), read_format=1 << 2 | 1 << 3)])
    builder.sample(0, pid=1, tid=1, time=1, read=[2, 5, 7, 6, 55])
    recording, batch = only(builder.file(), tmp_path)
    assert batch.period.tolist() == [5]
    assert recording.counts.unknown_ids == 1


# Folders


def folder(tmp_path: Path, builder: Builder, parts: list[list[bytes]]) -> Path:
    """What `perf record --threads` writes."""
    (tmp_path / "folder").mkdir()
    builder.features[24] = builder.words([1])
    (tmp_path / "folder" / "data").write_bytes(builder.file())
    for number, records in enumerate(parts):
        (tmp_path / "folder" / f"data.{number}").write_bytes(b"".join(records))
    return tmp_path / "folder"


def parted(tmp_path: Path, *, packed: bool = False) -> Path:
    """Four threads' samples in turn, each in a file of its own, and a mapping in another than most samples."""
    parts = []
    for number in range(4):
        builder = walkable()
        builder.mmap2(1, 0x1000 + 0x1000 * number, 0x1000, 0, f"/no/{number}", time=1)
        for i in range(5):
            builder.sample(pid=1, tid=number, time=100 + 10 * i + number, registers={8: 0x1100, 7: 8}, stack=bytes(64))
        if packed:
            records, builder.records = builder.records, []
            builder.compress(b"".join(records), 3)
        parts.append(builder.records)
    main = walkable()
    main.comm(1, 0, "first", time=0)
    return folder(tmp_path, main, [*parts, []])


@pytest.mark.parametrize("packed", [False, True])
def test_the_files_of_a_folder_are_one_recording(packed: bool, tmp_path: Path) -> None:
    path = parted(tmp_path, packed=packed)
    recording = Recording.open(path, Modules())
    (batch,) = recording.batches()
    assert not recording.troubles
    assert recording.name == str(path)
    assert batch.time.tolist() == sorted(batch.time.tolist())
    assert batch.tid.tolist() == [0, 1, 2, 3] * 5
    assert recording.position() == recording.total
    assert {len(recording.spaces[number].start) for number in batch.samples.space.tolist()} == {4}


def test_a_file_of_a_folder_that_shrinks_is_an_error(tmp_path: Path) -> None:
    path = parted(tmp_path)
    recording = Recording.open(path, Modules())
    (path / "data.2").write_bytes(b"")
    with pytest.raises(UnreadableError, match=r"data\.2: it changed while it was read"):
        list(recording.batches())


def test_pieces_of_the_files_of_a_folder_share_their_buffers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walkback.capture.perfdata.source._ROWS", 2)
    recording = Recording.open(parted(tmp_path), Modules())
    (batch,) = recording.batches()
    assert batch.tid.tolist() == [0, 1, 2, 3] * 5
    assert len(recording._waiting.buffers) <= 5


def test_what_is_wrong_in_a_folder_is_told(tmp_path: Path) -> None:
    path = parted(tmp_path)
    with (path / "data.2").open("r+b") as file:
        file.truncate(file.seek(0, 2) - 8)
    recording = Recording.open(path, Modules())
    (batch,) = recording.batches()
    assert len(batch) == 19
    assert len(recording.troubles) == 1
    assert "data.2" in recording.troubles[0]
    alone = Recording.open(path / "data", Modules())
    assert "give the folder" in alone.troubles[0]
    (path / "data").unlink()
    with pytest.raises(UnreadableError, match="folder: this is a directory"):
        Recording.open(path, Modules())
