"""Damaged recordings: all that is whole is read and the rest told, or there is one error that says where."""

from __future__ import annotations

import io
import os
import random
import resource
import struct
from pathlib import Path
from typing import Any

import pytest

import perfbuilder as pb
from effort import QUICK, SHARE, rounds
from perfbuilder import Attr, Builder
from walkback.base.arch import ByteOrder
from walkback.base.errors import WalkbackError
from walkback.capture.perfdata import Recording, source
from walkback.naming.modules import Modules

pytestmark = pytest.mark.kernel

KINDS = pb.IDENTIFIER | pb.IP | pb.TID | pb.TIME | pb.READ | pb.CALLCHAIN | pb.RAW | pb.BRANCH_STACK
KINDS |= pb.REGS_USER | pb.STACK_USER


def small(byteorder: ByteOrder = "little", **more: Any) -> Builder:
    builder = Builder(byteorder, attrs=[Attr(KINDS, ids=(5,), regs_user=pb.MASKS["x86_64"]), Attr(KINDS, ids=(6,))])
    builder.comm(1, 1, "name")
    builder.mmap2(1, 0x1000, 0x1000, 0, "/no/a", time=1)
    for i in range(4):
        builder.sample(
            i % 2, pid=1, tid=1, time=i + 2, read=[1], chain=[3, 4], raw=b"1234", branches=[(1, 2, 3)],
            registers={7: 100}, stack=b"stack..." * 4,
        )  # fmt: skip
        builder.fork(2 + i, 1, time=i + 2)
        builder.finished_round()
    return builder


def read(contents: bytearray | bytes) -> tuple[Recording, int]:
    recording = Recording.open(io.BytesIO(contents), Modules())
    return recording, sum(map(len, recording.batches()))


def read_file(contents: bytearray | bytes, path: Path) -> tuple[Recording, int]:
    path.write_bytes(contents)
    recording = Recording.open(path, Modules())
    return recording, sum(map(len, recording.batches()))


def test_cut_at_every_place(tmp_path: Path, interpreted: bool) -> None:
    builder = small()
    contents, path = builder.file(), tmp_path / "perf.data"
    begin = contents.index(builder.records[0])
    ends: list[Any]
    whole, ends = 0, []
    for record in builder.records:
        ends.append(begin + len(record) + (ends[-1] - begin if ends else 0))
    for size in range(0, len(contents), 137 if QUICK else 37 if interpreted else 5 * SHARE):
        try:
            recording, whole = read_file(contents[:size], path)
        except WalkbackError:
            continue
        assert size >= begin
        expected = sum(1 for end, record in zip(ends, builder.records, strict=True) if end <= size and record[0] == 9)
        assert whole == expected
        assert recording.troubles


def test_a_pipe_cut_at_every_place(interpreted: bool) -> None:
    contents = small().pipe()
    borders = [16]
    while borders[-1] < len(contents):
        at = borders[-1] + 6
        borders.append(borders[-1] + int.from_bytes(contents[at : at + 2], "little"))
    for size in range(0, len(contents), 301 if QUICK else 101 if interpreted else 7 * SHARE):
        try:
            recording, _ = read(contents[:size])
        except WalkbackError:
            continue
        assert bool(recording.troubles) == (size not in borders)


