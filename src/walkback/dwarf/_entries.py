"""The entries of `.eh_frame` and `.debug_frame` to columns (compiled).

DWARF 5, section 6.4.1; Linux Standard Base, "Exception Frames"; the augmentations B and G are those of AArch64.
"""

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.walkback.cursor import Cursor, sign_extended
else:
    from walkback.cursor import Cursor, sign_extended

_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_ESCAPE = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_FIRST_RESERVED = cython.declare(cython.ulonglong, 0xFFFFFFF0)

# Those of `layout.Fault`; a test holds them together.
_CUT_OFF = cython.declare(cython.int, 1)
_CIE_VERSION = cython.declare(cython.int, 2)
_AUGMENTATION = cython.declare(cython.int, 3)
_ADDRESS_SIZE = cython.declare(cython.int, 4)
_CIE_FAULT = cython.declare(cython.int, 6)
_ENCODING = cython.declare(cython.int, 7)
_SEGMENT = cython.declare(cython.int, 11)

_OMIT = cython.declare(cython.int, 0xFF)


def scan(buffer, eh, big):
    """Where the entries stand: (positions, ends, where the fields begin after the identifier, pointers to CIEs, stop).

    The pointer of a CIE is -1, and of an FDE the place it points to. `stop` is where an entry reaches beyond the end,
    or -1. An entry of length 0 is no end: those in the middle are left over by linkers.
    """
    # Every entry has at least its length and its identifier.
    most = len(buffer) // 8 + 1
    entries = np.empty((4, most), np.int64)
    count, stop = _scan(Cursor(buffer, big), eh, memoryview(entries))
    return (*entries[:, :count], stop)


@cython.cfunc
def _scan(cursor: Cursor, eh: cython.bint, entries: cython.longlong[:, ::1]) -> tuple:
    count: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t = -1
    pos: cython.Py_ssize_t
    whole: cython.Py_ssize_t = cursor.end
    field: cython.Py_ssize_t
    length: cython.ulonglong
    identifier: cython.ulonglong
    size: cython.int
    with cython.nogil:
        while cursor.pos < whole:
            pos = cursor.pos
            cursor.move(pos, whole)
            size = 4
            length = cursor.fixed(4)
            if length == _ESCAPE:
                length = cursor.fixed(8)
                # The identifier of .eh_frame stays short.
                size = 4 if eh else 8
            elif length >= _FIRST_RESERVED:
                cursor.failed = True
            if cursor.failed or length > cython.cast(cython.ulonglong, whole - cursor.pos):
                stop = pos
                break
            if length == 0:
                continue
            field = cursor.pos
            cursor.move(field, field + cython.cast(cython.Py_ssize_t, length))
            identifier = cursor.fixed(size)
            if cursor.failed:
                stop = pos
                break
            entries[0, count] = pos
            entries[1, count] = cursor.end
            entries[2, count] = cursor.pos
            if eh:
                if identifier == 0:
                    entries[3, count] = -1
                elif identifier > cython.cast(cython.ulonglong, field):
                    entries[3, count] = whole
                else:
                    entries[3, count] = field - cython.cast(cython.Py_ssize_t, identifier)
            elif identifier == (_ESCAPE if size == 4 else _WORD):
                entries[3, count] = -1
            else:
                entries[3, count] = min(identifier, cython.cast(cython.ulonglong, whole))
            count += 1
            cursor.move(cursor.end, whole)
    return count, stop


def read_cies(buffer, big, address, columns):
    """Fill the columns of the CIEs; their `fields` and `end` are known."""
    _read_cies(
        Cursor(buffer, big),
        address,
        memoryview(columns.fields),
        memoryview(columns.end),
        memoryview(columns.version),
        memoryview(columns.code_align),
        memoryview(columns.data_align),
        memoryview(columns.ra_column),
        memoryview(columns.address_size),
        memoryview(columns.fde_encoding),
        memoryview(columns.lsda_encoding),
        memoryview(columns.personality),
        memoryview(columns.signal),
        memoryview(columns.b_key),
        memoryview(columns.sized),
        memoryview(columns.program),
        memoryview(columns.fault),
    )


