"""Core files that are compressed, as systemd-coredump keeps them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from walkback.base.decoders import MAGIC, decompressed
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.elf import ElfFile, Input, OpenFile, contents_of, one_elf

_LARGEST = 4 << 30
"""Bytes that come out of one."""
_LONGEST_MAGIC = 8


def core_elf(source: Input) -> ElfFile:
    """The core file, unpacked into a temporary file if that is needed."""
    if isinstance(source, ElfFile):
        return source
    data, name = contents_of(source)
    begin = bytes(data[:_LONGEST_MAGIC])
    method = next((method for method, magic in MAGIC.items() if magic.match(begin)), None)
    if method is None:
        return one_elf(source)
    place = 0

    def pull(size: int) -> memoryview:
        nonlocal place
        place += size
        return data[place - size : place]

    try:
        with tempfile.TemporaryFile() as file:
            for piece in decompressed(method, pull):
                if file.tell() + len(piece) > _LARGEST:
                    raise UnreadableError(f"holds more than {_LARGEST} bytes")
                # Most of a core file may be zeros, which need no room on the disk.
                if piece.strip(b"\0"):
                    file.write(piece)
                else:
                    file.seek(len(piece), os.SEEK_CUR)
            file.truncate()
            file.flush()
            return ElfFile(OpenFile(Path(f"/proc/self/fd/{file.fileno()}")), name)
    except WalkbackError as error:
        raise error.within(file=name) from None
    except OSError as error:
        raise UnreadableError(f"it cannot be unpacked: {error.strerror or error}", file=name) from None
