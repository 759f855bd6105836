"""What a file is called: its path, and its build ID."""

from __future__ import annotations

import os

from walkback.base.errors import WalkbackError
from walkback.base.text import printable
from walkback.elf import ElfFile


def shown(path: str) -> str:
    r"""A path as text, which no other has: bytes that are no text are `\xff`, and `printable` spells out the others."""
    return printable(os.fsencode(path).replace(b"\\", b"\\\\").decode(errors="backslashreplace"))


def build_id_text(elf: ElfFile) -> str | None:
    """The build ID in hexadecimal digits; None where there is none, or where a note is damaged."""
    try:
        return elf.build_id.hex() if elf.build_id else None
    except WalkbackError:
        return None
