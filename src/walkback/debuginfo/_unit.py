"""Reading the units of debugging information, entry by entry (compiled; `_unit.pxd` has the C types).

DWARF 5, section 7.5, and the versions 2 to 4 before it. Of an entry only those attributes are kept that say which code
it is, what that is called, and where it was called from.
"""

import cython

from walkback.base.bits import WORD
from walkback.debuginfo.layout import FIRST_RESERVED, WIDE

if cython.compiled:
    from cython.cimports.walkback.base.cursor import Cursor
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.debuginfo import layout
    from cython.cimports.walkback.debuginfo._forms import FormReader
    from cython.cimports.walkback.debuginfo.values import Kind
else:
    from walkback.base.cursor import Cursor
    from walkback.base.growing import Growing
    from walkback.debuginfo import layout
    from walkback.debuginfo._forms import FormReader
    from walkback.debuginfo.values import Kind

_ALL = cython.declare(cython.ulonglong, WORD)
_WIDE = cython.declare(cython.ulonglong, WIDE)
_FIRST_RESERVED = cython.declare(cython.ulonglong, FIRST_RESERVED)
_MORE = cython.declare(cython.longlong, 1 << 20)
_TIMES = cython.declare(cython.longlong, 64)
"""How often each byte of declarations and of lists of ranges may be read, on average, and how many more."""
_CHILDREN = cython.declare(cython.ulonglong, 1 << 32)
_VARIES = cython.declare(cython.ulonglong, 1 << 40)
"""The size of an entry whose values have none of their own."""
_HEADER_OF_TEXTS = cython.declare(cython.int, 4)
_HEADER_OF_LISTS = cython.declare(cython.int, 8)
"""Bytes behind the length: version, two sizes, and of lists a count."""


