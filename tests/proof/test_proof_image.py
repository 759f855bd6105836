"""The memory that a proof reads: sections as their files have them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import walkback
from proof.assembled import verified
from walkback.elf import ElfFile

_COMPRESSED = 0x800
_HEADER = 64
"""Bytes of a section's header."""


def with_compressed_code(path: Path, more: bytes) -> Path:
    """A copy of an object whose code is compressed, with more bytes behind it: its header has another size."""
    elf = ElfFile(path)
    [number] = elf.sections_named(".text")
    code = bytes(elf.section_data(number)) + more
    stored = struct.pack("<IIQQ", 1, 0, len(code), 16) + zlib.compress(code)
    data = bytearray(path.read_bytes())
    (headers,) = struct.unpack_from("<Q", data, 0x28)
    at = headers + number * _HEADER
    (flags,) = struct.unpack_from("<Q", data, at + 8)
    struct.pack_into("<Q", data, at + 8, flags | _COMPRESSED)
    struct.pack_into("<QQ", data, at + 24, len(data), len(stored))
    copy = path.with_name("compressed.o")
    copy.write_bytes(data + stored)
    return copy


def test_code_of_an_object_may_be_compressed(tmp_path: Path) -> None:
    plain = verified("push %rbx; .cfi_def_cfa_offset 16; pop %rbx; ret", tmp_path)
    for more in (b"", bytes(5000)):
        [found] = walkback.verify(with_compressed_code(tmp_path / "f.o", more))
        assert (found.functions, found.proved, found.wrong) == (1, plain.proved, plain.wrong)
