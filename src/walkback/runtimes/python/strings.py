"""Objects of Python that hold text or a number."""

from __future__ import annotations

import struct
from typing import Literal

from walkback.base.text import clean
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.layout import (
    ASCII_AT,
    COMPACT_AT,
    FREE_THREADED_SHIFT,
    KIND_AT,
    KIND_BITS,
    OLD_STRING_SIZE,
    UTF8_SIZE,
)
from walkback.runtimes.python.offsets import Build

FIRST_READ = 256
"""Bytes of a string or a table that are read at once; few are longer."""
_MOST_CHARACTERS = 1000
_CODECS = {1: "latin-1", 2: "utf-16", 4: "utf-32"}
_STATE = ((KIND_AT, KIND_BITS), (COMPACT_AT, 1), (ASCII_AT, 1))


class Strings:
    """The string objects of one process."""

    def __init__(self, build: Build, byteorder: Literal["little", "big"]) -> None:
        self._build, self._layout = build, build.layout
        self._big = byteorder == "big"
        self._order = ">" if self._big else "<"

    def read(self, address: int | None, memory: TargetMemory, head: bytes | None = None) -> str | None:
        """The text of a string object, cut where it is long; None if there is none.

        `head` is what was read of it already.
        """
        if not address:
            return None
        layout, order = self._layout, self._order
        if head is None:
            head = memory.read(address, FIRST_READ)
        if len(head) < layout.string_state + 4:
            return None
        length = word(head, layout.string_length, order) or 0
        state = struct.unpack_from(f"{order}I", head, layout.string_state)[0]
        kind, compact, ascii_only = (self._bits(state, *one) for one in _STATE)
        if not compact or kind not in _CODECS or length >= 2**62:
            return None
        more = 0 if ascii_only else OLD_STRING_SIZE if self._build.version == (3, 11) else UTF8_SIZE
        begin, cut = layout.string_ascii + more, min(length, _MOST_CHARACTERS)
        size = cut * kind
        if begin + size > len(head):
            head = memory.read(address, begin + size)
        codec = _CODECS[kind] + ("" if kind == 1 else "-be" if self._big else "-le")
        text = clean(head[begin : begin + size].decode(codec, "replace"))
        return text + "..." if cut < length else text

    def _bits(self, state: int, place: int, count: int) -> int:
        """Some bits of `state`, which compilers count from the other end on machines of the other byte order."""
        if self._build.free_threaded and self._build.version >= (3, 14):
            place += FREE_THREADED_SHIFT
        return state >> (32 - place - count if self._big else place) & ((1 << count) - 1)


def word(contents: bytes, place: int, order: str) -> int | None:
    """A number of 64 bits; None where there is none."""
    return int(struct.unpack_from(f"{order}Q", contents, place)[0]) if place + 8 <= len(contents) else None