@cython.cfunc
def _read_cies(
    cursor: Cursor,
    address: cython.ulonglong,
    fields: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    version: cython.uchar[::1],
    code_align: cython.ulonglong[::1],
    data_align: cython.longlong[::1],
    ra_column: cython.ulonglong[::1],
    address_size: cython.uchar[::1],
    fde_encoding: cython.uchar[::1],
    lsda_encoding: cython.uchar[::1],
    personality: cython.longlong[::1],
    signal: cython.uchar[::1],
    b_key: cython.uchar[::1],
    sized: cython.uchar[::1],
    program: cython.longlong[::1],
    fault: cython.uchar[::1],
) -> cython.int:
    i: cython.Py_ssize_t
    letters: cython.Py_ssize_t
    data_end: cython.Py_ssize_t
    letter: cython.int
    encoding: cython.int
    with cython.nogil:
        for i in range(fields.shape[0]):
            cursor.move(fields[i], ends[i])
            version[i] = cursor.fixed(1)
            address_size[i] = 8
            lsda_encoding[i] = _OMIT
            personality[i] = -1
            if not (version[i] == 1 or version[i] == 3 or version[i] == 4):
                fault[i] = _CIE_VERSION
                continue
            letters = cursor.pos
            letter = cython.cast(cython.int, cursor.fixed(1))
            while letter and not cursor.failed:
                letter = cython.cast(cython.int, cursor.fixed(1))
            if cursor.pos - letters == 3 and cursor.buffer[letters] == ord("e"):
                if cursor.buffer[letters + 1] == ord("h"):
                    letters += 2  # the old "eh": a pointer stands here
                    cursor.fixed(8)
            if version[i] == 4:
                address_size[i] = cursor.fixed(1)
                if cursor.fixed(1) and not cursor.failed:
                    fault[i] = _SEGMENT
                    continue
            code_align[i] = cursor.uleb()
            data_align[i] = cursor.sleb()
            ra_column[i] = cursor.fixed(1) if version[i] == 1 else cursor.uleb()
            if cursor.failed:
                fault[i] = _CUT_OFF
                continue
            if not (address_size[i] == 8 or address_size[i] == 4 or address_size[i] == 2):
                fault[i] = _ADDRESS_SIZE
                continue
            data_end = -1
            if cursor.buffer[letters] == ord("z"):
                sized[i] = True
                letters += 1
                data_end = cursor.pos
                # Written so that what is added is known before the place is.
                data_end = _after(cursor)
                if cursor.failed:
                    fault[i] = _CUT_OFF
                    continue
            while cursor.buffer[letters] and not fault[i]:
                letter = cursor.buffer[letters]
                letters += 1
                if letter == ord("R"):
                    fde_encoding[i] = cursor.fixed(1)
                elif letter == ord("L"):
                    lsda_encoding[i] = cursor.fixed(1)
                elif letter == ord("P"):
                    encoding = cython.cast(cython.int, cursor.fixed(1))
                    personality[i] = cursor.pos
                    if encoding == _OMIT:
                        personality[i] = -1
                    elif _skip_pointer(cursor, encoding, address_size[i], address):
                        fault[i] = _ENCODING
                elif letter == ord("S"):
                    signal[i] = True
                elif letter == ord("B"):
                    b_key[i] = True
                elif letter != ord("G"):
                    if data_end < 0:
                        fault[i] = _AUGMENTATION
                    break
            if cursor.failed or (data_end >= 0 and cursor.pos > data_end):
                fault[i] = _CUT_OFF
            program[i] = data_end if data_end >= 0 else cursor.pos
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _after(cursor: Cursor) -> cython.Py_ssize_t:
    """Where the bytes end whose length stands here."""
    length: cython.ulonglong = cursor.uleb()
    if length > cython.cast(cython.ulonglong, cursor.end - cursor.pos):
        cursor.failed = True
        return 0
    return cursor.pos + cython.cast(cython.Py_ssize_t, length)


def read_fdes(buffer, big, address, text, data, cies, columns):
    """Fill the columns of the FDEs; their `fields`, `end` and `cie` are known."""
    _read_fdes(
        Cursor(buffer, big),
        address,
        text,
        data,
        memoryview(cies.address_size),
        memoryview(cies.fde_encoding),
        memoryview(cies.lsda_encoding),
        memoryview(cies.sized),
        memoryview(cies.fault),
        memoryview(columns.fields),
        memoryview(columns.end),
        memoryview(columns.cie),
        memoryview(columns.start_field),
        memoryview(columns.start),
        memoryview(columns.size),
        memoryview(columns.lsda),
        memoryview(columns.program),
        memoryview(columns.fault),
    )


