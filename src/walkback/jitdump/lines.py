"""The source lines of the code of a dump, by its addresses in the ELF file that `image_of` makes."""

from __future__ import annotations

import struct
from functools import cached_property

import numpy as np

from walkback.base.arrays import U64
from walkback.jitdump import layout
from walkback.jitdump.decoding import JitDump
from walkback.symbols.sourceline import SourceLine


class DumpLines:
    """Those of one dump; they are read when the first is asked for."""

    def __init__(self, dump: JitDump, start: U64) -> None:
        """`start` is where each piece of code is in the ELF file."""
        self._dump = dump
        self._start = start
        self._names: dict[bytes, str] = {}
        self._known: dict[int, tuple[U64, list[SourceLine]]] = {}

    def find(self, addresses: U64) -> list[tuple[SourceLine, ...]]:
        """For each address its line, if it has one."""
        found: list[tuple[SourceLine, ...]] = [()] * len(addresses)
        loads = np.searchsorted(self._start, addresses, "right") - 1
        for row, load in enumerate(loads.tolist()):
            if load < 0 or not self._dump.loads.lines[load, 1]:
                continue
            if load not in self._known:
                self._known[load] = self._lines_of(load)
            begins, lines = self._known[load]
            number = int(np.searchsorted(begins, addresses[row] - self._start[load], "right")) - 1
            if number >= 0:
                found[row] = (lines[number],)
        return found

    def _lines_of(self, load: int) -> tuple[U64, list[SourceLine]]:
        """Where in a piece of code each line begins; none if one is elsewhere, as in some records of Node 20."""
        entries = self._entries(load)
        size = int(self._dump.size()[load])
        order = sorted(range(len(entries)), key=lambda number: entries[number][0])
        begins = [entries[number][0] - self._shift for number in order]
        if begins and not (begins[0] >= 0 and begins[-1] <= size):
            begins, order = [], []
        return np.array(begins, np.uint64), [entries[number][1] for number in order]

    def _entries(self, load: int) -> list[tuple[int, SourceLine]]:
        """The entries of a record, and how far behind the beginning of the code each is."""
        place, end = self._dump.loads.lines[load].tolist()
        data, prefix = self._dump.data, self._dump.prefix
        address, count = struct.unpack_from(prefix + layout.DEBUG_INFO, data, place)
        place += struct.calcsize(prefix + layout.DEBUG_INFO)
        shape = struct.Struct(prefix + layout.DEBUG_ENTRY)
        entries: list[tuple[int, SourceLine]] = []
        file: str | None = None
        while len(entries) < count and place + shape.size < end:
            at, line, _ = shape.unpack_from(data, place)
            name_end = data.find(b"\0", place + shape.size, end)
            if name_end < 0:
                break
            name = data[place + shape.size : name_end]
            if name != layout.SAME_NAME:
                file = self._names.setdefault(name, name.decode(errors="backslashreplace"))
            entries.append((at - address, SourceLine(file or None, max(line, 0))))
            place = name_end + 1
        return entries

    @cached_property
    def _shift(self) -> int:
        """How much all addresses are too large, as V8's are: then not one line begins before that in its code."""
        first = struct.Struct(self._dump.prefix + layout.DEBUG_INFO + "Q")
        for begin, end in self._dump.loads.lines.tolist():
            if end and begin + first.size <= end:
                address, count, at = first.unpack_from(self._dump.data, begin)
                if count and 0 <= at - address < layout.V8_SHIFT:
                    return 0
        return layout.V8_SHIFT