@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("form", ["file", "pipe"])
def test_any_damage(byteorder: ByteOrder, form: str, tmp_path: Path, interpreted: bool) -> None:
    contents = getattr(small(byteorder), form)()
    chance = random.Random(form + byteorder)
    for _ in range(rounds(100 if interpreted else 700, quick=25 if interpreted else 250, share=50)):
        damaged = bytearray(contents)
        for _ in range(chance.choice((1, 1, 3, 10))):
            place = chance.randrange(len(damaged))
            damaged[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        try:
            read_file(damaged, tmp_path / "perf.data")
            if form == "pipe":
                read(damaged)
        except WalkbackError:
            continue


@pytest.mark.parametrize("size", [0, 7])
def test_a_record_without_size_ends_it(size: int, tmp_path: Path) -> None:
    builder = small()
    builder.records.append(builder.pack("IHH", 9, 0, size))
    builder.sample(time=99)
    for recording, count in (read(builder.pipe()), read_file(builder.file(), tmp_path / "perf.data")):
        assert count == 4
        assert f"a record of {size} bytes" in recording.troubles[-1]


def test_an_unfinished_file_is_read_to_its_end(tmp_path: Path) -> None:
    recording, count = read_file(small().file(data_size=0), tmp_path / "perf.data")
    assert count == 4
    assert "did not finish" in recording.troubles[0]


@pytest.mark.parametrize("field", ["read", "chain", "raw", "branches", "stack"])
def test_counts_beyond_the_record(field: str, tmp_path: Path) -> None:
    builder = Builder(attrs=[Attr(KINDS, regs_user=3, read_format=8)])
    values: dict[str, Any] = {"read": [0], "registers": {}, "stack": b"12345678"}
    builder.sample(**values)
    for number in (1, 100, 2**32 - 1, 2**61, 2**63, 2**64 - 1):
        record = bytearray(builder.records[0])
        words = len(record) // 8
        place = 8 * (words - 3 if field == "stack" else 5 + ("read", "chain", "raw", "branches").index(field))
        record[place : place + 8] = builder.words([number])
        builder.records.append(bytes(record))
    builder.records.append(builder.records[0])
    recording, count = read_file(builder.file(), tmp_path / "perf.data")
    # The size of raw data has 32 bits, and of some numbers none of these is set.
    assert 2 <= count <= (5 if field == "raw" else 3)
    assert recording.counts.damaged + count == 8


def test_headers_that_claim_too_much(tmp_path: Path) -> None:
    contents = small().file()
    for place in (8, 16, 24, 32, 40, 48):
        for value in (0, 1, 15, 1 << 20, 1 << 40, 2**64 - 1):
            damaged = bytearray(contents)
            damaged[place : place + 8] = value.to_bytes(8, "little")
            try:
                read_file(damaged, tmp_path / "perf.data")
            except WalkbackError:
                continue


@pytest.mark.parametrize("contents", [b"", b"PERFILE2", b"PERFFILE" + bytes(200), b"\x7fELF" + bytes(200), bytes(200)])
def test_other_files(contents: bytes, tmp_path: Path) -> None:
    with pytest.raises(WalkbackError, match=r"perf\.data|empty"):
        read_file(contents, tmp_path / "perf.data")
    with pytest.raises(WalkbackError):
        read(contents)


def test_a_recording_of_an_unknown_machine(tmp_path: Path) -> None:
    builder = small()
    builder.machine = "riscv64"
    with pytest.raises(WalkbackError, match="riscv64"):
        read_file(builder.file(), tmp_path / "perf.data")


class Endless(io.RawIOBase):
    """A pipe of records that mean nothing, for ever."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.given = 0
        self.record = struct.pack("<IHH", 99, 0, 65528) + bytes(65520)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        start = max(self.given - len(self.head), 0) % len(self.record)
        part = (self.head[self.given :] or self.record[start:])[: len(into)]
        into[: len(part)] = part
        self.given += len(part)
        assert self.given < 1 << 28
        return len(part)


def test_a_pipe_that_never_comes_to_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not kept in the hope that one comes."""
    monkeypatch.setattr("walkback.capture.perfdata.recording._BEGINNING", 1 << 20)
    with pytest.raises(WalkbackError, match="no events"):
        Recording.open(io.BufferedReader(Endless(small().pipe()[:16])), Modules())


def test_a_file_through_a_pipe() -> None:
    reading, writing = os.pipe()
    os.write(writing, small().file())
    os.close(writing)
    with open(reading, "rb") as pipe, pytest.raises(WalkbackError, match="as a file"):
        Recording.open(pipe, Modules())


def test_broken_zstd(tmp_path: Path) -> None:
    builder = small()
    builder.compress(b"".join(builder.records), 3)
    last = bytearray(builder.records.pop())
    last[12:] = bytes(reversed(last[12:]))
    builder.records.append(bytes(last))
    recording, count = read_file(builder.file(), tmp_path / "perf.data")
    assert count >= 4
    assert "zstd" in recording.troubles[0]


def test_bombs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_LARGEST_PART", 1 << 20)
    builder = small()
    filler = builder.record(200, 0, bytes(65000)) * 2000
    builder.records.pop()
    builder.compress(filler, 1)
    builder.sample(time=99)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    recording, count = read_file(builder.file(), tmp_path / "perf.data")
    assert count == 4
    assert "too much" in recording.troubles[0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def test_mappings_without_end_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from walkback.capture.perfdata import mappings

    monkeypatch.setattr(mappings, "_MOST_ROWS", 500)
    builder = Builder(attrs=[Attr(pb.IP | pb.TID | pb.TIME)])
    for i in range(100):
        builder.mmap2(1, 0x10000 * (i + 1), 0x1000, 0, "/no/a", time=2 * i)
        builder.sample(pid=1, tid=1, time=2 * i + 1)
    recording, count = read_file(builder.file(), tmp_path / "perf.data")
    assert count == 100
    assert sum(len(space.start) for space in recording.spaces) <= 500
    assert "change so often" in recording.troubles[0]


def test_names_and_processes_without_end_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from walkback.capture.perfdata import state

    for name in ("_MOST_PROCESSES", "_MOST_MODULES", "_MOST_BIASES", "_MOST_COMMS", "_MOST_THREADS"):
        monkeypatch.setattr(state, name, 20)
    builder = Builder(attrs=[Attr(pb.IP | pb.TID | pb.TIME)])
    for i in range(200):
        builder.fork(i + 10, i + 9)
        builder.comm(i + 10, i + 10, f"name {i}")
        builder.mmap2(i + 10, 0x1000, 0x1000, i << 12, "/no/" + "a" * (i * 40), build_id=bytes([i + 1]) * 20)
        builder.sample(pid=i + 10, tid=i + 10)
    recording, count = read_file(builder.file(), tmp_path / "perf.data")
    assert count == 200
    assert len(recording.comms) == 20
    assert "too many processes, threads or files" in recording.troubles[-1]


@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_damaged_groups_end_nothing(byteorder: ByteOrder, tmp_path: Path, interpreted: bool) -> None:
    kinds = pb.IP | pb.TID | pb.TIME | pb.ID | pb.READ | pb.CALLCHAIN
    attrs = [Attr(kinds, ids=(number,), read_format=1 << 2 | 1 << 3 | 1 << 4) for number in (5, 6)]
    builder = Builder(byteorder, attrs=attrs)
    for i in range(8):
        builder.sample(pid=1, tid=1, time=i + 1, read=[2, 100 * i + 1, 5, 0, i + 1, 6, 0], chain=[3, 4])
    contents, path = builder.file(), tmp_path / "perf.data"
    assert read_file(contents, path)[1] == 16
    begin = contents.index(builder.records[0])
    rng = random.Random(7)
    for _ in range(40 if interpreted else 400):
        damaged = bytearray(contents)
        for _ in range(rng.randrange(1, 4)):
            damaged[begin + rng.randrange(len(b"".join(builder.records)))] = rng.choice((0, 1, 8, 0x7F, 0xFF))
        try:
            _, count = read_file(damaged, path)
        except WalkbackError:
            continue
        assert count <= 16


def test_a_group_of_very_many_counters_is_followed_in_part(tmp_path: Path) -> None:
    kinds = pb.IP | pb.TID | pb.TIME | pb.ID | pb.READ
    ids = tuple(range(1, 3001))
    builder = Builder(attrs=[Attr(kinds, ids=ids, read_format=1 << 2 | 1 << 3), Attr(kinds, ids=(9000,))])
    builder.sample(pid=1, tid=1, time=1, read=[3000, *(word for one in ids for word in (one, one))])
    assert read_file(builder.file(), tmp_path / "perf.data")[1] == 64
