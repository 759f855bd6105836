"""Samples of recordings made by hand: every kind of field, machine and group, in both byte orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfbuilder as pb
from perfbuilder import Attr, Builder
from perfdata.built import BASE, WALKABLE, only, read, walkable
from walkback.base.arch import ByteOrder

pytestmark = pytest.mark.kernel


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