@cython.cfunc
def _read_fdes(
    cursor: Cursor,
    address: cython.ulonglong,
    text: cython.ulonglong,
    data: cython.ulonglong,
    address_size: cython.const[cython.uchar][::1],
    fde_encoding: cython.const[cython.uchar][::1],
    lsda_encoding: cython.const[cython.uchar][::1],
    sized: cython.const[cython.uchar][::1],
    cie_fault: cython.const[cython.uchar][::1],
    fields: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    cie: cython.const[cython.longlong][::1],
    start_field: cython.longlong[::1],
    start: cython.ulonglong[::1],
    size: cython.ulonglong[::1],
    lsda: cython.uchar[::1],
    program: cython.longlong[::1],
    fault: cython.uchar[::1],
) -> cython.int:
    i: cython.Py_ssize_t
    c: cython.Py_ssize_t
    data_end: cython.Py_ssize_t
    with cython.nogil:
        for i in range(fields.shape[0]):
            c = cie[i]
            if fault[i]:
                continue
            if cie_fault[c]:
                fault[i] = _CIE_FAULT
                continue
            cursor.move(fields[i], ends[i])
            start_field[i] = cursor.pos
            if not _known(fde_encoding[c]):
                fault[i] = _ENCODING
                continue
            start[i] = pointer(cursor, fde_encoding[c], address_size[c], address, text, data, 0)
            size[i] = pointer(cursor, fde_encoding[c] & 0x0F, address_size[c], 0, 0, 0, 0)
            data_end = -1
            if sized[c]:
                data_end = _after(cursor)
            if lsda_encoding[c] != _OMIT and not cursor.failed:
                # A stored pointer of 0 says that there is none.
                lsda[i] = pointer(cursor, lsda_encoding[c] & 0x0F, address_size[c], 0, 0, 0, 0) != 0
            if cursor.failed or (data_end >= 0 and cursor.pos > data_end):
                fault[i] = _CUT_OFF
            program[i] = data_end if data_end >= 0 else cursor.pos
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _known(encoding: cython.int) -> cython.bint:
    """Whether a pointer encoding means something."""
    size: cython.int = encoding & 0x0F
    return encoding != _OMIT and (size <= 4 or 9 <= size <= 12) and (encoding & 0x70) <= 0x50


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def pointer(
    cursor: Cursor,
    encoding: cython.int,
    address_size: cython.int,
    address: cython.ulonglong,
    text: cython.ulonglong,
    data: cython.ulonglong,
    function: cython.ulonglong,
) -> cython.ulonglong:
    """An encoded pointer. An indirect one gives where the pointer stands."""
    value: cython.ulonglong
    place: cython.ulonglong
    base: cython.int = encoding & 0x70
    form: cython.int = encoding & 0x0F
    if base == 0x50:
        place = (address + cython.cast(cython.ulonglong, cursor.pos)) & _WORD
        cursor.pos += cython.cast(cython.Py_ssize_t, (-place) & cython.cast(cython.ulonglong, address_size - 1))
        form = 0
    place = (address + cython.cast(cython.ulonglong, cursor.pos)) & _WORD
    if form == 0:
        value = cursor.fixed(address_size)
    elif form == 1:
        value = cursor.uleb()
    elif form == 9:
        value = cython.cast(cython.ulonglong, cursor.sleb()) & _WORD
    elif form == 2 or form == 10:
        value = sign_extended(cursor.fixed(2), 2 if form == 10 else 0)
    elif form == 3 or form == 11:
        value = sign_extended(cursor.fixed(4), 4 if form == 11 else 0)
    else:
        value = cursor.fixed(8)
    if base == 0x10:
        value = (value + place) & _WORD
    elif base == 0x20:
        value = (value + text) & _WORD
    elif base == 0x30:
        value = (value + data) & _WORD
    elif base == 0x40:
        value = (value + function) & _WORD
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _skip_pointer(
    cursor: Cursor, encoding: cython.int, address_size: cython.int, address: cython.ulonglong
) -> cython.bint:
    """Go past a pointer; true if its encoding means nothing."""
    if not _known(encoding):
        return True
    pointer(cursor, encoding, address_size, address, 0, 0, 0)
    return False
