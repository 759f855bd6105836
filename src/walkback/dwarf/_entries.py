"""The entries of `.eh_frame` and `.debug_frame` to columns (compiled).

DWARF 5, section 6.4.1; Linux Standard Base, "Exception Frames"; the augmentations B and G are those of AArch64.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.base.views import takes_views
from walkback.dwarf import unitlayout

if cython.compiled:
    from cython.cimports.walkback.base.cursor import Cursor, sign_extended
    from cython.cimports.walkback.dwarf import layout
    from cython.cimports.walkback.dwarf.layout import EntryFault
else:
    from walkback.base.cursor import Cursor, sign_extended
    from walkback.dwarf import layout
    from walkback.dwarf.layout import EntryFault

_WORD = cython.declare(cython.ulonglong, WORD)
_WIDE = cython.declare(cython.ulonglong, unitlayout.WIDE)
_FIRST_RESERVED = cython.declare(cython.ulonglong, unitlayout.FIRST_RESERVED)


def scan(buffer, eh, big):
    """Where the entries stand: (positions, ends, where the fields begin after the identifier, pointers to CIEs, stop).

    The pointer of a CIE is -1, and of an FDE the place it points to. `stop` is where an entry reaches beyond the end,
    or -1. An entry of length 0 is no end: those in the middle are left over by linkers.
    """
    # Every entry has at least its length and its identifier.
    most = len(buffer) // 8 + 1
    entries = np.empty((4, most), np.int64)
    count, stop = _scan(Cursor(buffer, big), eh, entries)
    return (*entries[:, :count], stop)


@takes_views
def _scan(cursor: Cursor, eh: cython.bint, entries: cython.longlong[:, ::1]):
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
            if length == _WIDE:
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
            elif identifier == (_WIDE if size == 4 else _WORD):
                entries[3, count] = -1
            else:
                entries[3, count] = min(identifier, cython.cast(cython.ulonglong, whole))
            count += 1
            cursor.move(cursor.end, whole)
    return count, stop


@cython.final
@cython.cclass
class CieReader:
    """Reads CIEs into their columns; `fields` and `end` are already filled in."""

    cursor: Cursor
    address: cython.ulonglong
    fields: cython.const[cython.longlong][::1]
    end: cython.const[cython.longlong][::1]
    version: cython.uchar[::1]
    code_align: cython.ulonglong[::1]
    data_align: cython.longlong[::1]
    ra_column: cython.ulonglong[::1]
    address_size: cython.uchar[::1]
    fde_encoding: cython.uchar[::1]
    lsda_encoding: cython.uchar[::1]
    personality: cython.longlong[::1]
    signal: cython.uchar[::1]
    b_key: cython.uchar[::1]
    sized: cython.uchar[::1]
    program: cython.longlong[::1]
    fault: cython.uchar[::1]

    def __init__(self, buffer, big, address, cies):
        self.cursor = Cursor(buffer, big)
        self.address = address
        self.fields = memoryview(cies.fields)
        self.end = memoryview(cies.end)
        self.version = memoryview(cies.version)
        self.code_align = memoryview(cies.code_align)
        self.data_align = memoryview(cies.data_align)
        self.ra_column = memoryview(cies.ra_column)
        self.address_size = memoryview(cies.address_size)
        self.fde_encoding = memoryview(cies.fde_encoding)
        self.lsda_encoding = memoryview(cies.lsda_encoding)
        self.personality = memoryview(cies.personality)
        self.signal = memoryview(cies.signal)
        self.b_key = memoryview(cies.b_key)
        self.sized = memoryview(cies.sized)
        self.program = memoryview(cies.program)
        self.fault = memoryview(cies.fault)

    def read_all(self):
        """Read every CIE."""
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(self.fields.shape[0]):
                self.fault[i] = self.read(i)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def read(self, i: cython.Py_ssize_t) -> cython.int:
        """Read one up to its program; returns what is wrong with it."""
        self.cursor.move(self.fields[i], self.end[i])
        self.version[i] = self.cursor.fixed(1)
        self.address_size[i] = 8
        self.lsda_encoding[i] = layout.DW_EH_PE_OMIT
        self.personality[i] = -1
        if not (self.version[i] == 1 or self.version[i] == 3 or self.version[i] == 4):
            return EntryFault.CIE_VERSION
        letters: cython.Py_ssize_t = self.cursor.pos
        while self.cursor.fixed(1):
            pass
        if self.cursor.pos - letters == 3 and self.cursor.buffer[letters] == ord("e"):
            if self.cursor.buffer[letters + 1] == ord("h"):
                letters += 2  # the old "eh": a pointer stands here
                self.cursor.fixed(8)
        fault: cython.int = self.read_factors(i)
        return fault if fault else self.read_augmentation(i, letters)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def read_factors(self, i: cython.Py_ssize_t) -> cython.int:
        """Read the fields behind the letters of the augmentation."""
        if self.version[i] == 4:
            self.address_size[i] = self.cursor.fixed(1)
            if self.cursor.fixed(1):
                return EntryFault.SEGMENT
        self.code_align[i] = self.cursor.uleb()
        self.data_align[i] = self.cursor.sleb()
        self.ra_column[i] = self.cursor.fixed(1) if self.version[i] == 1 else self.cursor.uleb()
        if self.cursor.failed:
            return EntryFault.CUT_OFF
        size: cython.int = self.address_size[i]
        return EntryFault.NONE if size == 8 or size == 4 or size == 2 else EntryFault.ADDRESS_SIZE

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def read_augmentation(self, i: cython.Py_ssize_t, letters: cython.Py_ssize_t) -> cython.int:
        """Read what the letters say that there is."""
        fault: cython.int = EntryFault.NONE
        data_end: cython.Py_ssize_t = -1
        if self.cursor.buffer[letters] == ord("z"):
            self.sized[i] = True
            letters += 1
            data_end = _after(self.cursor)
            if self.cursor.failed:
                return EntryFault.CUT_OFF
        while self.cursor.buffer[letters] and not fault:
            letter: cython.int = self.cursor.buffer[letters]
            letters += 1
            if letter == ord("R"):
                self.fde_encoding[i] = self.cursor.fixed(1)
            elif letter == ord("L"):
                self.lsda_encoding[i] = self.cursor.fixed(1)
            elif letter == ord("P"):
                encoding: cython.int = cython.cast(cython.int, self.cursor.fixed(1))
                self.personality[i] = self.cursor.pos
                if encoding == layout.DW_EH_PE_OMIT:
                    self.personality[i] = -1
                elif _skip_pointer(self.cursor, encoding, self.address_size[i], self.address):
                    fault = EntryFault.ENCODING
            elif letter == ord("S"):
                self.signal[i] = True
            elif letter == ord("B"):
                self.b_key[i] = True
            elif letter != ord("G"):
                if data_end < 0:
                    fault = EntryFault.AUGMENTATION
                break
        if self.cursor.failed or (data_end >= 0 and self.cursor.pos > data_end):
            fault = EntryFault.CUT_OFF
        self.program[i] = data_end if data_end >= 0 else self.cursor.pos
        return fault


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


def read_fdes(cies, text, data, fdes):
    """Fill the columns of the FDEs; their `fields`, `end` and `cie` are known."""
    _read_fdes(
        cies,
        text,
        data,
        fdes.fields,
        fdes.end,
        fdes.cie,
        fdes.start_field,
        fdes.start,
        fdes.size,
        fdes.lsda,
        fdes.program,
        fdes.fault,
    )


@takes_views
def _read_fdes(
    cies: CieReader,
    text: cython.ulonglong,
    data: cython.ulonglong,
    fields: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    cie: cython.const[cython.longlong][::1],
    start_field: cython.longlong[::1],
    start: cython.ulonglong[::1],
    size: cython.ulonglong[::1],
    lsda: cython.ulonglong[::1],
    program: cython.longlong[::1],
    fault: cython.uchar[::1],
):
    i: cython.Py_ssize_t
    cursor: Cursor = cies.cursor
    with cython.nogil:
        for i in range(fields.shape[0]):
            if fault[i]:
                continue
            c: cython.Py_ssize_t = cie[i]
            if cies.fault[c]:
                fault[i] = EntryFault.CIE_FAULT
                continue
            cursor.move(fields[i], ends[i])
            start_field[i] = cursor.pos
            encoding: cython.int = cies.fde_encoding[c]
            address_size: cython.int = cies.address_size[c]
            if not _known(encoding):
                fault[i] = EntryFault.ENCODING
                continue
            start[i] = pointer(cursor, encoding, address_size, cies.address, text, data, 0)
            size[i] = pointer(cursor, encoding & layout.DW_EH_PE_FORMAT_MASK, address_size, 0, 0, 0, 0)
            data_end: cython.Py_ssize_t = _after(cursor) if cies.sized[c] else -1
            encoding = cies.lsda_encoding[c]
            if encoding != layout.DW_EH_PE_OMIT and not cursor.failed:
                # A stored pointer of 0 says that there is none.
                stored: cython.Py_ssize_t = cursor.pos
                if pointer(cursor, encoding & layout.DW_EH_PE_FORMAT_MASK, address_size, 0, 0, 0, 0):
                    cursor.pos = stored
                    lsda[i] = pointer(cursor, encoding, address_size, cies.address, text, data, start[i])
            if cursor.failed or (data_end >= 0 and cursor.pos > data_end):
                fault[i] = EntryFault.CUT_OFF
            program[i] = data_end if data_end >= 0 else cursor.pos
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _known(encoding: cython.int) -> cython.bint:
    """Whether a pointer encoding means something."""
    size: cython.int = encoding & layout.DW_EH_PE_FORMAT_MASK
    return encoding != layout.DW_EH_PE_OMIT and (
        (size <= layout.DW_EH_PE_UDATA8 or layout.DW_EH_PE_SLEB128 <= size <= layout.DW_EH_PE_SDATA8)
        and (encoding & layout.DW_EH_PE_ADDED_MASK) <= layout.DW_EH_PE_ALIGNED
    )


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
    base: cython.int = encoding & layout.DW_EH_PE_ADDED_MASK
    form: cython.int = encoding & layout.DW_EH_PE_FORMAT_MASK
    if base == layout.DW_EH_PE_ALIGNED:
        place = (address + cython.cast(cython.ulonglong, cursor.pos)) & _WORD
        cursor.pos += cython.cast(cython.Py_ssize_t, (-place) & cython.cast(cython.ulonglong, address_size - 1))
        form = layout.DW_EH_PE_ABSPTR
    place = (address + cython.cast(cython.ulonglong, cursor.pos)) & _WORD
    if form == layout.DW_EH_PE_ABSPTR:
        value = cursor.fixed(address_size)
    elif form == layout.DW_EH_PE_ULEB128:
        value = cursor.uleb()
    elif form == layout.DW_EH_PE_SLEB128:
        value = cython.cast(cython.ulonglong, cursor.sleb()) & _WORD
    elif form == layout.DW_EH_PE_UDATA2 or form == layout.DW_EH_PE_SDATA2:
        value = sign_extended(cursor.fixed(2), 2 if form == layout.DW_EH_PE_SDATA2 else 0)
    elif form == layout.DW_EH_PE_UDATA4 or form == layout.DW_EH_PE_SDATA4:
        value = sign_extended(cursor.fixed(4), 4 if form == layout.DW_EH_PE_SDATA4 else 0)
    else:
        value = cursor.fixed(8)
    if base == layout.DW_EH_PE_PCREL:
        value = (value + place) & _WORD
    elif base == layout.DW_EH_PE_TEXTREL:
        value = (value + text) & _WORD
    elif base == layout.DW_EH_PE_DATAREL:
        value = (value + data) & _WORD
    elif base == layout.DW_EH_PE_FUNCREL:
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