@cython.final
@cython.cclass
class Unit(FormReader):
    """One unit after the other."""

    def __init__(self, sections, big):
        FormReader.__init__(self, sections, big)
        self.abbrev = Cursor(sections.abbrev, big)
        self.ranges, self.lists = Cursor(sections.ranges, big), Cursor(sections.rnglists, big)
        self.declared, self.attributes = Growing(5), Growing(3)
        self.declared_shape = 0
        self.declarations_left = _TIMES * len(sections.abbrev) + _MORE
        self.ranges_left = _TIMES * (len(sections.ranges) + len(sections.rnglists)) + _MORE
        self.is_split = False
        self.ranges_base = self.low = 0
        self.abbrev_contribution = self.text_contribution = self.lists_contribution = 0
        self.forget()

    def split_from(self, low, addr_base, ranges_base):
        """Let the units be split ones, of a skeleton with these bases."""
        self.is_split = True
        self.low, self.addr_base, self.ranges_base = low, addr_base, ranges_base

    def packed_at(self, abbrev, text_offsets, lists):
        """Let what belongs to them begin here in the sections of a package."""
        self.abbrev_contribution, self.text_contribution, self.lists_contribution = abbrev, text_offsets, lists

    def open(self, start: cython.Py_ssize_t) -> cython.bint:
        """Read the header of the unit at a place; returns whether it can be read. `end` is that of the section then."""
        self.start = start
        self.end = self.info.buffer.shape[0]
        self.info.move(start, self.end)
        length: cython.ulonglong = self.info.fixed(4)
        self.wide = 4
        if length == _WIDE:
            self.wide = 8
            length = self.info.fixed(8)
        elif length >= _FIRST_RESERVED:
            return False
        if self.info.failed or length > cython.cast(cython.ulonglong, self.end - self.info.pos):
            return False
        self.end = self.info.pos + cython.cast(cython.Py_ssize_t, length)
        self.info.move(self.info.pos, self.end)
        if not self.read_header():
            self.kind = 0
            return True  # the next one can be read
        self.first = self.info.pos
        return True

    def read_header(self) -> cython.bint:
        """What is behind the length; returns False for what is none of the known versions."""
        self.version = cython.cast(cython.int, self.info.fixed(2))
        self.kind = layout.DW_UT_COMPILE
        self.id = 0
        if self.version == 5:
            self.kind = cython.cast(cython.int, self.info.fixed(1))
            self.address_size = cython.cast(cython.int, self.info.fixed(1))
            self.abbrev_at = self.info.fixed(self.wide)
            if self.kind == layout.DW_UT_SKELETON or self.kind == layout.DW_UT_SPLIT_COMPILE:
                self.id = self.info.fixed(8)
            elif self.kind == layout.DW_UT_TYPE or self.kind == layout.DW_UT_SPLIT_TYPE:
                self.id = self.info.fixed(8)
                self.info.fixed(self.wide)
        elif 2 <= self.version <= 4:
            self.abbrev_at = self.info.fixed(self.wide)
            self.address_size = cython.cast(cython.int, self.info.fixed(1))
        else:
            return False
        return not self.info.failed and (self.address_size == 8 or self.address_size == 4)

    def open_root(self) -> cython.bint:
        """Read the first entry of the unit, twice: what it has may be counted from bases that it names itself."""
        turn: cython.int
        if self.kind == 0:
            return False
        self.text_base = self.text_contribution
        self.lists_base = self.lists_contribution
        if self.version >= 5:
            length: cython.int = 4 if self.wide == 4 else 12
            self.text_base += length + _HEADER_OF_TEXTS
            self.lists_base += length + _HEADER_OF_LISTS
        self.declare()
        for turn in range(2):
            self.info.move(self.first, self.end)
            self.forget()
            if self.next(0, 0) < 0:
                return False
        if self.low_kind:
            self.low = self.low_pc
        return True

    def declare(self) -> cython.int:
        """Read the declarations of this unit, unless those of the last one are the same."""
        at: cython.ulonglong = self.abbrev_at + self.abbrev_contribution
        shape: cython.ulonglong = cython.cast(
            cython.ulonglong, (self.version << 8) | (self.wide << 4) | self.address_size
        )
        if shape == self.declared_shape and at == self.declared_at:
            return 0
        self.declared_shape = shape
        self.declared_at = at
        self.declared.clear()
        self.attributes.clear()
        self.in_order = True
        if at > cython.cast(cython.ulonglong, self.abbrev.buffer.shape[0]) or self.declarations_left <= 0:
            return 0
        self.abbrev.move(cython.cast(cython.Py_ssize_t, at), self.abbrev.buffer.shape[0])
        while not self.abbrev.failed:
            code: cython.ulonglong = self.abbrev.uleb()
            if code == 0 or self.abbrev.failed:
                break
            tag: cython.ulonglong = self.abbrev.uleb() & 0xFFFF
            if self.abbrev.fixed(1):
                tag |= _CHILDREN
            first: cython.Py_ssize_t = self.attributes.used
            size: cython.ulonglong = 0
            while not self.abbrev.failed:
                name: cython.ulonglong = self.abbrev.uleb()
                form: cython.ulonglong = self.abbrev.uleb()
                given: cython.ulonglong = 0
                if form == layout.DW_FORM_IMPLICIT_CONST:
                    given = cython.cast(cython.ulonglong, self.abbrev.sleb() & _ALL)
                if name == 0 and form == 0:
                    break
                self.attributes.add(name, form, given)
                fixed: cython.int = self.fixed_size(form)
                size = _VARIES if fixed < 0 or size >= _VARIES else size + fixed
            if self.abbrev.failed:
                break
            if code != cython.cast(cython.ulonglong, self.declared.used // 5 + 1):
                self.in_order = False
            self.declared.add(
                code,
                tag,
                cython.cast(cython.ulonglong, first),
                cython.cast(cython.ulonglong, self.attributes.used),
                size,
            )
        self.declarations_left -= self.abbrev.pos - cython.cast(cython.Py_ssize_t, at) + 1
        return 0

    def declaration(self, code: cython.ulonglong) -> cython.Py_ssize_t:
        """Where the declaration of a code is; -1 if there is none."""
        i: cython.Py_ssize_t = 0
        with cython.boundscheck(False):
            if self.in_order:
                return (
                    cython.cast(cython.Py_ssize_t, code - 1) * 5
                    if code - 1 < cython.cast(cython.ulonglong, self.declared.used // 5)
                    else -1
                )
            while i < self.declared.used:
                if self.declared.numbers[i] == code:
                    return i
                i += 5
                self.declarations_left -= 1
                if self.declarations_left < 0:
                    break
        return -1

    def next(self, wanted: cython.int, other: cython.int) -> cython.int:
        """Read the next entry; returns its tag, 0 where a list of children ends, and -1 where no more can be read.

        Of tags other than the two that are wanted nothing is kept; 0 wants all.
        """
        i: cython.Py_ssize_t
        self.place = self.info.pos
        if self.place >= self.end:
            return -1
        code: cython.ulonglong = self.info.uleb()
        if self.info.failed:
            return -1
        self.tag = 0
        self.has_children = False
        if code == 0:
            return 0
        at: cython.Py_ssize_t = self.declaration(code)
        if at < 0:
            return -1
        with cython.boundscheck(False):
            tag: cython.ulonglong = self.declared.numbers[at + 1]
            first: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.declared.numbers[at + 2])
            end: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.declared.numbers[at + 3])
            size: cython.ulonglong = self.declared.numbers[at + 4]
            self.tag = cython.cast(cython.int, tag & 0xFFFF)
            self.has_children = tag >= _CHILDREN
            kept: cython.bint = wanted == 0 or self.tag == wanted or self.tag == other
            if kept:
                self.forget()
            elif size < _VARIES:
                self.skip(size)
                return -1 if self.info.failed else self.tag
            i = first
            while i < end:
                self.read_value(self.attributes.numbers[i + 1], self.attributes.numbers[i + 2])
                if self.info.failed:
                    return -1
                if kept:
                    self.take(self.attributes.numbers[i])
                i += 3
        return self.tag

    def forget(self) -> cython.int:
        """Begin with an entry that says nothing."""
        self.low_kind = self.high_kind = self.list_kind = self.origin_kind = Kind.NOTHING
        self.name = self.linkage_name = self.sibling = 0
        self.call_file = self.call_line = 0
        self.program = _ALL
        self.folder = self.split_name = 0
        return 0

    def take(self, name: cython.ulonglong) -> cython.int:
        """Keep the value of an attribute."""
        if name == layout.DW_AT_LOW_PC:
            self.low_kind = self.value_kind
            self.low_pc = self.address_at(self.value) if self.value_kind == Kind.ADDRESS_INDEX else self.value
        elif name == layout.DW_AT_HIGH_PC:
            self.high_kind = self.value_kind
            self.high_pc = self.address_at(self.value) if self.value_kind == Kind.ADDRESS_INDEX else self.value
        elif name == layout.DW_AT_RANGES:
            self.list_kind = self.value_kind
            self.list = self.value
        elif name == layout.DW_AT_ABSTRACT_ORIGIN or name == layout.DW_AT_SPECIFICATION:
            if self.value_kind == Kind.ENTRY or self.value_kind == Kind.ALTERNATE_ENTRY:
                self.origin_kind = self.value_kind
                self.origin = self.value
        elif name == layout.DW_AT_SIBLING:
            self.sibling = self.value
        elif name == layout.DW_AT_NAME:
            self.name = self.text()
        elif name == layout.DW_AT_LINKAGE_NAME or name == layout.DW_AT_MIPS_LINKAGE_NAME:
            self.linkage_name = self.text()
        elif name == layout.DW_AT_CALL_FILE:
            self.call_file = self.value
        elif name == layout.DW_AT_CALL_LINE:
            self.call_line = self.value
        elif name == layout.DW_AT_STMT_LIST:
            self.program = self.value
        elif name == layout.DW_AT_COMP_DIR:
            self.folder = self.text()
        elif name == layout.DW_AT_DWO_NAME or name == layout.DW_AT_GNU_DWO_NAME:
            self.split_name = self.text()
        elif name == layout.DW_AT_GNU_DWO_ID:
            self.id = self.value
        elif name == layout.DW_AT_STR_OFFSETS_BASE:
            self.text_base = self.value + self.text_contribution
        elif name == layout.DW_AT_ADDR_BASE or name == layout.DW_AT_GNU_ADDR_BASE:
            self.addr_base = self.value
        elif name == layout.DW_AT_RNGLISTS_BASE:
            self.lists_base = self.value + self.lists_contribution
        elif name == layout.DW_AT_GNU_RANGES_BASE:
            self.ranges_base = self.value  # for the split unit: the skeleton's own ranges do not count from it
        return 0

    def open_ranges(self) -> cython.int:
        """Begin with the code that the entry has: one range, or a list."""
        self.form_of_list = 0
        self.base = self.low
        if self.list_kind == Kind.NOTHING:
            if self.low_kind and self.high_kind and self.low_pc != _ALL:
                self.begin = self.low_pc
                self.behind = self.high_pc
                if self.high_kind == Kind.NUMBER:
                    self.behind = (self.low_pc + self.high_pc) & _ALL
                self.form_of_list = 1
            return 0
        at: cython.ulonglong = self.list
        if self.version < 5:
            if self.is_split:
                at = (at + self.ranges_base) & _ALL
            if at < cython.cast(cython.ulonglong, self.ranges.buffer.shape[0]):
                self.ranges.move(cython.cast(cython.Py_ssize_t, at), self.ranges.buffer.shape[0])
                self.form_of_list = 2
            return 0
        size: cython.ulonglong = cython.cast(cython.ulonglong, self.lists.buffer.shape[0])
        if self.list_kind == Kind.LIST_INDEX:
            if at > size or self.lists_base > size:
                return 0
            at = self.lists_base + at * self.wide
            self.lists.move(cython.cast(cython.Py_ssize_t, at), self.lists.buffer.shape[0])
            at = (self.lists.fixed(self.wide) + self.lists_base) & _ALL
            if self.lists.failed:
                return 0
        else:
            at = (at + self.lists_contribution) & _ALL
        if at < size:
            self.lists.move(cython.cast(cython.Py_ssize_t, at), self.lists.buffer.shape[0])
            self.form_of_list = 2
        return 0

    def next_range(self) -> cython.bint:
        """Read the next range, from `begin` to `behind`; returns False if there is none."""
        form: cython.int = self.form_of_list
        if form < 2:
            self.form_of_list = 0
            return form == 1
        return self.next_of_list() if self.version >= 5 else self.next_of_pairs()

    def next_of_pairs(self) -> cython.bint:
        """The same of a list of two addresses each, as before DWARF 5."""
        highest: cython.ulonglong = _ALL if self.address_size == 8 else _WIDE
        while self.ranges_left > 0:
            self.ranges_left -= 1
            self.begin = self.ranges.fixed(self.address_size)
            self.behind = self.ranges.fixed(self.address_size)
            if self.ranges.failed or (self.begin == 0 and self.behind == 0):
                return False
            if self.begin == highest:
                self.base = self.behind
                continue
            self.begin = (self.begin + self.base) & _ALL
            self.behind = (self.behind + self.base) & _ALL
            return True
        return False

    def next_of_list(self) -> cython.bint:
        """The same of a list of DWARF 5."""
        while self.ranges_left > 0:
            self.ranges_left -= 1
            kind: cython.ulonglong = self.lists.fixed(1)
            if self.lists.failed or kind == layout.DW_RLE_END_OF_LIST:
                return False
            if kind == layout.DW_RLE_BASE_ADDRESSX:
                self.base = self.address_at(self.lists.uleb())
                continue
            if kind == layout.DW_RLE_BASE_ADDRESS:
                self.base = self.lists.fixed(self.address_size)
                continue
            if kind == layout.DW_RLE_STARTX_ENDX:
                self.begin = self.address_at(self.lists.uleb())
                self.behind = self.address_at(self.lists.uleb())
            elif kind == layout.DW_RLE_STARTX_LENGTH:
                self.begin = self.address_at(self.lists.uleb())
                self.behind = (self.begin + self.lists.uleb()) & _ALL
            elif kind == layout.DW_RLE_OFFSET_PAIR:
                self.begin = (self.base + self.lists.uleb()) & _ALL
                self.behind = (self.base + self.lists.uleb()) & _ALL
            elif kind == layout.DW_RLE_START_END:
                self.begin = self.lists.fixed(self.address_size)
                self.behind = self.lists.fixed(self.address_size)
            elif kind == layout.DW_RLE_START_LENGTH:
                self.begin = self.lists.fixed(self.address_size)
                self.behind = (self.begin + self.lists.uleb()) & _ALL
            else:
                return False
            return not self.lists.failed
        return False
