"""Equal byte strings of a buffer get equal small numbers (compiled; `intern.pxd` has the C types).

A table of a million rows holds a few thousand different rules. Numbering them while the rows are read leaves one
number a row to store, and everything that follows (decoding, comparing, printing) is done once a rule.

Numbers are given in order of first appearance. The hash is seeded anew in each process, so no input can be
prepared that makes it slow.
"""

import os

import cython
import numpy as np

from walkback.base.arrays import longer
from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.base.loading import load8
    from cython.cimports.walkback.base.mixing import mixed
else:
    from walkback.base.loading import load8
    from walkback.base.mixing import mixed

_SEED = int.from_bytes(os.urandom(8), "little") | 1
_WORD = cython.declare(cython.ulonglong, WORD)
"""Keeps products to 64 bits where this runs interpreted."""
_LOW_7 = cython.declare(cython.ulonglong, 0x00FFFFFFFFFFFFFF)


def new_seeds(count):
    """Odd numbers to make keys with, which nobody who prepares an input can know."""
    return memoryview(np.frombuffer(os.urandom(8 * count), np.uint64) | np.uint64(1))


@cython.final
@cython.cclass
class KeyTable:
    """Numbers keys of 64 bits; where different things have one key, whoever adds them looks at each number of it."""

    def __init__(self, capacity):
        self.count = 0
        self.multiplier = _SEED
        self.keys = memoryview(np.empty(capacity, np.uint64))
        self._spread()

    def _slot(self, key: cython.ulonglong) -> cython.Py_ssize_t:
        return cython.cast(cython.Py_ssize_t, ((key * self.multiplier) & _WORD) >> self.shift)

    def find(self, key: cython.ulonglong) -> cython.int:
        """The first number of a key; -1 if there is none."""
        return self._find_from(self._slot(key), key)

    def find_next(self, key: cython.ulonglong) -> cython.int:
        """The number of the same key behind the one that was found last; -1 if there is none."""
        return self._find_from((self.place + 1) & self.mask, key)

    @cython.boundscheck(False)  # the mask keeps every slot inside
    def _find_from(self, slot: cython.Py_ssize_t, key: cython.ulonglong) -> cython.int:
        number: cython.int = self.slots[slot]
        while number >= 0 and self.keys[number] != key:
            slot = (slot + 1) & self.mask
            number = self.slots[slot]
        self.place = slot
        return number

    def add(self, key: cython.ulonglong) -> cython.int:
        """A new number for a key, which was not found just now."""
        number: cython.int = cython.cast(cython.int, self.count)
        self.slots[self.place] = number
        self.keys[number] = key
        self.count += 1
        if self.count == self.keys.shape[0]:
            self._grow()
        return number

    def _grow(self) -> cython.int:
        """Make room; apart from `add`, which would otherwise take the interpreter's lock each time."""
        self.keys = memoryview(longer(np.asarray(self.keys), 2 * self.count))
        self._spread()
        return 0

    def _spread(self) -> cython.int:
        """Give every key its slot, with four times as many slots as keys have room."""
        number: cython.Py_ssize_t
        slots = 4 * self.keys.shape[0]
        self.slots = memoryview(np.full(slots, -1, np.int32))
        self.mask = slots - 1
        self.shift = 64 - self.mask.bit_length()
        for number in range(self.count):
            slot: cython.Py_ssize_t = self._slot(self.keys[number])
            while self.slots[slot] >= 0:
                slot = (slot + 1) & self.mask
            self.slots[slot] = number
        return 0


