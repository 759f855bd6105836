"""Recordings made by hand, in each form: compressed, through a pipe, cut in pieces, a folder of files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import perfbuilder as pb
from perfbuilder import Attr, Builder
from perfdata.built import WALKABLE, only, read, walkable
from walkback.base.arch import ByteOrder
from walkback.base.errors import UnreadableError
from walkback.capture.perfdata import Recording
from walkback.naming.modules import Modules

pytestmark = pytest.mark.kernel


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
