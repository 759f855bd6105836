"""One zstd stream that comes in pieces, and whose contents go on where they are put."""

from __future__ import annotations

import sys
from collections.abc import Callable

_STEP = 1 << 18
_SLICE = 256
"""Bytes at once: all that they decompress to comes at once too, and a block of 128 KiB can stand in 4 bytes."""


class BrokenStreamError(Exception):
    """The stream is damaged."""


class ZstdStream:
    """Decompresses piece by piece.

    What comes out is handed on in small parts, so whoever takes them can stop it by an exception of its own.
    """

    def __init__(self) -> None:
        if sys.version_info >= (3, 14):
            from compression import zstd

            self._decoder = zstd.ZstdDecompressor()
        else:
            import zstandard

            self._object = zstandard.ZstdDecompressor().decompressobj(write_size=_STEP, read_across_frames=True)

    def feed(self, stored: memoryview, take: Callable[[bytes], None]) -> None:
        """Decompress the next piece, and hand what comes out to `take`."""
        if sys.version_info >= (3, 14):
            self._feed(stored, take)
        else:
            import zstandard

            try:
                for begin in range(0, len(stored), _SLICE):
                    take(self._object.decompress(stored[begin : begin + _SLICE]))
            except zstandard.ZstdError as error:
                raise BrokenStreamError(str(error)) from error

    if sys.version_info >= (3, 14):

        def _feed(self, stored: memoryview, take: Callable[[bytes], None]) -> None:
            from compression import zstd

            try:
                part = self._decoder.decompress(stored, _STEP)
                while True:
                    take(part)
                    if self._decoder.eof:
                        rest = self._decoder.unused_data
                        self._decoder = zstd.ZstdDecompressor()
                        if not rest:
                            return
                        part = self._decoder.decompress(rest, _STEP)
                    elif self._decoder.needs_input:
                        return
                    else:
                        part = self._decoder.decompress(b"", _STEP)
            except (zstd.ZstdError, EOFError) as error:
                raise BrokenStreamError(str(error)) from error