@cython.final
@cython.cclass
class Interner:
    """Numbers byte strings that stand in one buffer; a tag (0-31) keeps equal strings of different kinds apart.

    A string of at most 7 bytes is its own key: the bytes, and above them its length and tag. A longer one's key is a
    hash of its bytes, with length 0. The tag is the highest 5 bits of either.
    """

    def __init__(self, buffer):
        self.buffer = buffer
        self.table = KeyTable(256)
        self.positions = memoryview(np.empty(256, np.int64))
        self.lengths = memoryview(np.empty(256, np.int64))

    def add(self, position: cython.Py_ssize_t, length: cython.Py_ssize_t, tag: cython.uint) -> cython.int:
        """The number of the string at `position`; raises IndexError if it is not inside the buffer."""
        key: cython.ulonglong = 0
        i: cython.Py_ssize_t
        end: cython.Py_ssize_t = position + length
        if length <= 7:
            for i in range(length):
                key |= cython.cast(cython.ulonglong, self.buffer[position + i]) << (8 * i)
            return self.add_short(key, position, length, tag)
        factor: cython.ulonglong = self.table.multiplier
        key = self.buffer[position] ^ self.buffer[end - 1]  # both are inside, or it is an error
        i = position
        while i < end:
            # Mixed twice by what nobody knows: what one word changes, no next word can change back. The last one may
            # begin in the word before it.
            key = mixed(mixed(key ^ load8(self.buffer, min(i, end - 8)), factor), factor)
            i += 8
        key = (key & _LOW_7) | (cython.cast(cython.ulonglong, tag) << 59)
        number: cython.int = self.table.find(key)
        while number >= 0 and not self._equal(number, position, length):
            number = self.table.find_next(key)
        return number if number >= 0 else self._new(key, position, length)

    def add_short(
        self,
        value: cython.ulonglong,
        position: cython.Py_ssize_t,
        length: cython.Py_ssize_t,
        tag: cython.uint,
    ) -> cython.int:
        """The number of a string of 1 to 7 bytes whose bytes, the first lowest, are `value`."""
        key: cython.ulonglong = value | (cython.cast(cython.ulonglong, length | (tag << 3)) << 56)
        number: cython.int = self.table.find(key)
        return number if number >= 0 else self._new(key, position, length)

    def _new(self, key: cython.ulonglong, position: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.int:
        number: cython.int = self.table.add(key)
        if number == self.positions.shape[0]:
            self._grow()
        self.positions[number] = position
        self.lengths[number] = length
        return number

    def _grow(self) -> cython.int:
        room = 2 * self.positions.shape[0]
        self.positions = memoryview(longer(np.asarray(self.positions), room))
        self.lengths = memoryview(longer(np.asarray(self.lengths), room))
        return 0

    def _equal(self, number: cython.int, position: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.int:
        """Long strings have equal keys if they are equal, and by accident."""
        i: cython.Py_ssize_t = 0
        start: cython.Py_ssize_t = self.positions[number]
        if self.lengths[number] != length:
            return 0
        while i < length:
            at: cython.Py_ssize_t = min(i, length - 8)
            if load8(self.buffer, start + at) != load8(self.buffer, position + at):
                return 0
            i += 8
        return 1

    def first_positions(self):
        """Where each numbered string stood first."""
        return np.asarray(self.positions)[: self.table.count].copy()

    def first_lengths(self):
        """Of each numbered string."""
        return np.asarray(self.lengths)[: self.table.count].copy()

    def first_tags(self):
        """The tag of each numbered string."""
        return (np.asarray(self.table.keys)[: self.table.count] >> np.uint64(59)).astype(np.uint8)


def intern_records(records):
    """Number the equal entries of a contiguous array: (index of each distinct one's first appearance, numbers)."""
    width = records.dtype.itemsize
    numbers = np.empty(len(records), np.int32)
    interner = Interner(memoryview(records.tobytes()))
    _add_records(interner, width, memoryview(numbers))
    return interner.first_positions() // width, numbers


@cython.cfunc
def _add_records(interner: Interner, width: cython.Py_ssize_t, numbers: cython.int[::1]) -> cython.int:
    i: cython.Py_ssize_t
    for i in range(numbers.shape[0]):
        numbers[i] = interner.add(i * width, width, 0)
    return 0
