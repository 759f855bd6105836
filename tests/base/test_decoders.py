"""Streams of the usual compressors give what was compressed, in pieces, and damage is an error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from packed import run
from walkback.base.decoders import STEP, Method, decompressed
from walkback.base.errors import ElfError

zstandard = pytest.importorskip("zstandard")


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACK: dict[Method, Callable[[bytes], bytes]] = {
    Method.GZIP: gzip.compress,
    Method.ZLIB: zlib.compress,
    Method.DEFLATE: deflate,
    Method.XZ: lzma.compress,
    Method.LZMA: lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
    Method.BZIP2: bz2.compress,
    Method.ZSTD: lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
SEVERAL = [Method.GZIP, Method.XZ, Method.BZIP2, Method.ZSTD]
METHODS = pytest.mark.parametrize("method", list(PACK))
STEPS = pytest.mark.parametrize("step", [STEP, 1000, 7, 1])
MIXED = random.Random(1).randbytes(70_000) + bytes(400_000) + b"walk back " * 5000
SKIPPED = b"\x53\x2a\x4d\x18" + (1000).to_bytes(4, "little") + bytes(1000)


def pieces(method: Method, stream: bytes, step: int = STEP) -> list[bytes]:
    position = 0

    def pull(size: int) -> memoryview:
        nonlocal position
        start, position = position, position + min(size, step)
        return memoryview(stream)[start:position]

    return list(decompressed(method, pull))


def read(method: Method, stream: bytes, step: int = STEP) -> bytes:
    return b"".join(pieces(method, stream, step))


@METHODS
@pytest.mark.parametrize("step", [STEP, 1000, 99])
def test_a_stream_gives_what_was_compressed(method: Method, step: int) -> None:
    assert read(method, PACK[method](MIXED), step) == MIXED


@METHODS
@STEPS
def test_an_empty_stream_gives_nothing(method: Method, step: int) -> None:
    assert pieces(method, PACK[method](b""), step) == []


@METHODS
def test_no_piece_is_large_however_small_the_stream(method: Method) -> None:
    found = pieces(method, PACK[method](bytes(20 * STEP)))
    assert max(map(len, found)) <= STEP
    assert sum(map(len, found)) == 20 * STEP


@pytest.mark.parametrize("method", SEVERAL)
@STEPS
def test_streams_that_follow_each_other_are_read(method: Method, step: int) -> None:
    small = random.Random(2).randbytes(3000)
    packed = [PACK[method](data) for data in (small, b"", b"x", small)]
    found = read(method, packed[0] + packed[1] + packed[2] + bytes(41) + packed[3] + b"something else", step)
    assert found == small + b"x" + small


@pytest.mark.parametrize("method", SEVERAL)
def test_millions_of_streams_with_nothing_in_them_are_too_many(method: Method) -> None:
    assert read(method, PACK[method](b"one") + PACK[method](b"") * 2000 + PACK[method](b"two")) == b"onetwo"
    with pytest.raises(ElfError, match=f"holds a {method} stream in too many pieces for what comes out of it"):
        read(method, PACK[method](MIXED) + PACK[method](b"") * 50_000)


@pytest.mark.parametrize("block", [bytes(3), b"\x08\0\0x"])
def test_millions_of_blocks_with_nothing_in_them_are_too_many(block: bytes) -> None:
    with pytest.raises(ElfError, match="in too many pieces for what comes out of it"):
        read(Method.ZSTD, b"\x28\xb5\x2f\xfd\0\x60" + block * 2_000_000)


@pytest.mark.parametrize("method", [Method.ZLIB, Method.DEFLATE, Method.LZMA])
def test_others_end_where_they_end(method: Method) -> None:
    assert read(method, PACK[method](b"one") + PACK[method](b"two")) == b"one"


@pytest.mark.parametrize("step", [STEP, 100, 1])
def test_frames_of_zstd_that_are_to_be_skipped_are(step: int) -> None:
    assert (
        read(Method.ZSTD, SKIPPED + PACK[Method.ZSTD](b"one") + SKIPPED + PACK[Method.ZSTD](b"two"), step) == b"onetwo"
    )


@pytest.mark.parametrize(
    "options", [["-1"], ["-19"], ["--no-check"], ["--ultra", "-22"], ["-T2", "-B64K"], ["--long=27"]]
)
def test_what_the_zstd_command_writes_is_read(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(MIXED)
    assert read(Method.ZSTD, run("zstd", *options, "--stdout", tmp_path / "plain"), 999) == MIXED


@pytest.mark.parametrize(
    "options", [["-0"], ["-9e"], ["--check=none"], ["-T2", "--block-size=65536"], ["--format=lzma"]]
)
def test_what_the_xz_command_writes_is_read(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(MIXED)
    method = Method.LZMA if options == ["--format=lzma"] else Method.XZ
    assert read(method, run("xz", *options, "--stdout", tmp_path / "plain"), 999) == MIXED


@METHODS
def test_a_stream_that_is_cut_off_anywhere_is_an_error(method: Method) -> None:
    stream = PACK[method](random.Random(3).randbytes(60) + b"a" * 500)
    for length in range(len(stream)):
        with pytest.raises(ElfError, match=f"{method} stream"):
            read(method, stream[:length])


@METHODS
def test_a_changed_stream_gives_something_or_an_error(method: Method) -> None:
    chance = random.Random(4)
    stream = PACK[method](MIXED[60_000:80_000])
    for _ in range(300):
        changed = bytearray(stream)
        for _ in range(chance.choice((1, 1, 3))):
            changed[chance.randrange(len(changed)) if chance.random() < 0.7 else chance.randrange(30)] = (
                chance.randrange(256)
            )
        with suppress(ElfError):
            assert max(map(len, pieces(method, bytes(changed)))) <= STEP


def test_a_stream_that_wants_too_much_memory_is_refused() -> None:
    stream = bytearray(lzma.compress(os.urandom(100), format=lzma.FORMAT_ALONE))
    stream[1:5] = (1 << 30).to_bytes(4, "little")
    with pytest.raises(ElfError, match=r"[Mm]emory"):
        read(Method.LZMA, bytes(stream))


def test_pieces_come_as_soon_as_they_can() -> None:
    taken = 0
    stream = PACK[Method.GZIP](random.Random(5).randbytes(STEP * 4))

    def pull(size: int) -> bytes:
        nonlocal taken
        start, taken = taken, taken + min(size, 1000)
        return stream[start:taken]

    assert next(decompressed(Method.GZIP, pull))
    assert taken < 3000
