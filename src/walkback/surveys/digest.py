"""The digest of a content: by it copies of a file are known as one.

Blocks that are all zero are left out and the others are hashed with their numbers, so that a sparse file has the
digest of its dense copy, and of its holes no more is read than 16 times what it has on the disk.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from walkback.base.errors import UnreadableError
from walkback.base.replace import CHANGED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from walkback.elf import Contents

_BLOCK: Final = 1 << 16
_ZEROS: Final = bytes(_BLOCK)
_DIGEST_SIZE: Final = 16


def content_digest(data: Contents) -> str:
    """The digest of these bytes: 32 hexadecimal digits."""
    return _digest(len(data), ((start, data[start : start + _BLOCK]) for start in range(0, len(data), _BLOCK)))


def file_digest(path: str) -> str:
    """The same of a regular file, whose holes are not read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            size = os.fstat(descriptor).st_size
            return _digest(size, _blocks(descriptor, size))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error), file=path) from error


def _digest(size: int, blocks: Iterable[tuple[int, bytes | memoryview]]) -> str:
    digest = blake2b(size.to_bytes(8, "little"), digest_size=_DIGEST_SIZE)
    for start, block in blocks:
        # Most blocks that begin with something are known for it by a look at few bytes.
        if any(block[:8]) or bytes(block) != _ZEROS[: len(block)]:
            digest.update(start.to_bytes(8, "little"))
            digest.update(block)
    return digest.hexdigest()


def _blocks(descriptor: int, size: int) -> Iterator[tuple[int, bytes]]:
    start = 0
    while start < size:
        block = _read(descriptor, start, min(_BLOCK, size - start))
        yield start, block
        start = _next_data(descriptor, start + _BLOCK, size)


def _read(descriptor: int, start: int, size: int) -> bytes:
    block = os.pread(descriptor, size, start)
    while len(block) < size:
        more = os.pread(descriptor, size - len(block), start + len(block))
        if not more:
            raise UnreadableError(CHANGED)
        block += more
    return block


def _next_data(descriptor: int, start: int, size: int) -> int:
    """Where the next block begins that is not all a hole, at this offset or behind it."""
    if start >= size:
        return size
    try:
        return os.lseek(descriptor, start, os.SEEK_DATA) // _BLOCK * _BLOCK
    except OSError:  # nothing but a hole up to the end
        return size
