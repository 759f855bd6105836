"""String tables (gABI, chapter "String Table"): strings that end with NUL, found by their offsets.

The errors here do not know the file and section; `ElfFile` adds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.base.errors import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

_SHORT_STRING = 128
_FEW = 256
"""Up to this many strings, Python compares faster than NumPy."""


def string(table: memoryview, offset: int) -> str:
    """The string at this offset."""
    length = _SHORT_STRING
    while 0 <= offset < len(table):
        part = bytes(table[offset : offset + length])
        end = part.find(0)
        if end >= 0:
            return part[:end].decode(errors="backslashreplace")
        if offset + length >= len(table):
            break
        length *= 4
    raise _no_string(offset)


def strings(table: memoryview, offsets: Iterable[int]) -> list[str]:
    """The strings at many offsets; quicker than one by one."""
    wanted = list(offsets)
    # A few strings are not worth a copy of the whole table.
    contents = bytes(table) if len(table) < 1000 * len(wanted) else None
    # Strings may share their tails, but honest ones do not add up to many times the table.
    budget = 16 * len(table) + 0x10000
    known: dict[int, str] = {}
    result = []
    for offset in wanted:
        text = known.get(offset)
        if text is None:
            if contents is None:
                text = string(table, offset)
            else:
                end = contents.find(0, offset) if 0 <= offset < len(contents) else -1
                if end < 0:
                    raise _no_string(offset)
                text = contents[offset:end].decode(errors="backslashreplace")
            known[offset] = text
            budget -= len(text)
            if budget < 0:
                raise ElfError("holds strings that overlap too much")
        result.append(text)
    return result


def find_string(table: memoryview, offsets: npt.NDArray[np.uint32], text: str, ends: bytes) -> npt.NDArray[np.intp]:
    """Which of the offsets are those of this string, which ends at any byte of `ends`."""
    wanted = text.encode(errors="surrogateescape")
    whole = {wanted + bytes((end,)) for end in ends}
    if len(offsets) <= _FEW:
        length = len(wanted) + 1
        same = [bytes(table[start : start + length]) in whole for start in offsets.tolist()]
        return np.flatnonzero(same)
    contents = np.frombuffer(table, np.uint8)
    found = np.flatnonzero(offsets.astype(np.int64) < len(contents) - len(wanted))
    for position in (len(wanted), *range(len(wanted))):  # its end first: which differs most
        possible = {end[position] for end in whole}
        here = contents[offsets[found].astype(np.int64) + position]
        found = found[np.logical_or.reduce([here == byte for byte in possible])]
    return found


def _no_string(offset: int) -> ElfError:
    return ElfError(f"has no string that begins at {offset:#x} and ends within it")
