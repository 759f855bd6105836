"""Debian packages: an `ar` archive of `debian-binary`, `control.tar` and `data.tar`; as in deb(5).

They are read in one go, which the archives of object files with their tables of names and symbols cannot be.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from walkback.base.errors import ElfError
from walkback.elf import layout
from walkback.elf.archive import AR_HEADER, ARFMAG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.packages.streams import MemoryBudget, Stream

CONTROL: Final = "control.tar"
DATA: Final = "data.tar"
_FIELD: Final = re.compile(rb"^(Package|Version|Architecture):(.*)$", re.MULTILINE | re.IGNORECASE)


def members(stream: Stream, room: MemoryBudget) -> Iterator[tuple[str, Stream]]:
    """The members of the outer archive."""
    stream.read(len(layout.ARMAG))
    while stream.peek(1):
        room.take_member()
        name, _, _, _, _, size, magic = AR_HEADER.unpack(stream.read(AR_HEADER.size))
        digits = size.rstrip(b" ")
        if magic != ARFMAG or not digits.isdigit():
            raise ElfError("has something else where the header of a member is expected")
        part = stream.part(int(digits))
        yield name.rstrip(b" ").removesuffix(b"/").decode(errors="backslashreplace"), part
        part.drain()
        if int(digits) % 2 and stream.peek(1):
            stream.read(1)


def fields(control: bytes) -> dict[str, str]:
    """What the control file says: `package`, `version` and `architecture`."""
    found = _FIELD.findall(control)
    return {key.decode().lower(): value.strip().decode(errors="backslashreplace") for key, value in found}
