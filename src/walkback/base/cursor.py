"""Checked reading of bytes, one after the other (compiled; `cursor.pxd` has the C types).

A read that would leave the bytes sets `failed`, gives 0 and moves nothing, so a loop may look at `failed` once for
several reads. LEB128 is that of DWARF 5, section 7.6; a number of more than 64 bits fails too.
"""

import cython

from walkback.base.bits import WORD

_WORD = cython.declare(cython.ulonglong, WORD)
_BYTES = cython.declare(cython.ulonglong, 0x00FF00FF00FF00FF)
_PAIRS = cython.declare(cython.ulonglong, 0x0000FFFF0000FFFF)
"""Every second one."""
_SIGN_32 = cython.declare(cython.ulonglong, 0x80000000)
_HIGH_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF00000000)


@cython.final
@cython.cclass
class Cursor:
    """A place in a buffer, between its start and an end that may come sooner than that of the buffer."""

    def __init__(self, buffer, big):
        self.buffer = buffer
        self.big = big
        self.pos = 0
        self.end = len(buffer)
        self.failed = False

    def move(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Go to a place and forget what failed; an end outside of the buffer is cut."""
        self.pos = pos
        self.end = min(end, self.buffer.shape[0])
        self.failed = pos < 0 or pos > self.end
        return 0

    def fixed(self, size: cython.int) -> cython.ulonglong:
        """An unsigned number of 1, 2, 4 or 8 bytes."""
        i: cython.int
        value: cython.ulonglong = 0
        if self.failed or self.end - self.pos < size:
            self.failed = True
            return 0
        with cython.boundscheck(False):
            for i in range(size):
                if self.big:
                    value = (value << 8) | self.buffer[self.pos + i]
                else:
                    value |= cython.cast(cython.ulonglong, self.buffer[self.pos + i]) << (8 * i)
        self.pos += size
        return value

    def uleb(self) -> cython.ulonglong:
        """An unsigned LEB128 number."""
        value: cython.ulonglong = 0
        shift: cython.int = 0
        byte: cython.ulonglong = 0x80
        while byte & 0x80 and not self.failed:
            byte = self.fixed(1)
            low: cython.ulonglong = byte & 0x7F
            if shift < 64:
                value |= (low << shift) & _WORD
            if shift >= 63 and low > (1 if shift == 63 else 0):
                self.failed = True
            shift += 7
        return 0 if self.failed else value

    def sleb(self) -> cython.longlong:
        """A signed LEB128 number; what lies above 64 bits is dropped, as all readers do."""
        value: cython.ulonglong = 0
        shift: cython.int = 0
        byte: cython.ulonglong = 0x80
        while byte & 0x80:
            byte = self.fixed(1)
            if shift < 64:
                value |= ((byte & 0x7F) << shift) & _WORD
                shift += 7
        if shift < 64 and byte & 0x40:
            value |= (_WORD << shift) & _WORD
        return 0 if self.failed else as_signed(value)


def as_signed(value: cython.ulonglong) -> cython.longlong:
    """The same 64 bits as a signed number."""
    if value >> 63:
        return -cython.cast(cython.longlong, (~value) & _WORD) - 1
    return cython.cast(cython.longlong, value)


def sign_extended(value: cython.ulonglong, size: cython.int) -> cython.ulonglong:
    """A number of 2, 4 or 8 bytes with its sign carried through 64 bits."""
    if size == 4 and value & _SIGN_32:
        return value | _HIGH_32
    if size == 2 and value & 0x8000:
        return value | (_WORD << 16) & _WORD
    return value


def swapped(value: cython.ulonglong) -> cython.ulonglong:
    """The 8 bytes of a number in the other order."""
    value = ((value & _BYTES) << 8) | ((value >> 8) & _BYTES)
    value = ((value & _PAIRS) << 16) | ((value >> 16) & _PAIRS)
    return ((value << 32) | (value >> 32)) & _WORD
