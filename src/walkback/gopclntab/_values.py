"""Tables of values by program counter (compiled).

A table is pairs of numbers in LEB128: by how much the value changes, and for how many units of code the value holds
from there on. A change of 0 ends it, except in the first pair.
"""

from typing import NamedTuple

import cython
import numpy as np

from walkback.base.arrays import I32, I64, U8, U32, U64
from walkback.base.bits import WORD
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.base.leb128 import WORD_DIGITS, leb128
else:
    from walkback.base.growing import Growing
    from walkback.base.leb128 import WORD_DIGITS, leb128

_LARGEST = cython.declare(cython.ulonglong, (1 << 32) - 1)
_ALL = cython.declare(cython.ulonglong, WORD)
_DEEPEST = cython.declare(cython.longlong, (1 << 31) - 1)


class Depths(NamedTuple):
    """The stack depths of functions, as rows."""

    first_row: I64
    rows: I64
    covered: U64
    """How many bytes of each function they are of."""
    fault: U8
    offset: U32
    depth: I32
    full: int
    """The function at which there were too many rows; -1 if there were not."""


def depths(data, base, places, sizes, quantum, most):
    """The stack depths of functions, whose tables are at `places` behind `base`; a place of 0 is no table.

    There are no more than `most` rows: functions may share tables.
    """
    first, rows = np.zeros(len(places), np.int64), np.zeros(len(places), np.int64)
    covered, fault = np.zeros(len(places), np.uint64), np.zeros(len(places), np.uint8)
    found = Growing(2)
    contents = np.frombuffer(data, np.uint8)
    full = _depths(contents, base, places, sizes, quantum, 2 * most, first, rows, covered, fault, found)
    offset, depth = found.rows().T
    depth = depth.astype(np.int64).astype(np.int32)
    return Depths(first, rows, covered, fault, offset.astype(np.uint32), depth, full)


@takes_views
def _depths(
    data: cython.const[cython.uchar][::1],
    base: cython.Py_ssize_t,
    places: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.ulonglong][::1],
    quantum: cython.ulonglong,
    most: cython.Py_ssize_t,
    first: cython.longlong[::1],
    rows: cython.longlong[::1],
    covered: cython.ulonglong[::1],
    fault: cython.uchar[::1],
    found: Growing,
):
    f: cython.Py_ssize_t
    pos: cython.Py_ssize_t
    value: cython.longlong
    change: cython.ulonglong
    ahead: cython.ulonglong
    offset: cython.ulonglong
    full: cython.Py_ssize_t = -1
    with cython.nogil, cython.boundscheck(False):
        for f in range(places.shape[0]):
            first[f] = found.used // 2
            if places[f] <= 0 or places[f] > data.shape[0] - base:
                fault[f] = places[f] != 0
                continue
            pos = base + cython.cast(cython.Py_ssize_t, places[f])
            value = -1
            offset = 0
            while offset < sizes[f]:
                change, pos = leb128(data, pos, pos + WORD_DIGITS, False)
                if pos < 0 or (change == 0 and offset):
                    fault[f] = pos < 0
                    break
                ahead, pos = leb128(data, pos, pos + WORD_DIGITS, False)
                value += cython.cast(cython.longlong, change >> 1) ^ -cython.cast(cython.longlong, change & 1)
                if pos < 0 or value > _DEEPEST or value < -_DEEPEST or offset > _LARGEST:
                    fault[f] = 1
                    break
                if found.used >= most:
                    full = f
                    break
                found.add(offset, cython.cast(cython.ulonglong, value) & _ALL)
                if ahead == 0 or ahead > _LARGEST:
                    fault[f] = 1
                    break
                offset += ahead * quantum
            rows[f] = found.used // 2 - first[f]
            covered[f] = min(offset, sizes[f])
            if full >= 0:
                break
    return full
