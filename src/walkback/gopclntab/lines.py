"""Source files, lines and inlined calls of Go programs, which stripped programs keep in their table of functions.

A function has tables of values by program counter: the number of its file, the line, and which inlined call the code
is from. A list of inlined calls, which is elsewhere in the program, says for each what was called, and at which
instruction of the function one level out the call would be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walkback.base.arrays import I64, U64, ranked
from walkback.base.dataclass import dataclass
from walkback.gopclntab import _values
from walkback.gopclntab.decoding import FunctionTable
from walkback.gopclntab.layout import ENTRY_SHAPES, INLINED_CALLS
from walkback.symbols.sourceline import SourceLine

_LEVELS = 100
"""Calls that are inlined into each other, at most."""
_OFFSET_BITS = 32
_BYTES_OF_VALUE = 2
"""Of a table for each value, at least: more are not read where functions share their tables."""
_PCDATA, _FUNCDATA = 2, 3
"""Which of the tables by program counter is that of inlined calls, and which of the lists."""


class _Places(NamedTuple):
    """Instructions, as functions among those that are asked for, and offsets in them."""

    which: I64
    offset: I64


class _Values:
    """A table of values for each of some functions."""

    def __init__(self, functions: FunctionTable, numbers: I64, places: I64) -> None:
        start, end = functions.start[numbers], functions.end[numbers]
        header = functions.header
        most = len(functions.data) // _BYTES_OF_VALUE
        found = _values.depths(functions.data, header.words["values"], places, end - start, header.quantum, most)
        owner = np.repeat(np.arange(len(numbers)), found.rows)
        self._keys = (owner << _OFFSET_BITS) | found.offset.astype(np.int64)
        self._values, self._covered = found.depth.astype(np.int64), found.covered.astype(np.int64)

    def at(self, places: _Places) -> I64:
        """The values at instructions; -1 where there is none."""
        which, offset = places
        if not len(self._keys):
            return np.full(len(which), -1, np.int64)
        row = np.searchsorted(self._keys, (which << _OFFSET_BITS) | offset, "right") - 1
        known = (row >= 0) & (self._keys[row] >> _OFFSET_BITS == which) & (offset < self._covered[which])
        return np.where(known, self._values[row], -1)


class GoLines:
    """The lines of one program."""

    def __init__(self, functions: FunctionTable, calls: memoryview | None) -> None:
        """`calls` are the bytes from where the lists of inlined calls are counted."""
        self._functions = functions
        self._calls = calls
        self._texts: dict[int, str | None] = {}

    def find(self, addresses: U64, *, inlined: bool = False) -> list[tuple[SourceLine, ...]]:
        """For each address its line; with `inlined` those of the inlined calls around it too, innermost first."""
        functions = self._functions
        nothing: list[tuple[SourceLine, ...]] = [()] * len(addresses)
        if "units" not in functions.header.words or not len(functions):
            return nothing
        number = np.searchsorted(functions.start, addresses, "right") - 1
        held = np.flatnonzero((number >= 0) & (addresses < functions.end[number]))
        numbers, which = ranked(number[held])
        offset = (addresses[held] - functions.start[number[held]]).astype(np.int64)
        found = self._lines(numbers, _Places(which, offset), inlined=inlined)
        for place, lines in zip(held.tolist(), found, strict=True):
            nothing[place] = tuple(lines)
        return nothing

    def _lines(self, numbers: I64, places: _Places, *, inlined: bool) -> list[list[SourceLine]]:
        functions, shape = self._functions, ENTRY_SHAPES[self._functions.layout]
        entry = functions.entry_place[numbers]
        files, lines = (
            _Values(functions, numbers, self._words(entry + at)) for at in (shape.depths + 4, shape.depths + 8)
        )
        unit = self._words(entry + shape.depths + 16)
        calls = self._inlined(numbers, entry) if inlined else None
        found: list[list[SourceLine]] = [[] for _ in places.which]
        rows = np.arange(len(found))
        for _ in range(_LEVELS):
            names, parents = ([None] * len(rows), np.full(len(rows), -1)) if calls is None else calls.at(places)
            columns = (rows, unit[places.which], files.at(places), lines.at(places), numbers[places.which])
            for row, its_unit, file, line, number, name in zip(*(one.tolist() for one in columns), names, strict=True):
                text = self._file(its_unit, file)
                if text is not None and line > 0:
                    function = None if not inlined else functions.name(number) if name is None else name
                    found[row].append(SourceLine(text, line, function))
            inner = parents >= 0
            rows, places = rows[inner], _Places(places.which[inner], parents[inner])
            if not len(rows):
                break
        return found

    def _file(self, unit: int, number: int) -> str | None:
        """The file of a number, which counts in a unit of compilation."""
        words = self._functions.header.words
        place = words["units"] + 4 * (unit + number)
        if number < 0 or unit < 0 or not 0 <= place <= len(self._functions.data) - 4:
            return None
        offset = int(self._words(np.array([place]))[0])
        return None if offset < 0 else self._text(words["file_names"] + offset)

    def _text(self, place: int) -> str | None:
        if place not in self._texts:
            self._texts[place] = self._functions.text_at(place)
        return self._texts[place]

    def _words(self, places: I64) -> I64:
        """Numbers of 32 bits with a sign; 0 beyond the table."""
        data = np.frombuffer(self._functions.data, np.uint8)
        return _signed_words(data, places, self._functions.byteorder)

    def _inlined(self, numbers: I64, entry: I64) -> _Inlined | None:
        """The inlined calls of functions; None where the lists are not known."""
        functions, shape = self._functions, ENTRY_SHAPES[self._functions.layout]
        if self._calls is None or functions.layout not in INLINED_CALLS:
            return None
        tables, behind = self._words(entry + shape.depths + 12), entry + shape.size
        data = np.frombuffer(functions.data, np.uint8)
        lists = data[(behind - 1).clip(max=len(data) - 1)]
        has = (tables > _PCDATA) & (lists > _FUNCDATA)
        places = np.where(has, self._words(behind + 4 * _PCDATA), 0)
        trees = np.where(has, self._words(behind + 4 * (tables + _FUNCDATA)), -1)
        return _Inlined(functions, self._calls, _Values(functions, numbers, places), trees)


@dataclass(frozen=True, slots=True)
class _Inlined:
    """The inlined calls of some functions."""

    functions: FunctionTable
    calls: memoryview
    values: _Values
    """Which call the code is from."""
    tree: I64
    """Where the list of each function is; -1 where it has none."""

    def at(self, places: _Places) -> tuple[list[str | None], I64]:
        """What was called, None where nothing was, and where in the function the call would be; there -1."""
        shape = INLINED_CALLS[self.functions.layout]
        data = np.frombuffer(self.calls, np.uint8)
        number, tree = self.values.at(places), self.tree[places.which]
        place = tree + number * shape.size
        inside = np.flatnonzero((number >= 0) & (tree >= 0) & (place <= len(data) - shape.size))
        order, base = self.functions.byteorder, self.functions.header.words["names"]
        name, parent = (_signed_words(data, place[inside] + at, order) for at in (shape.name, shape.parent))
        names: list[str | None] = [None] * len(number)
        parents = np.full(len(number), -1, np.int64)
        for row, its_name, its_parent in zip(inside.tolist(), name.tolist(), parent.tolist(), strict=True):
            text = self.functions.text_at(base + its_name) if its_name >= 0 else None
            if text is not None and its_parent >= 0:
                names[row], parents[row] = text, its_parent
        return names, parents


def _signed_words(data: np.ndarray, places: I64, byteorder: str) -> I64:
    """Numbers of 32 bits with a sign; 0 beyond the data."""
    inside = (places >= 0) & (places <= len(data) - 4)
    cells = data[np.where(inside, places, 0)[:, None] + np.arange(4)]
    words = np.ascontiguousarray(cells).view("<i4" if byteorder == "little" else ">i4").reshape(-1)
    return np.where(inside, words.astype(np.int64), 0)
