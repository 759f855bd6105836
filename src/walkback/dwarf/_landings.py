"""Where exceptions go on, and what they take off the stack (compiled).

The call-site tables of language-specific data areas are read as GCC and Clang write them.

The layout is that of the Itanium C++ ABI, "Exception Handling Tables"; C++, Rust and others use it.
"""

import cython

from walkback.base.bits import WORD
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.cursor import Cursor
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.dwarf import layout
    from cython.cimports.walkback.dwarf._entries import pointer
    from cython.cimports.walkback.dwarf._instruction import ProgramReader
    from cython.cimports.walkback.dwarf.actions import Action
else:
    from walkback.base.cursor import Cursor
    from walkback.base.growing import Growing
    from walkback.dwarf import layout
    from walkback.dwarf._entries import pointer
    from walkback.dwarf._instruction import ProgramReader
    from walkback.dwarf.actions import Action

_WORD = cython.declare(cython.ulonglong, WORD)
_MOST = cython.declare(cython.Py_ssize_t, 1 << 24)
"""Entries of one file."""


def read(data, address, big, start, area):
    """The calls of functions that begin at `start` and have their areas at `area` in a section at an address.

    A row has the number of the function, where calls begin and end, and where their exceptions go on.
    """
    found = Growing(4)
    _read(Cursor(data, big), address, start, area, found)
    return found.rows()


def arguments(reader, fdes):
    """How many bytes of arguments are on the stack at calls, which an exception takes off it.

    A row has the number of an FDE that says so anywhere, an offset in its code, and the bytes from there on.
    """
    found = Growing(3)
    _arguments(reader, fdes.rows, fdes.size, found)
    return found.rows()


@takes_views
def _arguments(
    reader: ProgramReader,
    rows: cython.const[cython.longlong][::1],
    size: cython.const[cython.ulonglong][::1],
    found: Growing,
):
    f: cython.Py_ssize_t
    with cython.nogil:
        for f in range(rows.shape[0]):
            if rows[f]:
                reader.open_fde(f)
                _arguments_of_one(reader, f, size[f], found)


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _arguments_of_one(
    reader: ProgramReader, number: cython.Py_ssize_t, size: cython.ulonglong, found: Growing
) -> cython.int:
    """One program, up to what is wrong in it."""
    location: cython.ulonglong = 0
    is_any: cython.bint = False
    while reader.cursor.pos < reader.cursor.end:
        is_size: cython.bint = reader.cursor.buffer[reader.cursor.pos] == layout.DW_CFA_GNU_ARGS_SIZE
        action: cython.int = reader.read(location)
        if reader.cursor.failed or action >= Action.WRONG:
            break
        if action == Action.ADVANCE:
            location = (location + reader.delta) & _WORD
        elif is_size:
            if not is_any:
                found.add(number, 0, 0)
            is_any = True
            found.add(number, location, cython.cast(cython.ulonglong, reader.operand & _WORD))
    if is_any:
        found.add(number, size, 0)
    return 0


@takes_views
def _read(
    cursor: Cursor,
    address: cython.ulonglong,
    start: cython.const[cython.ulonglong][::1],
    area: cython.const[cython.ulonglong][::1],
    found: Growing,
):
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(start.shape[0]):
            if area[i] < address or area[i] - address >= cython.cast(cython.ulonglong, cursor.buffer.shape[0]):
                continue
            cursor.move(cython.cast(cython.Py_ssize_t, area[i] - address), cursor.buffer.shape[0])
            _read_one(cursor, address, start[i], i, found)
            if found.used > _MOST * found.width:
                break


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _read_one(
    cursor: Cursor, address: cython.ulonglong, start: cython.ulonglong, number: cython.Py_ssize_t, found: Growing
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
            first = (start + first) & _WORD
            found.add(number, first, (first + length) & _WORD, (base + place) & _WORD)
    return 0
