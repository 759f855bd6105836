"""The streams of the usual compressors, read piece by piece.

zlib and gzip (RFC 1950 and 1952), what both wrap (deflate, RFC 1951), xz, the older format of LZMA, bzip2 and
Zstandard (RFC 8878). Each is read in pieces of at most `STEP` bytes, so that a caller can stop when it has enough, or
when too much comes out; how much that is only the caller knows. Several streams may follow each other, as parallel
compressors write them.
"""

from __future__ import annotations

import re
import sys
import zlib
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from walkback.base.errors import ElfError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Decoders = tuple[Callable[[], "Decoder"], tuple[type[Exception], ...]]
    """What makes a decoder, and what that one raises."""

STEP: Final = 1 << 18
_XZ_MEMORY: Final = 128 << 20
"""Enough for the decoder of `xz -9`, which takes 65 MiB."""
_LONGEST_MAGIC: Final = 6
_MOST_PADDING: Final = 1 << 20
"""Zeros behind a stream: tapes and disks have blocks. A hole in a file can be of any size."""
_FREE_CALLS: Final = 10_000
_LEAST_GIVEN: Final = 512
"""How many bytes a call of a decoder gives at least on the average, after the first ones."""


class Method(StrEnum):
    """How something is compressed."""

    GZIP = "gzip"
    ZLIB = "zlib"
    DEFLATE = "deflate"
    XZ = "xz"
    LZMA = "lzma"
    BZIP2 = "bzip2"
    ZSTD = "zstd"


MAGIC: Final = {
    Method.GZIP: re.compile(rb"\x1f\x8b\x08"),
    Method.XZ: re.compile(rb"\xfd7zXZ\0"),
    Method.BZIP2: re.compile(rb"BZh[1-9]"),
    # A frame, or one that is to be skipped.
    Method.ZSTD: re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
}
"""What such streams begin with; bare deflate streams and LZMA's older ones have nothing to know them by."""


class Decoder(Protocol):
    """What the decoders of bz2 and lzma have in common."""

    @property
    def eof(self) -> bool:
        """Whether this was the end of a stream."""

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes of what it was given."""

    @property
    def unused_data(self) -> bytes:
        """What it was given behind the end."""

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes:
        """The next piece."""


def decompressed(method: Method, pull: Callable[[int], bytes | memoryview]) -> Iterator[bytes]:
    """The contents of consecutive streams; `pull` gives at most as many bytes as asked for, and none at the end.

    A stream of millions of nearly empty blocks is refused: no honest file has one, and reading it could take forever.
    """
    make, errors = _decoders(method)
    stored: bytes | memoryview = pull(STEP)
    calls = given = 0
    while True:
        decoder = make()
        while not decoder.eof:
            if decoder.needs_input and not (stored := stored or pull(STEP)):
                raise ElfError(f"ends within its {method} stream")
            calls += 1
            if calls > _FREE_CALLS + given // _LEAST_GIVEN:
                raise ElfError(f"holds a {method} stream in too many pieces for what comes out of it")
            try:
                piece = decoder.decompress(stored, STEP)
            except errors as error:
                raise ElfError(f"holds a broken {method} stream: {error}") from error
            stored = b""
            given += len(piece)
            if piece:
                yield piece
        if not (stored := _following(method, decoder.unused_data, pull)):
            return


def _following(method: Method, rest: bytes, pull: Callable[[int], bytes | memoryview]) -> bytes:
    """What follows a stream, if that is another one; zeros between them are padding, and anything else is not ours."""
    if method not in MAGIC:
        return b""
    padding = 0
    while len(rest := rest.lstrip(b"\0")) < _LONGEST_MAGIC:
        more = pull(STEP)
        padding += len(more)
        if not more or padding > _MOST_PADDING:
            return b""
        rest += bytes(more)
    return rest if MAGIC[method].match(rest) else b""


def _decoders(method: Method) -> Decoders:
    match method:
        case Method.GZIP:
            return lambda: _Zlib(16 + zlib.MAX_WBITS), (zlib.error,)
        case Method.ZLIB:
            return lambda: _Zlib(zlib.MAX_WBITS), (zlib.error,)
        case Method.DEFLATE:
            return lambda: _Zlib(-zlib.MAX_WBITS), (zlib.error,)
        case Method.ZSTD:
            return _zstd()
    try:  # some builds of Python lack one or the other
        if method is Method.BZIP2:
            import bz2

            return bz2.BZ2Decompressor, (OSError, ValueError)
        import lzma
    except ImportError as error:
        raise UnreadableError(f"is compressed with {method}, and this Python cannot read that") from error
    form = lzma.FORMAT_XZ if method is Method.XZ else lzma.FORMAT_ALONE
    return lambda: lzma.LZMADecompressor(form, memlimit=_XZ_MEMORY), (lzma.LZMAError,)


class _Zlib:
    """zlib's decoder, with the face of the others."""

    def __init__(self, wbits: int) -> None:
        self._decoder = zlib.decompressobj(wbits)
        self._full = False

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not (self._full or self._decoder.unconsumed_tail)

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes:
        piece = self._decoder.decompress(self._decoder.unconsumed_tail or data, max_length)
        self._full = len(piece) == max_length
        return piece


def _zstd() -> Decoders:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor, (zstd.ZstdError,)
    import zstandard

    return _Zstandard, (zstandard.ZstdError,)


if sys.version_info < (3, 14):

    class _Zstandard:
        """The decoder of the package `zstandard`, which has no bound on what one call gives.

        So it gets block by block what a frame holds (RFC 8878, chapter "Zstandard Frames"), as no block may hold more
        than 128 KiB.
        """

        def __init__(self) -> None:
            import zstandard

            self._decoder = zstandard.ZstdDecompressor().decompressobj()
            self._stored = b""
            self._at = 0
            self._body = self._last = False
            self._skipped = 0
            self.needs_input = True

        @property
        def eof(self) -> bool:
            return self._decoder.eof

        @property
        def unused_data(self) -> bytes:
            return self._stored[self._at :]

        def decompress(self, data: bytes | memoryview, max_length: int) -> bytes:  # noqa: ARG002 - a block at most
            if data:
                self._stored = self._stored[self._at :] + bytes(data)
                self._at = 0
            size = self._part_size()
            self.needs_input = size is None
            if size is None:
                return b""
            part = self._stored[self._at : self._at + size]
            self._at += size
            return self._decoder.decompress(part)

        def _part_size(self) -> int | None:
            """How long the next part of the frame is; None if it is not all there."""
            left = len(self._stored) - self._at
            if self._skipped:
                size = min(self._skipped, max(left, 1))
                self._skipped -= min(size, left)
            elif self._last:  # there is a checksum still
                size = 4
            elif self._body:
                size = self._block_size(left)
            else:
                size = self._header_size(left)
            return size if size <= left else None

        def _header_size(self, left: int) -> int:
            if left < 8:
                return 8
            head = self._stored[self._at : self._at + 8]
            if head[1:4] == b"\x2a\x4d\x18":
                self._skipped = int.from_bytes(head[4:], "little")
                return 8
            single, dictionary = head[4] >> 5 & 1, (0, 1, 2, 4)[head[4] & 3]
            size = 5 + (1 - single) + dictionary + (single, 2, 4, 8)[head[4] >> 6]
            self._body = left >= size
            return size

        def _block_size(self, left: int) -> int:
            if left < 3:
                return 3
            header = int.from_bytes(self._stored[self._at : self._at + 3], "little")
            size = 4 if (header >> 1) & 3 == 1 else 3 + (header >> 3)
            self._last = header & 1 == 1 and left >= size
            return size
