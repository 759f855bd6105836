"""Checked reading of bytes, one after the other (compiled; `cursor.pxd` has the C types).

A read that would leave the bytes sets `failed`, gives 0 and moves nothing, so a loop may look at `failed` once for
several reads. LEB128 is that of DWARF 5, section 7.6; a number of more than 64 bits fails too.
"""

import cython

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.base import leb128 as leb
else:
    from walkback.base import leb128 as leb

_WORD = cython.declare(cython.ulonglong, WORD)
_BYTES = cython.declare(cython.ulonglong, 0x00FF00FF00FF00FF)
_PAIRS = cython.declare(cython.ulonglong, 0x0000FFFF0000FFFF)
"""Every second one."""
_SIGN_32 = cython.declare(cython.ulonglong, 0x80000000)
_HIGH_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF00000000)
_LAST_DIGIT = cython.declare(cython.int, WORD >> 7 * 9)
"""The most that the last of the digits that hold 64 bits can be."""


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
        value: cython.ulonglong
        behind: cython.Py_ssize_t
        if self.failed:
            return 0
        value, behind = leb.leb128(self.buffer, self.pos, self.end, False)
        if behind < 0 or (behind - self.pos >= leb.WORD_DIGITS and self._is_wide(behind)):
            self.failed = True
            return 0
        self.pos = behind
        return value

    def _is_wide(self, behind: cython.Py_ssize_t) -> cython.bint:
        """Whether the number from here on has more than 64 bits: in the last digit of a word or behind it."""
        place: cython.Py_ssize_t
        for place in range(self.pos + leb.WORD_DIGITS, behind):
            if self.buffer[place] & leb.DIGIT:
                return True
        return self.buffer[self.pos + leb.WORD_DIGITS - 1] & leb.DIGIT > _LAST_DIGIT

    def sleb(self) -> cython.longlong:
        """A signed LEB128 number; what lies above 64 bits is dropped, as all readers do."""
        value: cython.ulonglong
        behind: cython.Py_ssize_t
        if self.failed:
            return 0
        value, behind = leb.leb128(self.buffer, self.pos, self.end, True)
        if behind < 0:
            self.failed = True
            return 0
        self.pos = behind
        return as_signed(value)


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
