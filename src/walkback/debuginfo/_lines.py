"""Line number programs: which source line each instruction is from (compiled; `_lines.pxd` has the C types).

DWARF 5, section 6.2, and the versions 2 to 4 before it.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.base.views import takes_views
from walkback.debuginfo.layout import WIDE

if cython.compiled:
    from cython.cimports.walkback.base.cursor import Cursor
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.base.searching import last
    from cython.cimports.walkback.debuginfo import layout
    from cython.cimports.walkback.debuginfo.textnumbers import text_at
    from cython.cimports.walkback.debuginfo.values import Place
else:
    from walkback.base.cursor import Cursor
    from walkback.base.growing import Growing
    from walkback.base.searching import last
    from walkback.debuginfo import layout
    from walkback.debuginfo.textnumbers import text_at
    from walkback.debuginfo.values import Place

_ALL = cython.declare(cython.ulonglong, WORD)
_WIDE = cython.declare(cython.ulonglong, WIDE)
_MOST_FORMATS = cython.declare(cython.Py_ssize_t, 32)
_LARGEST = cython.declare(cython.ulonglong, (1 << 31) - 1)
"""Numbers of files and lines."""
_TIMES = cython.declare(cython.Py_ssize_t, 64)
"""How often each address may be in the code of a program, on average."""


@cython.final
@cython.cclass
class LineProgram:
    """One program: its header, and what it says of addresses."""

    def __init__(self, section, big, at):
        self.bytes = Cursor(section, big)
        self.folders, self.files = Growing(1), Growing(2)
        self.is_known = False
        self.end = 0
        if 0 <= at < len(section):
            self.read_header(at)

    def tables(self):
        """The texts of folders, and rows of the folder and the text of each file."""
        return self.folders.rows().ravel(), self.files.rows()

    def find(self, addresses, lowest):
        """For addresses, which rise, their files and lines; 0 is no line. No code is below the `lowest` address."""
        file, line = np.zeros(len(addresses), np.uint32), np.zeros(len(addresses), np.uint32)
        if self.is_known and len(addresses):
            _run(self, addresses, lowest, file, line)
        return file, line

    def read_header(self, at: cython.Py_ssize_t) -> cython.int:
        """What is in front of the program."""
        self.bytes.move(at, self.bytes.buffer.shape[0])
        length: cython.ulonglong = self.bytes.fixed(4)
        self.wide = 4
        if length == _WIDE:
            self.wide = 8
            length = self.bytes.fixed(8)
        if self.bytes.failed or length > cython.cast(cython.ulonglong, self.bytes.end - self.bytes.pos):
            return 0
        self.end = self.bytes.pos + cython.cast(cython.Py_ssize_t, length)
        self.bytes.move(self.bytes.pos, self.end)
        self.version = cython.cast(cython.int, self.bytes.fixed(2))
        if self.version < 2 or self.version > 5:
            return 0
        self.address_size = 8
        if self.version == 5:
            self.address_size = cython.cast(cython.int, self.bytes.fixed(1))
            self.bytes.fixed(1)
        length = self.bytes.fixed(self.wide)
        if self.bytes.failed or length > cython.cast(cython.ulonglong, self.end - self.bytes.pos):
            return 0
        self.begin = self.bytes.pos + cython.cast(cython.Py_ssize_t, length)
        self.step = self.bytes.fixed(1)
        if self.version >= 4:
            self.bytes.fixed(1)
        self.bytes.fixed(1)
        self.line_base = cython.cast(cython.longlong, self.bytes.fixed(1))
        if self.line_base >= 0x80:
            self.line_base -= 0x100
        self.line_range = self.bytes.fixed(1)
        self.first_special = cython.cast(cython.int, self.bytes.fixed(1))
        self.lengths = self.bytes.pos
        self.skip(cython.cast(cython.ulonglong, max(self.first_special - 1, 0)))
        if self.bytes.failed or self.line_range == 0 or self.first_special == 0:
            return 0
        if self.version == 5:
            self.read_names(self.folders)
            self.read_names(self.files)
        else:
            self.read_old_names()
        self.is_known = True
        return 0

    def read_old_names(self) -> cython.int:
        """The names of folders and files before DWARF 5; folder 0 is that of the unit, and there is no file 0."""
        self.folders.add(0)
        self.files.add(0, 0)
        while True:
            self.read_text()
            if self.bytes.failed or self.text == 0:
                break
            self.folders.add(self.text)
        while not self.bytes.failed:
            self.read_text()
            if self.bytes.failed or self.text == 0:
                break
            folder: cython.ulonglong = self.bytes.uleb()
            text: cython.ulonglong = self.text
            self.bytes.uleb()
            self.bytes.uleb()
            if not self.bytes.failed:
                self.files.add(folder, text)
        return 0

    def read_names(self, found: Growing) -> cython.int:
        """Those of DWARF 5, which says in front what each has."""
        at: cython.Py_ssize_t
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        formats: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.bytes.fixed(1))
        begin: cython.Py_ssize_t = self.bytes.pos
        for k in range(2 * formats):
            self.bytes.uleb()
        count: cython.ulonglong = self.bytes.uleb()
        if formats == 0 or formats > _MOST_FORMATS:
            self.bytes.failed = self.bytes.failed or count != 0
            return 0
        at = self.bytes.pos
        while count and not self.bytes.failed:
            folder: cython.ulonglong = 0
            text: cython.ulonglong = 0
            i = begin
            for k in range(formats):
                # What each has is read anew for each: there are few.
                self.bytes.move(i, self.end)
                what: cython.ulonglong = self.bytes.uleb()
                form: cython.ulonglong = self.bytes.uleb()
                i = self.bytes.pos
                self.bytes.move(at, self.end)
                self.read_value(form)
                at = self.bytes.pos
                if self.bytes.failed:
                    return 0
                if what == layout.DW_LNCT_PATH:
                    text = self.text
                elif what == layout.DW_LNCT_DIRECTORY_INDEX:
                    folder = self.number
            if found.width == 1:
                found.add(text)
            else:
                found.add(folder, text)
            count -= 1
        return 0

    def read_value(self, form: cython.ulonglong) -> cython.int:
        """A number or a text; each has at least one byte."""
        self.text = 0
        self.number = 0
        if form == layout.DW_FORM_LINE_STRP or form == layout.DW_FORM_STRP:
            place: cython.int = Place.LINE_STR if form == layout.DW_FORM_LINE_STRP else Place.STR
            self.text = text_at(place, self.bytes.fixed(self.wide))
        elif form == layout.DW_FORM_STRING:
            self.read_text()
        elif form == layout.DW_FORM_STRP_SUP or form == layout.DW_FORM_GNU_STRP_ALT:
            self.text = text_at(Place.ALTERNATE_STR, self.bytes.fixed(self.wide))
        elif form == layout.DW_FORM_UDATA:
            self.number = self.bytes.uleb()
        elif form == layout.DW_FORM_DATA1:
            self.number = self.bytes.fixed(1)
        elif form == layout.DW_FORM_DATA2:
            self.number = self.bytes.fixed(2)
        elif form == layout.DW_FORM_DATA4:
            self.number = self.bytes.fixed(4)
        elif form == layout.DW_FORM_DATA8:
            self.number = self.bytes.fixed(8)
        elif form == layout.DW_FORM_DATA16:
            self.skip(16)
        elif form == layout.DW_FORM_BLOCK:
            self.skip(self.bytes.uleb())
        else:
            self.bytes.failed = True
        return 0

    def read_text(self) -> cython.int:
        """A text of the section itself; 0 for an empty one."""
        at: cython.Py_ssize_t = self.bytes.pos
        self.text = text_at(Place.LINE, cython.cast(cython.ulonglong, at))
        with cython.boundscheck(False):
            while at < self.bytes.end and self.bytes.buffer[at]:
                at += 1
        if at >= self.bytes.end:
            self.bytes.failed = True
        if at == self.bytes.pos:
            self.text = 0
        self.bytes.pos = at + 1
        return 0

    def skip(self, size: cython.ulonglong) -> cython.int:
        """Pass over bytes."""
        if self.bytes.failed or size > cython.cast(cython.ulonglong, self.bytes.end - self.bytes.pos):
            self.bytes.failed = True
        else:
            self.bytes.pos += cython.cast(cython.Py_ssize_t, size)
        return 0


@takes_views
def _run(
    program: LineProgram,
    addresses: cython.const[cython.ulonglong][::1],
    lowest: cython.ulonglong,
    file: cython.uint[::1],
    line: cython.uint[::1],
):
    with cython.nogil:
        program.bytes.move(program.begin, program.end)
        program.has_row = False
        program.turn = 0
        program.left = _TIMES * (addresses.shape[0] + 1024)
        while program.bytes.pos < program.bytes.end and program.left > 0:
            _sequence(program, program.bytes, addresses, lowest, file, line)


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _sequence(
    program: LineProgram,
    bytes_: Cursor,
    addresses: cython.const[cython.ulonglong][::1],
    lowest: cython.ulonglong,
    file: cython.uint[::1],
    line: cython.uint[::1],
) -> cython.int:
    """Run up to the end of a sequence, whose addresses rise; a damaged one ends the program."""
    address: cython.ulonglong = 0
    its_file: cython.ulonglong = 1
    its_line: cython.ulonglong = 1
    special: cython.ulonglong = 255 - program.first_special
    is_dead: cython.bint = False
    """What the linker dropped has addresses where no code is."""
    program.has_row = False
    while bytes_.pos < bytes_.end and not bytes_.failed:
        code: cython.int = cython.cast(cython.int, bytes_.fixed(1))
        is_row: cython.bint = False
        is_end: cython.bint = False
        if code >= program.first_special:
            advance: cython.ulonglong = cython.cast(cython.ulonglong, code - program.first_special)
            address += advance // program.line_range * program.step
            its_line += program.line_base + cython.cast(cython.longlong, advance % program.line_range)
            is_row = True
        elif code == layout.DW_LNS_COPY:
            is_row = True
        elif code == layout.DW_LNS_ADVANCE_PC:
            address += bytes_.uleb() * program.step
        elif code == layout.DW_LNS_ADVANCE_LINE:
            its_line += bytes_.sleb()
        elif code == layout.DW_LNS_SET_FILE:
            its_file = bytes_.uleb()
        elif code == layout.DW_LNS_CONST_ADD_PC:
            address += special // program.line_range * program.step
        elif code == layout.DW_LNS_FIXED_ADVANCE_PC:
            address += bytes_.fixed(2)
        elif code == 0:
            size: cython.ulonglong = bytes_.uleb()
            behind: cython.Py_ssize_t = bytes_.pos
            if bytes_.failed or size == 0 or size > cython.cast(cython.ulonglong, bytes_.end - behind):
                bytes_.pos = bytes_.end
                return 0
            behind += cython.cast(cython.Py_ssize_t, size)
            extended: cython.int = cython.cast(cython.int, bytes_.fixed(1))
            if extended == layout.DW_LNE_END_SEQUENCE:
                is_row = is_end = True
            elif extended == layout.DW_LNE_SET_ADDRESS and (size == 9 or size == 5):
                address = bytes_.fixed(cython.cast(cython.int, size - 1))
            elif extended == layout.DW_LNE_DEFINE_FILE:
                program.read_text()
                program.files.add(bytes_.uleb(), program.text)
            bytes_.pos = behind
        else:
            # An opcode that takes numbers which do not matter here.
            count: cython.int = program.bytes.buffer[program.lengths + code - 1]
            while count > 0:
                bytes_.uleb()
                count -= 1
        address &= _ALL
        if is_row:
            if not program.has_row:
                is_dead = address < lowest
            if program.has_row and address > program.row_address and not is_dead:
                _match(program, address, addresses, file, line)
            elif not program.has_row or address < program.row_address:
                program.turn = last(addresses, addresses.shape[0], address - 1) + 1 if address else 0
            if is_end:
                return 0
            program.has_row = True
            program.row_address = address
            program.row_file = its_file
            program.row_line = its_line & _ALL
    if bytes_.failed:
        bytes_.pos = bytes_.end
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _match(
    program: LineProgram,
    end: cython.ulonglong,
    addresses: cython.const[cython.ulonglong][::1],
    file: cython.uint[::1],
    line: cython.uint[::1],
) -> cython.int:
    """Addresses from the last row to this one are from the last row's line."""
    i: cython.Py_ssize_t = program.turn
    with cython.boundscheck(False):
        while i < addresses.shape[0] and addresses[i] < end:
            if line[i] == 0 and program.row_line <= _LARGEST and program.row_file <= _LARGEST:
                file[i] = cython.cast(cython.uint, program.row_file)
                line[i] = cython.cast(cython.uint, program.row_line)
            i += 1
            program.left -= 1
    program.turn = i
    return 0
