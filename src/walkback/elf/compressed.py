"""Compressed contents, of three kinds.

Sections with SHF_COMPRESSED (gABI, chapter "Section Compression") use zlib or zstd; the `.zdebug_*` sections that GNU
tools wrote before there was that flag, zlib; and `.gnu_debugdata` is an xz stream.

What comes out never decides how much memory is taken: it grows as the stream goes on, up to what the input
claims, and what a file may decompress to is bounded by its own size. The errors here do not know the file and
section; `ElfFile` adds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.decoders import Method, decompressed
from walkback.base.errors import ElfError
from walkback.elf import layout

if TYPE_CHECKING:
    from walkback.elf.file import ElfFile

_GNU_MAGIC = b"ZLIB"
_GNU_HEADER = 12
"""The magic, then the size in 8 bytes, most significant first in every file."""

_HARMLESS = 64 << 20
_RATIO = 100
"""Debug information shrinks to a third or a tenth. zlib can do 1032:1 and zstd 32768:1, and bombs do."""
_METHODS = {layout.ELFCOMPRESS_ZLIB: Method.ZLIB, layout.ELFCOMPRESS_ZSTD: Method.ZSTD}


def limit_of(file_size: int) -> int:
    """To how many bytes all compressed contents of a file of this size may come."""
    return _HARMLESS + _RATIO * file_size


def has_gnu_magic(stored: memoryview) -> bool:
    """Whether a section begins as `.zdebug_*` sections do."""
    return bytes(stored[: len(_GNU_MAGIC)]) == _GNU_MAGIC


def unpacked_size(elf: ElfFile, index: int) -> int | None:
    """What a compressed section claims to hold; None of one that is not compressed."""
    header = elf.sections[index]
    place = int(header["offset"])
    if header["flags"] & np.uint64(layout.SHF_COMPRESSED):
        return int.from_bytes(elf.data[place + 8 : place + 16], elf.byteorder)
    if elf.section_name(index).startswith(".zdebug_"):
        return int.from_bytes(elf.data[place + 4 : place + 12], "big")
    return None


def decompress(stored: memoryview, byteorder: ByteOrder, limit: int) -> bytes:
    """The contents of a section with SHF_COMPRESSED, which begins with an Elf64_Chdr."""
    shape = layout.COMPRESSION_HEADER[byteorder]
    if len(stored) < shape.itemsize:
        raise ElfError("is compressed, and ends within its compression header")
    method, _, size, _ = np.frombuffer(stored, shape, 1)[0].item()
    if method not in _METHODS:
        raise ElfError(f"is compressed by an unknown method ({method:#x})")
    return _checked(_METHODS[method], stored[shape.itemsize :], size, limit)


def decompress_gnu(stored: memoryview, limit: int) -> bytes:
    """The contents of a `.zdebug_*` section."""
    if len(stored) < _GNU_HEADER:
        raise ElfError("is compressed, and ends within its compression header")
    size = int.from_bytes(stored[len(_GNU_MAGIC) : _GNU_HEADER], "big")
    return _checked(Method.ZLIB, stored[_GNU_HEADER:], size, limit)


def decompress_xz(stored: memoryview, limit: int) -> bytes:
    """What an xz stream holds; the stream does not say in front how much that is."""
    contents = _bounded(Method.XZ, stored, limit + 1)
    if len(contents) > limit:
        raise ElfError(f"decompresses to more than {limit} bytes, which is more than this file may")
    return contents


def _checked(method: Method, stream: memoryview, size: int, limit: int) -> bytes:
    """All of the stream, if it holds as much as the header claims and that is not too much."""
    if size > limit:
        raise ElfError(f"is compressed and claims {size} bytes, of at most {limit} that this file may decompress to")
    contents = _bounded(method, stream, size + 1)
    if len(contents) > size:
        raise ElfError(f"is compressed and holds more than the {size} bytes that its header claims")
    if len(contents) < size:
        raise ElfError(f"is compressed and holds {len(contents)} bytes instead of {size}")
    return contents


def _bounded(method: Method, stream: memoryview, most: int) -> bytes:
    """What the stream holds, or so much of it."""
    position = 0

    def pull(size: int) -> memoryview:
        nonlocal position
        position += size
        return stream[position - size : position]

    pieces, left = [], most
    for piece in decompressed(method, pull):
        pieces.append(piece[:left])
        left -= len(pieces[-1])
        if not left:
            break
    return b"".join(pieces)
