"""Equal byte strings of a buffer get equal small numbers (compiled).

A table of a million rows holds a few thousand different rules. Numbering them while the rows are read leaves one
number a row to store, and everything that follows (decoding, comparing, printing) is done once a rule.

Numbers are given in order of first appearance. The hash is seeded anew in each process, so no input can be
prepared that makes it slow.
"""

import os

import cython
import numpy as np

_SEED = int.from_bytes(os.urandom(8), "little") | 1
_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
"""Keeps products to 64 bits where this runs interpreted."""
_MIX = cython.declare(cython.ulonglong, 0x100000001B3)
_LOW_7 = cython.declare(cython.ulonglong, 0x00FFFFFFFFFFFFFF)


@cython.final
@cython.cclass
class Interner:
    """Numbers byte strings that stand in one buffer; a tag (0-31) keeps equal strings of different kinds apart.

    A string of at most 7 bytes is its own key: the bytes, and above them its length and tag. A longer one's key is a
    hash of its bytes, with length 0. The tag is the highest 5 bits of either.
    """

    def __init__(self, buffer):
        self.buffer = buffer
        self.count = 0
        self.multiplier = _SEED
        self._allocate(256)

    def _allocate(self, capacity):
        """Make room for `capacity` strings, keeping those there are."""
        keys = np.empty(capacity, np.uint64)
        positions = np.empty(capacity, np.int64)
        lengths = np.empty(capacity, np.int64)
        if self.count:
            keys[: self.count] = np.asarray(self.keys)[: self.count]
            positions[: self.count] = np.asarray(self.positions)[: self.count]
            lengths[: self.count] = np.asarray(self.lengths)[: self.count]
        self.keys = memoryview(keys)
        self.positions = memoryview(positions)
        self.lengths = memoryview(lengths)
        self.slots = memoryview(np.full(4 * capacity, -1, np.int32))
        self.capacity = capacity
        self.slot_mask = 4 * capacity - 1
        self.shift = 64 - self.slot_mask.bit_length()
        self._fill_slots()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _fill_slots(self) -> cython.int:
        number: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        for number in range(self.count):
            slot = self._slot(self.keys[number])
            while self.slots[slot] >= 0:
                slot = (slot + 1) & self.slot_mask
            self.slots[slot] = number
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _slot(self, key: cython.ulonglong) -> cython.Py_ssize_t:
        return cython.cast(cython.Py_ssize_t, ((key * self.multiplier) & _WORD) >> self.shift)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def add(self, position: cython.Py_ssize_t, length: cython.Py_ssize_t, tag: cython.uint) -> cython.int:
        """The number of the string at `position`; raises IndexError if it is not inside the buffer."""
        key: cython.ulonglong = 0
        i: cython.Py_ssize_t
        if length <= 7:
            for i in range(length):
                key |= cython.cast(cython.ulonglong, self.buffer[position + i]) << (8 * i)
            return self.add_short(key, position, length, tag)
        key = self.multiplier
        for i in range(position, position + length):
            key = ((key ^ self.buffer[i]) * _MIX) & _WORD
            key ^= key >> 29
        return self._add_key((key & _LOW_7) | (cython.cast(cython.ulonglong, tag) << 59), position, length)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def add_short(
        self,
        value: cython.ulonglong,
        position: cython.Py_ssize_t,
        length: cython.Py_ssize_t,
        tag: cython.uint,
    ) -> cython.int:
        """The number of a string of 1 to 7 bytes whose bytes, the first lowest, are `value`."""
        key: cython.ulonglong = value | (cython.cast(cython.ulonglong, length | (tag << 3)) << 56)
        number: cython.int = self.slots[self._slot(key)]
        if number >= 0 and self.keys[number] == key:
            return number
        return self._add_key(key, position, length)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _add_key(self, key: cython.ulonglong, position: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.int:
        slot: cython.Py_ssize_t = self._slot(key)
        number: cython.int = self.slots[slot]
        while number >= 0:
            if self.keys[number] == key and (length <= 7 or self._equal(number, position, length)):
                return number
            slot = (slot + 1) & self.slot_mask
            number = self.slots[slot]
        if self.count == self.capacity:
            with cython.gil:
                self._allocate(2 * self.capacity)
            slot = self._slot(key)
            while self.slots[slot] >= 0:
                slot = (slot + 1) & self.slot_mask
        number = cython.cast(cython.int, self.count)
        self.slots[slot] = number
        self.keys[number] = key
        self.positions[number] = position
        self.lengths[number] = length
        self.count += 1
        return number

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _equal(self, number: cython.int, position: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.int:
        """Long strings have equal keys if they are equal, and by accident."""
        i: cython.Py_ssize_t
        start: cython.Py_ssize_t = self.positions[number]
        if self.lengths[number] != length:
            return 0
        for i in range(length):
            if self.buffer[start + i] != self.buffer[position + i]:
                return 0
        return 1

    def first_positions(self):
        """Where each numbered string stood first."""
        return np.asarray(self.positions)[: self.count].copy()

    def first_tags(self):
        """The tag of each numbered string."""
        return (np.asarray(self.keys)[: self.count] >> np.uint64(59)).astype(np.uint8)


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
