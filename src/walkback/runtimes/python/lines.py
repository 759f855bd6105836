"""Which line an instruction is of: the table of locations that a code object has.

An entry stands for one to eight instructions. Its first byte has the highest bit set, then four bits that say in which
form the line and the columns follow, and three for the number of instructions.
"""

from __future__ import annotations

from bisect import bisect_right

_SHORT = range(10)
"""The line before, with columns in one byte."""
_ONE_LINE = range(10, 13)
"""0 to 2 lines further, with columns in two bytes."""
_NO_COLUMNS, _LONG, _NONE = 13, 14, 15


class LineTable:
    """Lines of the instructions of one code object."""

    def __init__(self, table: bytes, first_line: int) -> None:
        self.first_line = first_line
        self._ends: list[int] = []
        """Where each run of instructions ends, as the number of an instruction."""
        self._lines: list[int] = []
        self._read(table)

    def find(self, number: int) -> int:
        """The line of an instruction, by its number; 0 where there is none."""
        if number < 0:
            return self.first_line
        place = bisect_right(self._ends, number)
        return self._lines[place] if place < len(self._lines) else 0

    def _read(self, table: bytes) -> None:
        """A table that is cut or damaged ends there."""
        place, line, end = 0, self.first_line, 0
        while place < len(table) and table[place] & 0x80:
            form, count = table[place] >> 3 & 15, (table[place] & 7) + 1
            place += 1
            if form in _SHORT:
                place += 1
            elif form in _ONE_LINE:
                line += form - _ONE_LINE.start
                place += 2
            elif form in {_NO_COLUMNS, _LONG}:
                step, place = _signed(table, place)
                line += step
                for _ in range(3 if form == _LONG else 0):
                    _, place = _unsigned(table, place)
            end += count
            self._ends.append(end)
            self._lines.append(line if form != _NONE and 0 < line < 2**31 else 0)


def _unsigned(table: bytes, place: int) -> tuple[int, int]:
    """A number of six bits a byte, the lowest first, and the place behind it."""
    value = shift = 0
    while place < len(table) and not table[place] & 0x80:
        byte = table[place]
        place += 1
        if shift < 64:
            value |= (byte & 63) << shift
            shift += 6
        if not byte & 64:
            break
    return value, place


def _signed(table: bytes, place: int) -> tuple[int, int]:
    """The same with the sign in its lowest bit."""
    value, place = _unsigned(table, place)
    return -(value >> 1) if value & 1 else value >> 1, place
