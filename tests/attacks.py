"""Files made to do harm, and the moments at which others change a file."""

from __future__ import annotations

import os
import struct
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_armed: list[Callable[[], None]] = []
_hooked = False


def when_writing_begins(act: Callable[[], None]) -> None:
    """Do something once, as soon as the next temporary file for an output is about to be made."""
    global _hooked  # noqa: PLW0603 - a hook can never be taken away
    if not _hooked:
        sys.addaudithook(_on_event)
        _hooked = True
    _armed[:] = [act]


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if _armed and event == "open" and str(arguments[0]).startswith(".walkback-"):
        _armed.pop()()


def with_copies(contents: bytes, name: bytes, count: int) -> bytes:
    """A 64-bit little-endian file with so many section headers more that are those of one section."""
    (offset,) = struct.unpack_from("<Q", contents, 0x28)
    number, names = struct.unpack_from("<HH", contents, 0x3C)
    headers = [contents[offset + 64 * i :][:64] for i in range(number)]
    (table,) = struct.unpack_from("<Q", headers[names], 24)
    (wanted,) = (
        one for one in headers if contents[table + struct.unpack_from("<I", one)[0] :].startswith(name + b"\0")
    )
    made = bytearray(contents + bytes(-len(contents) % 8))
    struct.pack_into("<Q", made, 0x28, len(made))
    struct.pack_into("<H", made, 0x3C, number + count)
    return bytes(made) + b"".join(headers) + wanted * count


def sparse(path: Path, contents: bytes, size: int) -> Path:
    """A file that claims more than it has on the disk."""
    path.write_bytes(contents)
    os.truncate(path, size)
    return path
