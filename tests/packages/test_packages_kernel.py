"""The Linux kernel as it is booted: found by its header, and unpacked whatever it is compressed with."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
import zstandard

import walkback
from elfbuilder import ElfBuilder
from walkback.packages import _lz4
from walkback.packages.kinds import PackageKind, kind_of
from walkback.packages.walk import Broken, FoundFile, elf_files_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECTORS = 3
WITHOUT_ELF = "is a kernel without an ELF file in it, as AArch64 boots it; vmlinux is one"


def an_elf_file() -> bytes:
    builder = ElfBuilder(kind=2)
    builder.section(".text", bytes(0x4000) + np.random.default_rng(1).bytes(0x200), flags=6, addr=0x1000)
    return bytes(builder.build())


def image(payload: bytes, *, version: int = 0x20F, offset: int = 0x20, size: int | None = None) -> bytes:
    """A bzImage with this compressed kernel."""
    head = bytearray((SECTORS + 1) * 512 + offset)
    head[0x1F1] = SECTORS
    head[0x1FE:0x206] = b"\x55\xaa\xeb\x6aHdrS"
    struct.pack_into("<H", head, 0x206, version)
    struct.pack_into("<II", head, 0x248, offset, len(payload) if size is None else size)
    return bytes(head) + payload + bytes(100)


def lz4_block(data: bytes) -> bytes:
    """One block: a few bytes as they are, zeros repeated, then the rest as it is."""
    zeros = len(data) - len(data.lstrip(b"\0"))
    out, at = bytearray(), 0
    if zeros > 30:
        out += bytes([0x1F, 0]) + struct.pack("<H", 1) + length(zeros - 1 - 4 - 15)
        at = zeros
    rest = data[at:]
    out += bytes([min(len(rest), 15) << 4])
    return bytes(out + (length(len(rest) - 15) if len(rest) >= 15 else b"") + rest)


def length(size: int) -> bytes:
    return b"\xff" * (size // 255) + bytes([size % 255])


def lz4(data: bytes) -> bytes:
    """As `lz4 -l` writes it, and the kernel's build behind it the size."""
    blocks = [lz4_block(data[at : at + 5000]) for at in range(0, len(data), 5000)]
    framed = b"".join(struct.pack("<I", len(block)) + block for block in blocks)
    return b"\x02\x21\x4c\x18" + framed + struct.pack("<I", len(data))


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": lambda data: bz2.compress(data) + struct.pack("<I", len(data)),
    "xz": lambda data: lzma.compress(data) + struct.pack("<I", len(data)),
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE) + struct.pack("<I", len(data)),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data) + struct.pack("<I", len(data)),
    "lz4": lz4,
}


@pytest.mark.parametrize("method", COMPRESSORS)
def test_the_elf_file_comes_out(method: str, tmp_path: Path) -> None:
    path = tmp_path / "vmlinuz"
    path.write_bytes(image(COMPRESSORS[method](an_elf_file())))
    assert kind_of(path.read_bytes()[:1024], "vmlinuz") is PackageKind.KERNEL
    [found] = elf_files_in(str(path))
    assert isinstance(found, FoundFile)
    assert found.member is None
    assert bytes(found.data)[: len(an_elf_file())] == an_elf_file()


@pytest.mark.parametrize(
    ("contents", "what", "message"),
    [
        (image(b"\x89LZO" + bytes(50)), "unsupported", "is a kernel compressed with LZO, which is not read here"),
        (
            image(bytes(50), version=0x200),
            "unsupported",
            "is a kernel with a boot header of version 0x0200, before 0x0208",
        ),
        (b"MZ\x40\xfa".ljust(0x38, b"\0") + b"ARM\x64" + bytes(2000), "unsupported", WITHOUT_ELF),
        (
            gzip.compress(b"MZ\x40\xfa".ljust(0x38, b"\0") + b"ARM\x64" + bytes(2000), mtime=0),
            "unsupported",
            WITHOUT_ELF,
        ),
        (b"MZ\0\0zimg" + bytes(2000), "unsupported", WITHOUT_ELF),
        (image(gzip.compress(an_elf_file(), mtime=0), size=50), "damaged", "ends within its gzip stream"),
        (image(b"\xff" * 50), "unsupported", "is a kernel compressed in a way that is not known here"),
        (image(b"")[:0x230], "damaged", "ends 32 bytes too early"),
        (image(lz4(an_elf_file())[:600], size=600), "damaged", "ends 4433 bytes too early"),
        (image(b"\x02\x21\x4c\x18" + bytes(8)), "damaged", "holds a broken lz4 stream: a block has an impossible size"),
        (
            image(b"\x02\x21\x4c\x18" + b"\1\0\0\0\x10" + bytes(4)),
            "damaged",
            "holds a broken lz4 stream: a block is damaged",
        ),
    ],
)
def test_what_cannot_be_unpacked_is_one_line(contents: bytes, what: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "vmlinuz"
    path.write_bytes(contents)
    [found] = elf_files_in(str(path))
    assert isinstance(found, Broken)
    assert (found.what, found.message) == (what, message)


@pytest.mark.kernel
def test_blocks_of_lz4() -> None:
    for data in (b"", b"a", bytes(100), b"some text " * 30, np.random.default_rng(2).bytes(1000)):
        assert _lz4.expand(lz4_block(data), len(data)) == data
        if data:
            assert _lz4.expand(lz4_block(data), len(data) - 1) is None
    assert _lz4.expand(b"\x30abc\x20xy", 9) is None  # there is no distance behind the first sequence
    assert _lz4.expand(b"\x34abc\3\0\x20xy", 99) == b"abcabcabcabxy"


@pytest.mark.kernel
def test_damaged_blocks_of_lz4_are_read_within_their_bounds() -> None:
    chance = np.random.default_rng(3)
    whole = lz4_block(b"".join([b"some text ", bytes(300), chance.bytes(50)]))
    for _ in range(2000):
        damaged = bytearray(whole)
        for place in chance.integers(0, len(whole), 3).tolist():
            damaged[place] = int(chance.integers(256))
        found = _lz4.expand(bytes(damaged[: int(chance.integers(len(whole) + 1))]), 1000)
        assert found is None or len(found) <= 1000


def test_verbs_take_a_kernel_and_a_compressed_module(tmp_path: Path) -> None:
    from orc.orctables import module

    contents = bytes(module().build())
    for name, data in (("vmlinuz", image(gzip.compress(contents))), ("some.ko.xz", lzma.compress(contents))):
        path = tmp_path / name
        path.write_bytes(data)
        assert walkback.derive(path).covered == 1
        assert walkback.size(path).orc == 40
        [verified] = walkback.verify(path)
        assert (verified.table, verified.proved, verified.wrong) == (".orc_unwind", 31, 0)
