"""The memory of samples: numbers from addresses (compiled)."""

import sys

import cython
import numpy as np

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.base.cursor import swapped
else:
    from walkback.base.cursor import swapped

_WORD = cython.declare(cython.ulonglong, WORD)
_FAR = cython.declare(cython.ulonglong, 1 << 30)
"""What is not further behind the end of a copied stack may be stack."""


@cython.final
@cython.cclass
class Segments:
    """The segments of all samples, and which of them are those of one."""

    def __init__(self, columns, big):
        """`columns` are views of the arrays of a `Memory`; `big` is the byte order of numbers."""
        self.buffer = columns["buffer"]
        words = np.frombuffer(columns["buffer"], np.uint64, len(columns["buffer"]) // 8)
        self.words = memoryview(words if words.flags.aligned else np.zeros(0, np.uint64))
        self.following = columns["following"]
        self.segment_start = columns["segment_start"]
        self.segment_size = columns["segment_size"]
        self.segment_offset = columns["segment_offset"]
        self.big = big
        self.swaps = big != (sys.byteorder == "big")
        self.first = self.end = 0
        self.cut = self.value = 0

    def use(self, first: cython.longlong, end: cython.longlong, cut: cython.ulonglong) -> cython.int:
        """Read from these segments; `cut` is where the copied stack ends, 0 where nothing was cut off."""
        self.first = cython.cast(cython.Py_ssize_t, first)
        self.end = cython.cast(cython.Py_ssize_t, end)
        self.cut = cut
        return 0

    def load(self, address: cython.ulonglong, size: cython.int) -> cython.bint:
        """Leave a number of 1 to 8 bytes in `value`; whether they are there."""
        place: cython.Py_ssize_t = self._place(address, size)
        i: cython.int
        value: cython.ulonglong = 0
        if place < 0:
            return False
        # Nearly all that is loaded, by far.
        if size == 8 and not place & 7 and place >> 3 < self.words.shape[0]:
            value = self.words[place >> 3]
            self.value = swapped(value) if self.swaps else value
            return True
        for i in range(size):
            if self.big:
                value = (value << 8) | self._byte(place + i)
            else:
                value |= self._byte(place + i) << (8 * i)
        self.value = value
        return True

    def load_code(self, address: cython.ulonglong, size: cython.int) -> cython.bint:
        """Leave 1 to 8 bytes of code in `value`, the first lowest in every byte order; whether they are there."""
        place: cython.Py_ssize_t = self._place(address, size)
        i: cython.int
        self.value = 0
        if place < 0:
            return False
        for i in range(size):
            self.value |= self._byte(place + i) << (8 * i)
        return True

    def is_cut_off(self, address: cython.ulonglong, size: cython.int) -> cython.bint:
        """Whether what is not there may be stack that was not copied."""
        return self.cut != 0 and (address + size) & _WORD > self.cut and (address - self.cut + 8) & _WORD < _FAR

    def _place(self, address: cython.ulonglong, size: cython.int) -> cython.Py_ssize_t:
        """Where the bytes at an address stand in the buffer and what follows it; -1 if they do not."""
        low: cython.Py_ssize_t = self.first
        high: cython.Py_ssize_t = self.end
        middle: cython.Py_ssize_t
        place: cython.Py_ssize_t
        away: cython.ulonglong
        there: cython.ulonglong
        # The last segment that begins at or before the address.
        while high - low > 1:
            middle = (low + high) >> 1
            if self.segment_start[middle] <= address:
                low = middle
            else:
                high = middle
        if low >= high or self.segment_start[low] > address:
            return -1
        away = address - self.segment_start[low]
        there = self.segment_size[low]
        if away >= there or there - away < cython.cast(cython.ulonglong, size):
            return -1
        place = cython.cast(cython.Py_ssize_t, self.segment_offset[low] + away)
        if place < 0 or place > self.buffer.shape[0] + self.following.shape[0] - size:
            return -1
        return place

    def _byte(self, place: cython.Py_ssize_t) -> cython.ulonglong:
        """One byte, of the buffer or of what follows it."""
        if place < self.buffer.shape[0]:
            return self.buffer[place]
        return self.following[place - self.buffer.shape[0]]
