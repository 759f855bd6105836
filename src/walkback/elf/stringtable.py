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


def find_string(
    table: memoryview, offsets: npt.NDArray[np.uint32], *texts: str, ends: bytes = b"\0"
) -> npt.NDArray[np.intp]:
    """Which of the offsets are those of one of these strings, which end at any byte of `ends`."""
    wanted = [text.encode(errors="surrogateescape") for text in texts]
    whole = {one + bytes((end,)) for one in wanted for end in ends}
    found = np.arange(len(offsets))
    if len(offsets) > _FEW:
        contents = np.frombuffer(table, np.uint8)
        shortest = min(map(len, whole))
        found = np.flatnonzero(offsets.astype(np.int64) <= len(contents) - shortest)
        for position in (shortest - 1, *range(shortest - 1)):  # the end of a single string first: which differs most
            possible = {one[position] for one in whole}
            here = contents[offsets[found].astype(np.int64) + position]
            found = found[np.logical_or.reduce([here == byte for byte in possible])]
        if len(set(map(len, whole))) == 1:
            return found
    longest, beginnings = max(map(len, whole)), tuple(whole)
    same = [bytes(table[start : start + longest]).startswith(beginnings) for start in offsets[found].tolist()]
    return found[np.array(same, np.bool_)]


def _no_string(offset: int) -> ElfError:
    return ElfError(f"has no string that begins at {offset:#x} and ends within it")
