"""Columns of numbers and texts on their way into a page: compressed once, and arrays again when the script has them.

`columns.js` reads them. Numbers are stored as wide as their largest needs, so that a million rows are a few megabytes.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from walkback.base.arrays import I64, Numbers
from walkback.base.text import printable

_LEVEL = 6
_WIDTHS = (np.uint8, np.uint16, np.uint32, np.uint64)


class PageColumns:
    """Columns by name; `described` says which there are, `packed` has their contents."""

    def __init__(self) -> None:
        self.described: list[tuple[str, str, int]] = []
        """Name, kind (`u1` to `u8` for numbers of 1 to 8 bytes, `t` for texts) and bytes of each, in their order."""
        self._parts: list[bytes] = []

    def numbers(self, name: str, values: Numbers) -> None:
        """A column of numbers that are not negative."""
        most = int(values.max(initial=0))
        width = next(width for width in _WIDTHS if most <= np.iinfo(width).max)
        little = np.ascontiguousarray(values, np.dtype(width).newbyteorder("<"))
        self._add(name, f"u{little.itemsize}", little.tobytes())

    def rising(self, name: str, values: Numbers) -> None:
        """A column of numbers, most of them near the one before: their differences are stored.

        They are modulo two to the power of 64.
        """
        wide = np.ascontiguousarray(values).astype(np.uint64)
        steps = np.diff(wide, prepend=np.uint64(0)).view(np.int64)
        # Small numbers of either sign become small numbers without.
        self.numbers(name, ((steps << 1) ^ (steps >> 63)).view(np.uint64))

    def stepping(self, name: str, count: I64, offset: Numbers, number: Numbers) -> None:
        """Things at rising offsets, some for each function, each with a number; the offsets are stored as steps."""
        first = np.zeros(len(offset), np.bool_)
        first[(np.cumsum(count) - count)[count > 0]] = True
        step = np.diff(offset, prepend=offset.dtype.type(0))
        step[first] = offset[first]
        self.numbers(f"{name}Count", count)
        self.numbers(f"{name}Step", step)
        self.numbers(f"{name}Number", number)

    def texts(self, name: str, values: Iterable[str]) -> None:
        """A column of texts; each is made printable, so none has more than a line."""
        text = "\n".join(map(printable, values))
        self._add(name, "t", text.encode("utf-8", "backslashreplace"))

    def _add(self, name: str, kind: str, data: bytes) -> None:
        self.described.append((name, kind, len(data)))
        self._parts.append(data)

    def packed(self) -> str:
        """All columns, compressed as zlib does, in base64; each begins at a multiple of eight bytes."""
        squeezed = zlib.compressobj(_LEVEL)
        pieces: list[Any] = []
        for part in self._parts:
            pieces += [squeezed.compress(part), squeezed.compress(bytes(-len(part) % 8))]
        return base64.b64encode(b"".join([*pieces, squeezed.flush()])).decode()
