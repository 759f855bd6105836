"""Reading the values that entries of debugging information have, by their forms (compiled).

DWARF 5, section 7.5.6, and the versions 2 to 4 before it. Blocks and signatures are passed over.
"""

import cython

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.base.cursor import Cursor
    from cython.cimports.walkback.debuginfo import layout
    from cython.cimports.walkback.debuginfo.textnumbers import text_at
    from cython.cimports.walkback.debuginfo.values import Kind, Place
else:
    from walkback.base.cursor import Cursor
    from walkback.debuginfo import layout
    from walkback.debuginfo.textnumbers import text_at
    from walkback.debuginfo.values import Kind, Place

_ALL = cython.declare(cython.ulonglong, WORD)


@cython.cclass
class FormReader:
    """Reads the values of one unit after the other, whose sizes and bases are known."""

    def __init__(self, sections, big):
        self.info = Cursor(sections.info, big)
        self.addresses, self.text_offsets = Cursor(sections.addr, big), Cursor(sections.str_offsets, big)
        self.addr_base = 0

    def fixed_size(self, form: cython.ulonglong) -> cython.int:
        """The bytes of a value, where its form alone says that; else -1."""
        if form == layout.DW_FORM_FLAG_PRESENT or form == layout.DW_FORM_IMPLICIT_CONST:
            return 0
        if (
            form == layout.DW_FORM_DATA1
            or form == layout.DW_FORM_FLAG
            or form == layout.DW_FORM_REF1
            or form == layout.DW_FORM_STRX1
            or form == layout.DW_FORM_ADDRX1
        ):
            return 1
        if (
            form == layout.DW_FORM_DATA2
            or form == layout.DW_FORM_REF2
            or form == layout.DW_FORM_STRX2
            or form == layout.DW_FORM_ADDRX2
        ):
            return 2
        if form == layout.DW_FORM_STRX3 or form == layout.DW_FORM_ADDRX3:
            return 3
        if (
            form == layout.DW_FORM_DATA4
            or form == layout.DW_FORM_REF4
            or form == layout.DW_FORM_STRX4
            or form == layout.DW_FORM_ADDRX4
            or form == layout.DW_FORM_REF_SUP4
        ):
            return 4
        if (
            form == layout.DW_FORM_DATA8
            or form == layout.DW_FORM_REF8
            or form == layout.DW_FORM_REF_SIG8
            or form == layout.DW_FORM_REF_SUP8
        ):
            return 8
        if form == layout.DW_FORM_DATA16:
            return 16
        if form == layout.DW_FORM_ADDR:
            return self.address_size
        if form == layout.DW_FORM_REF_ADDR:
            return self.address_size if self.version == 2 else self.wide
        if (
            form == layout.DW_FORM_STRP
            or form == layout.DW_FORM_SEC_OFFSET
            or form == layout.DW_FORM_STRP_SUP
            or form == layout.DW_FORM_LINE_STRP
            or form == layout.DW_FORM_GNU_REF_ALT
            or form == layout.DW_FORM_GNU_STRP_ALT
        ):
            return self.wide
        return -1

    def read_value(self, form: cython.ulonglong, given: cython.ulonglong) -> cython.int:
        """Read a value, or what is known of it."""
        self.value_kind = Kind.NUMBER
        self.value = 0
        if form == layout.DW_FORM_INDIRECT:
            form = self.info.uleb()
        if form == layout.DW_FORM_DATA1 or form == layout.DW_FORM_FLAG:
            self.value = self.info.fixed(1)
        elif form == layout.DW_FORM_REF4:
            self.reference(self.info.fixed(4))
        elif form == layout.DW_FORM_FLAG_PRESENT:
            self.value = 1
        elif form == layout.DW_FORM_IMPLICIT_CONST:
            self.value = given
        elif form == layout.DW_FORM_EXPRLOC or form == layout.DW_FORM_BLOCK:
            self.value_kind = Kind.NOTHING
            self.skip(self.info.uleb())
        elif form == layout.DW_FORM_STRP:
            self.value_kind = Kind.TEXT
            self.value = text_at(Place.STR, self.info.fixed(self.wide))
        elif form == layout.DW_FORM_DATA2:
            self.value = self.info.fixed(2)
        elif form == layout.DW_FORM_DATA4:
            self.value = self.info.fixed(4)
        elif form == layout.DW_FORM_SEC_OFFSET:
            self.value = self.info.fixed(self.wide)
        elif form == layout.DW_FORM_DATA8:
            self.value = self.info.fixed(8)
        elif form == layout.DW_FORM_UDATA:
            self.value = self.info.uleb()
        elif form == layout.DW_FORM_SDATA:
            self.value = cython.cast(cython.ulonglong, self.info.sleb() & _ALL)
        elif form == layout.DW_FORM_ADDR:
            self.value_kind = Kind.ADDRESS
            self.value = self.info.fixed(self.address_size)
        elif form == layout.DW_FORM_STRING:
            self.value_kind = Kind.TEXT
            self.value = text_at(Place.INFO, cython.cast(cython.ulonglong, self.info.pos))
            self.read_text()
        elif form == layout.DW_FORM_LINE_STRP:
            self.value_kind = Kind.TEXT
            self.value = text_at(Place.LINE_STR, self.info.fixed(self.wide))
        elif form == layout.DW_FORM_GNU_STRP_ALT or form == layout.DW_FORM_STRP_SUP:
            self.value_kind = Kind.TEXT
            self.value = text_at(Place.ALTERNATE_STR, self.info.fixed(self.wide))
        elif form == layout.DW_FORM_STRX or form == layout.DW_FORM_GNU_STR_INDEX:
            self.value_kind = Kind.TEXT_INDEX
            self.value = self.info.uleb()
        elif layout.DW_FORM_STRX1 <= form <= layout.DW_FORM_STRX4:
            self.value_kind = Kind.TEXT_INDEX
            self.value = self.narrow() if form == layout.DW_FORM_STRX3 else self.info.fixed(self.fixed_size(form))
        elif form == layout.DW_FORM_ADDRX or form == layout.DW_FORM_GNU_ADDR_INDEX:
            self.value_kind = Kind.ADDRESS_INDEX
            self.value = self.info.uleb()
        elif layout.DW_FORM_ADDRX1 <= form <= layout.DW_FORM_ADDRX4:
            self.value_kind = Kind.ADDRESS_INDEX
            self.value = self.narrow() if form == layout.DW_FORM_ADDRX3 else self.info.fixed(self.fixed_size(form))
        elif form == layout.DW_FORM_REF_UDATA:
            self.reference(self.info.uleb())
        elif form == layout.DW_FORM_REF1 or form == layout.DW_FORM_REF2 or form == layout.DW_FORM_REF8:
            self.reference(self.info.fixed(self.fixed_size(form)))
        elif form == layout.DW_FORM_REF_ADDR:
            self.value_kind = Kind.ENTRY
            self.value = self.info.fixed(self.fixed_size(form))
        elif form == layout.DW_FORM_GNU_REF_ALT or form == layout.DW_FORM_REF_SUP4 or form == layout.DW_FORM_REF_SUP8:
            self.value_kind = Kind.ALTERNATE_ENTRY
            self.value = self.info.fixed(self.fixed_size(form))
        elif form == layout.DW_FORM_RNGLISTX:
            self.value_kind = Kind.LIST_INDEX
            self.value = self.info.uleb()
        elif form == layout.DW_FORM_LOCLISTX:
            self.value_kind = Kind.NOTHING
            self.info.uleb()
        elif form == layout.DW_FORM_BLOCK1:
            self.value_kind = Kind.NOTHING
            self.skip(self.info.fixed(1))
        elif form == layout.DW_FORM_BLOCK2:
            self.value_kind = Kind.NOTHING
            self.skip(self.info.fixed(2))
        elif form == layout.DW_FORM_BLOCK4:
            self.value_kind = Kind.NOTHING
            self.skip(self.info.fixed(4))
        elif form == layout.DW_FORM_REF_SIG8 or form == layout.DW_FORM_DATA16:
            self.value_kind = Kind.NOTHING
            self.skip(8 if form == layout.DW_FORM_REF_SIG8 else 16)
        else:
            self.info.failed = True
        return 0

    def reference(self, offset: cython.ulonglong) -> cython.int:
        """A value that is another entry of this unit."""
        self.value_kind = Kind.ENTRY
        self.value = (cython.cast(cython.ulonglong, self.start) + offset) & _ALL
        return 0

    def skip(self, size: cython.ulonglong) -> cython.int:
        """Pass over bytes of the unit."""
        if self.info.failed or size > cython.cast(cython.ulonglong, self.end - self.info.pos):
            self.info.failed = True
        else:
            self.info.pos += cython.cast(cython.Py_ssize_t, size)
        return 0

    def read_text(self) -> cython.int:
        """Pass over a text and the zero behind it."""
        at: cython.Py_ssize_t = self.info.pos
        with cython.boundscheck(False):
            while at < self.end and self.info.buffer[at]:
                at += 1
        if at >= self.end:
            self.info.failed = True
        self.info.pos = at + 1
        return 0

    def narrow(self) -> cython.ulonglong:
        """A number of three bytes."""
        first: cython.ulonglong = self.info.fixed(1)
        second: cython.ulonglong = self.info.fixed(2)
        return (first << 16) | second if self.info.big else first | (second << 8)

    def address_at(self, index: cython.ulonglong) -> cython.ulonglong:
        """The address of an index; all bits are set where there is none."""
        size: cython.ulonglong = cython.cast(cython.ulonglong, self.addresses.buffer.shape[0])
        if index > size or self.addr_base > size:
            return _ALL
        at: cython.ulonglong = self.addr_base + index * self.address_size
        self.addresses.move(cython.cast(cython.Py_ssize_t, at), self.addresses.buffer.shape[0])
        found: cython.ulonglong = self.addresses.fixed(self.address_size)
        return _ALL if self.addresses.failed else found

    def text(self) -> cython.ulonglong:
        """The text that was read, also by its index; 0 if it is none."""
        if self.value_kind == Kind.TEXT:
            return self.value
        size: cython.ulonglong = cython.cast(cython.ulonglong, self.text_offsets.buffer.shape[0])
        if self.value_kind != Kind.TEXT_INDEX or self.value > size or self.text_base > size:
            return 0
        at: cython.ulonglong = self.text_base + self.value * self.wide
        self.text_offsets.move(cython.cast(cython.Py_ssize_t, at), self.text_offsets.buffer.shape[0])
        offset: cython.ulonglong = self.text_offsets.fixed(self.wide)
        return 0 if self.text_offsets.failed else text_at(Place.STR, offset)
