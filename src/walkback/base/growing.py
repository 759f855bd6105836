"""Rows of numbers, as many as come (compiled; `growing.pxd` has the C types)."""

import cython
import numpy as np

from walkback.base.arrays import longer

_WIDEST = cython.declare(cython.Py_ssize_t, 5)


def joined(parts, widths):
    """What several parts have, each of them arrays of rows of these widths."""
    none = [np.zeros((0, width), np.uint64) for width in widths]
    return [np.concatenate(rows) for rows in zip(none, *parts, strict=True)]


@cython.final
@cython.cclass
class Growing:
    """Rows of one to five numbers of 64 bits; row i begins at `numbers[i * width]`."""

    def __init__(self, width):
        self.width = width
        self.numbers = memoryview(np.empty(1 << 10, np.uint64))
        self.clear()

    def clear(self) -> cython.int:
        """Begin again without rows."""
        self.used = 0
        return 0

    def add(
        self,
        first: cython.ulonglong,
        second: cython.ulonglong = 0,
        third: cython.ulonglong = 0,
        fourth: cython.ulonglong = 0,
        fifth: cython.ulonglong = 0,
    ) -> cython.int:
        """Add a row; the next one replaces what is beyond its width."""
        at: cython.Py_ssize_t = self.used
        if at + _WIDEST > self.numbers.shape[0]:
            self._grow()
        self.numbers[at] = first
        self.numbers[at + 1] = second
        self.numbers[at + 2] = third
        self.numbers[at + 3] = fourth
        self.numbers[at + 4] = fifth
        self.used += self.width
        return 0

    def _grow(self) -> cython.int:
        self.numbers = memoryview(longer(np.asarray(self.numbers), 2 * self.numbers.shape[0]))
        return 0

    def rows(self):
        """All of them, as an array."""
        return np.asarray(self.numbers)[: self.used].reshape(-1, self.width).copy()
