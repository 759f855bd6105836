"""Names of kernel code, from `/proc/kallsyms`: a line has an address, a type, a name, and in brackets its module.

The names are those of the running kernel; only its build ID shows whether a recording comes from the same kernel.
Without the right to see addresses, all of them are 0, and there are no names.
"""

from __future__ import annotations

import contextlib
import os
from functools import cached_property
from pathlib import Path

import numpy as np

from walkback.base.arrays import I64, U8, U64, distinct
from walkback.base.errors import WalkbackError
from walkback.elf.notes import find_build_id, read_notes

KERNEL = "[kernel.kallsyms]"
"""What perf calls the kernel itself."""

_TEXT = b"TtWw"
_NIBBLES = np.full(256, 255, np.uint8)
for _digit, _byte in enumerate(b"0123456789abcdef"):
    _NIBBLES[_byte] = _digit
_ADDRESS, _NAME = 16, 19
_LARGEST = 256 * 1024 * 1024


def kernel_build_id(notes: str | os.PathLike[str] = "/sys/kernel/notes") -> bytes | None:
    """The build ID of the kernel that runs; None if it says none."""
    with contextlib.suppress(OSError, WalkbackError):
        contents = Path(notes).read_bytes()
        return find_build_id(read_notes(memoryview(contents), "little" if _is_little() else "big", 4, (str(notes), 0)))
    return None


def _is_little() -> bool:
    return np.dtype(np.uint16).newbyteorder("=") == np.dtype("<u2")


class Kallsyms:
    """The names, read when first asked for."""

    def __init__(
        self, path: str | os.PathLike[str] = "/proc/kallsyms", notes: str | os.PathLike[str] = "/sys/kernel/notes"
    ) -> None:
        self._path = path
        self._notes = notes

    @cached_property
    def build_id(self) -> bytes | None:
        """Of the kernel whose names these are."""
        return kernel_build_id(self._notes)

    def read(self) -> None:
        """Read them now, before there is less time for that."""
        _ = self._table

    def locate(self, addresses: U64) -> tuple[list[str | None], U64, list[str]]:
        """Of each address the name, where that begins, and its module; None and 0 if it has no name.

        A name goes on to the next, as kallsyms has no sizes; behind the last of all nothing is known.
        """
        contents, start, line, end = self._table
        rows = np.searchsorted(start, addresses, "right") - 1
        known = (rows >= 0) & (rows < len(start) - 1)
        if not known.any():
            return [None] * len(addresses), np.zeros(len(addresses), np.uint64), [KERNEL] * len(addresses)
        read: dict[int, tuple[str, str]] = {}
        for row in distinct(rows[known]).tolist():
            text = contents[int(line[row]) + _NAME : int(end[row])].decode(errors="backslashreplace")
            name, _, module = text.partition("\t")
            read[row] = name, module.strip() or KERNEL
        found = [read[row] if here else (None, KERNEL) for row, here in zip(rows.tolist(), known.tolist(), strict=True)]
        begins = np.where(known, start[np.where(known, rows, 0)], np.uint64(0))
        return [name for name, _ in found], begins, [module for _, module in found]

    @cached_property
    def _table(self) -> tuple[bytes, U64, I64, I64]:
        """The contents, and of the lines of text symbols the address, and where they begin and end, by address."""
        contents = b""
        with contextlib.suppress(OSError), open(self._path, "rb") as file:
            contents = file.read(_LARGEST)
        data = np.frombuffer(contents, np.uint8)
        end = np.flatnonzero(data == ord("\n")).astype(np.int64)
        line = np.zeros(len(end), np.int64)
        line[1:] = end[:-1] + 1
        keep = end - line > _NAME
        line, end = line[keep], end[keep]
        keep = np.isin(data[line + _NAME - 2], np.frombuffer(_TEXT, np.uint8))
        keep &= (data[line + _ADDRESS] == ord(" ")) & (data[line + _NAME - 1] == ord(" "))
        line, end = line[keep], end[keep]
        start, sound = _addresses(data, line)
        sound &= start != 0
        order = np.flatnonzero(sound)[np.argsort(start[sound], kind="stable")]
        start, line, end = start[order], line[order], end[order]
        # Of several names of one address the first stays.
        first = np.ones(len(start), np.bool_)
        first[1:] = start[1:] != start[:-1]
        return contents, start[first], line[first], end[first]


def _addresses(data: U8, line: I64) -> tuple[U64, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    """The number of 16 digits that begins each line, and which of them are such numbers."""
    value = np.zeros(len(line), np.uint64)
    sound = np.ones(len(line), np.bool_)
    for place in range(_ADDRESS):
        digit = _NIBBLES[data[line + place]]
        sound &= digit < 16
        value = value << np.uint64(4) | digit
    return value, sound
