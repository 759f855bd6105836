"""Where exceptions go on: the call-site tables of language-specific data areas, as GCC and Clang write them (compiled).

The layout is that of the Itanium C++ ABI, "Exception Handling Tables"; C++, Rust and others use it.
"""

import cython
import numpy as np

from walkback.base.arrays import longer
from walkback.base.bits import WORD
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.cursor import Cursor
    from cython.cimports.walkback.dwarf import layout
    from cython.cimports.walkback.dwarf._entries import pointer
else:
    from walkback.base.cursor import Cursor
    from walkback.dwarf import layout
    from walkback.dwarf._entries import pointer

_WORD = cython.declare(cython.ulonglong, WORD)
_MOST = cython.declare(cython.Py_ssize_t, 1 << 24)
"""Entries of one file."""


@cython.final
@cython.cclass
class Landings:
    """Rows of the number of a function, where calls begin and end, and where their exceptions go on."""

    rows: cython.ulonglong[:, ::1]
    count: cython.Py_ssize_t

    def __init__(self):
        self.rows = memoryview(np.zeros((1 << 10, 4), np.uint64))
        self.count = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def add(
        self,
        number: cython.Py_ssize_t,
        start: cython.ulonglong,
        end: cython.ulonglong,
        place: cython.ulonglong,
    ) -> cython.int:
        if self.count == self.rows.shape[0]:
            self._grow()
        self.rows[self.count, 0] = cython.cast(cython.ulonglong, number)
        self.rows[self.count, 1] = start & _WORD
        self.rows[self.count, 2] = end & _WORD
        self.rows[self.count, 3] = place & _WORD
        self.count += 1
        return 0

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1, check=False)
    def _grow(self) -> cython.int:
        self.rows = memoryview(longer(np.asarray(self.rows), 2 * self.rows.shape[0]))
        return 0

    def all(self):
        """The rows."""
        return np.asarray(self.rows)[: self.count].copy()


def read(data, address, big, start, area):
    """The calls of functions that begin at `start` and have their areas at `area` in a section at an address."""
    found = Landings()
    _read(Cursor(data, big), address, start, area, found)
    return found.all()


@takes_views
def _read(
    cursor: Cursor,
    address: cython.ulonglong,
    start: cython.const[cython.ulonglong][::1],
    area: cython.const[cython.ulonglong][::1],
    found: Landings,
):
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(start.shape[0]):
            if area[i] < address or area[i] - address >= cython.cast(cython.ulonglong, cursor.buffer.shape[0]):
                continue
            cursor.move(cython.cast(cython.Py_ssize_t, area[i] - address), cursor.buffer.shape[0])
            _read_one(cursor, address, start[i], i, found)
            if found.count > _MOST:
                break


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _read_one(
    cursor: Cursor, address: cython.ulonglong, start: cython.ulonglong, number: cython.Py_ssize_t, found: Landings
) -> cython.int:
    """One area; what is damaged ends it."""
    base: cython.ulonglong = start
    encoding: cython.int = cython.cast(cython.int, cursor.fixed(1))
    if encoding != layout.DW_EH_PE_OMIT:
        base = pointer(cursor, encoding, 8, address, 0, 0, start)
    if cursor.fixed(1) != layout.DW_EH_PE_OMIT:
        cursor.uleb()
    encoding = cython.cast(cython.int, cursor.fixed(1)) & layout.DW_EH_PE_FORMAT_MASK
    size: cython.ulonglong = cursor.uleb()
    if cursor.failed or size > cython.cast(cython.ulonglong, cursor.end - cursor.pos):
        return 0
    end: cython.Py_ssize_t = cursor.pos + cython.cast(cython.Py_ssize_t, size)
    while cursor.pos < end and not cursor.failed:
        first: cython.ulonglong = pointer(cursor, encoding, 8, 0, 0, 0, 0)
        length: cython.ulonglong = pointer(cursor, encoding, 8, 0, 0, 0, 0)
        place: cython.ulonglong = pointer(cursor, encoding, 8, 0, 0, 0, 0)
        cursor.uleb()
        if place and not cursor.failed:
            found.add(number, start + first, start + first + length, base + place)
    return 0
