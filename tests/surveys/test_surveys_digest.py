"""A digest is that of the content, however it lies on the disk."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from walkback.base.errors import UnreadableError
from walkback.surveys import digest
from walkback.surveys.digest import content_digest, file_digest

MIB = 1 << 20
SOME = random.Random(1).randbytes(3 * MIB + 5)


def of_bytes(data: bytes) -> str:
    return content_digest(memoryview(data))


@pytest.mark.parametrize("size", [0, 1, 8, 4096, MIB - 1, MIB, MIB + 1, 3 * MIB + 5])
def test_it_is_the_same_for_a_file_and_for_its_bytes(size: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(SOME[:size])
    assert file_digest(str(tmp_path / "file")) == of_bytes(SOME[:size])
    assert len(of_bytes(SOME[:size])) == 32


def test_it_differs_for_what_differs() -> None:
    contents = [b"", b"\0", bytes(2), bytes(MIB), bytes(MIB + 1), bytes(3 * MIB), b"x", b"x\0", b"\0x", SOME]
    contents += [
        bytes(MIB) + b"x",
        b"x" + bytes(MIB),
        bytes(2 * MIB) + b"x",
        SOME[:-1],
        SOME[1:],
        SOME[MIB:] + SOME[:MIB],
    ]
    contents += [bytes(index) + b"x" + bytes(20 - index) for index in range(20)]
    assert len({of_bytes(data) for data in contents}) == len(contents)


@pytest.mark.parametrize("parts", [[], [0], [5], [1, 2], [9], [0, 9]])
def test_it_is_the_same_for_sparse_files_and_dense_ones(parts: list[int], tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        for part in parts:
            os.pwrite(file.fileno(), SOME[:5000], part * MIB + 7000)
        os.truncate(file.fileno(), 10 * MIB + 99)
    data = (tmp_path / "sparse").read_bytes()
    (tmp_path / "dense").write_bytes(data)
    assert {file_digest(str(tmp_path / name)) for name in ("sparse", "dense")} == {of_bytes(data)}


def test_holes_cost_nothing(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"\x7fELF")
        os.pwrite(file.fileno(), b"x", 1 << 42)
        os.truncate(file.fileno(), 1 << 43)
    begin = time.process_time()
    assert len(file_digest(str(tmp_path / "huge"))) == 32
    assert time.process_time() - begin < 20


def test_no_more_is_read_than_16_times_what_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    with (tmp_path / "sparse").open("wb") as file:
        for part in range(200):
            os.pwrite(file.fileno(), b"x", part * MIB + 7000)
    real = os.pread

    def counted(*args: int) -> bytes:
        nonlocal count
        found = real(*args)
        count += len(found)
        return found

    monkeypatch.setattr(os, "pread", counted)
    file_digest(str(tmp_path / "sparse"))
    assert 0 < count <= 16 * 512 * (tmp_path / "sparse").stat().st_blocks


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UnreadableError, match=str(path)):
            file_digest(str(path))


def test_a_file_that_shrinks_meanwhile_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(SOME)
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    blocks = digest._blocks(descriptor, len(SOME))
    next(blocks)
    os.truncate(tmp_path / "file", MIB + 5)
    with pytest.raises(UnreadableError, match="it changed while it was read"):
        list(blocks)
    os.close(descriptor)
