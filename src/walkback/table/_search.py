"""Program counters to ranges and rows (compiled).

Pieces of ranges are disjoint and in order. A directory of equally wide buckets over the addresses leaves a handful of
pieces to search for each program counter; then the rows of the piece's range are searched.

The memory is slower than the search, so some program counters are looked up side by side, in three passes: their
pieces; what these say of their ranges, and the first rows; the other rows. While one waits for the memory, the
processor goes on with the next.
"""

import cython
import numpy as np

from walkback.base.views import takes_views

_LOW_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_SIDE_BY_SIDE = cython.declare(cython.Py_ssize_t, 256)


def find(pcs, index, row_offset):
    """For each program counter its range and row, -1 where there is none."""
    found_range, found_row = np.empty((2, len(pcs)), np.int64)
    behind, beyond = np.empty((2, _SIDE_BY_SIDE), np.int64)
    away = np.empty(_SIDE_BY_SIDE, np.uint64)
    _find(
        pcs, index.entries, index.lasts, index.directory, index.shift, row_offset,
        away, behind, beyond, found_range, found_row,
    )  # fmt: skip
    return found_range, found_row


@takes_views
def _find(
    pcs: cython.const[cython.ulonglong][::1],
    entries: cython.const[cython.ulonglong][:, ::1],
    lasts: cython.const[cython.ulonglong][::1],
    directory: cython.const[cython.uint][::1],
    shift: cython.int,
    row_offset: cython.const[cython.uint][::1],
    away: cython.ulonglong[::1],
    behind: cython.longlong[::1],
    beyond: cython.longlong[::1],
    found_range: cython.longlong[::1],
    found_row: cython.longlong[::1],
):
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    first: cython.Py_ssize_t
    end: cython.Py_ssize_t = 0
    piece: cython.Py_ssize_t
    row: cython.Py_ssize_t
    rows: cython.Py_ssize_t
    pc: cython.ulonglong
    offset: cython.ulonglong
    packed: cython.ulonglong
    base: cython.ulonglong = 1
    last: cython.ulonglong = 0
    with cython.nogil:
        if lasts.shape[0]:
            base = entries[0, 0]
            last = lasts[lasts.shape[0] - 1]
        while end < pcs.shape[0]:
            first = end
            end = min(first + _SIDE_BY_SIDE, pcs.shape[0])
            for i in range(first, end):
                pc = pcs[i]
                piece = -1
                if base <= pc <= last:
                    piece = _piece_of(pc, lasts, directory, cython.cast(cython.Py_ssize_t, (pc - base) >> shift))
                found_range[i] = piece
            for i in range(first, end):
                j = i - first
                piece = found_range[i]
                found_range[i] = found_row[i] = -1
                behind[j] = beyond[j] = 0
                if piece >= 0 and entries[piece, 0] <= pcs[i]:
                    packed = entries[piece, 3]
                    row = packed >> 32
                    offset = pcs[i] - entries[piece, 1]
                    if packed & _LOW_32:
                        offset = offset % (packed & _LOW_32)
                    packed = entries[piece, 2]
                    rows = packed & _LOW_32
                    found_range[i] = packed >> 32
                    if rows and row_offset[row] <= offset:
                        found_row[i] = row
                        away[j] = offset
                        behind[j] = row + 1
                        beyond[j] = row + rows
            for i in range(first, end):
                j = i - first
                if behind[j] < beyond[j]:
                    found_row[i] = _row_behind(away[j], row_offset, behind[j], beyond[j]) - 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _piece_of(
    pc: cython.ulonglong,
    lasts: cython.const[cython.ulonglong][::1],
    directory: cython.const[cython.uint][::1],
    bucket: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The first piece that ends at or after an address, by the bucket of that; -1 if there is none."""
    low: cython.Py_ssize_t = directory[bucket]
    count: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, directory[bucket + 1]) + 1 - low
    half: cython.Py_ssize_t
    if count > lasts.shape[0] - low:
        count = lasts.shape[0] - low
    if count <= 0:
        return -1
    with cython.boundscheck(False):  # all of these pieces are there
        # Without a branch on what is compared, the processor goes on with the next program counters meanwhile.
        while count > 1:
            half = count >> 1
            low += half * (lasts[low + half - 1] < pc)
            count -= half
        low += lasts[low] < pc
    return low if low < lasts.shape[0] else -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _row_behind(
    offset: cython.ulonglong,
    row_offset: cython.const[cython.uint][::1],
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The first of one or more rows that starts after an offset."""
    count: cython.Py_ssize_t = min(high, row_offset.shape[0]) - low
    half: cython.Py_ssize_t
    if low < 0 or count <= 0:
        return low
    with cython.boundscheck(False):  # all of these rows are there
        while count > 1:
            half = count >> 1
            low += half * (row_offset[low + half - 1] <= offset)
            count -= half
        return low + (row_offset[low] <= offset)
