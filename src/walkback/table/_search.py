"""Program counters to ranges and rows (compiled).

Ranges are disjoint and in order. A directory of equally wide buckets over the addresses leaves a handful of ranges
to search for each program counter; then the rows of the range are searched.
"""

import cython
import numpy as np

from walkback.base.views import takes_views


def find(pcs, pieces, spans):
    """For each program counter its range and row, -1 where there is none; `pieces` are those of the spans."""
    found_range, found_row = np.full((2, len(pcs)), -1, np.int64)
    _find(
        pcs, pieces.starts, pieces.lasts, pieces.ranges, pieces.directory, pieces.shift,
        spans.range_start, spans.range_first_row, spans.range_rows, spans.range_block, spans.row_offset,
        found_range, found_row,
    )  # fmt: skip
    return found_range, found_row


@takes_views
def _find(
    pcs: cython.const[cython.ulonglong][::1],
    starts: cython.const[cython.ulonglong][::1],
    lasts: cython.const[cython.ulonglong][::1],
    ranges: cython.const[cython.longlong][::1],
    directory: cython.const[cython.uint][::1],
    shift: cython.int,
    range_start: cython.const[cython.ulonglong][::1],
    first_row: cython.const[cython.longlong][::1],
    rows: cython.const[cython.longlong][::1],
    block: cython.const[cython.uint][::1],
    row_offset: cython.const[cython.uint][::1],
    found_range: cython.longlong[::1],
    found_row: cython.longlong[::1],
):
    i: cython.Py_ssize_t
    piece: cython.Py_ssize_t
    which: cython.Py_ssize_t
    row: cython.Py_ssize_t
    pc: cython.ulonglong
    offset: cython.ulonglong
    base: cython.ulonglong = 1
    last: cython.ulonglong = 0
    with cython.nogil:
        if starts.shape[0]:
            base = starts[0]
            last = lasts[starts.shape[0] - 1]
        for i in range(pcs.shape[0]):
            pc = pcs[i]
            if pc < base or pc > last:
                continue
            piece = _piece_of(pc, lasts, directory, cython.cast(cython.Py_ssize_t, (pc - base) >> shift))
            if piece == starts.shape[0] or starts[piece] > pc:
                continue
            which = ranges[piece]
            found_range[i] = which
            offset = pc - range_start[which]
            if block[which]:
                offset = offset % block[which]
            row = _row_behind(offset, row_offset, first_row[which], first_row[which] + rows[which])
            if row > first_row[which]:
                found_row[i] = row - 1


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
    """The first piece that ends at or after an address, by the bucket of that."""
    low: cython.Py_ssize_t = directory[bucket]
    high: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, directory[bucket + 1]) + 1
    middle: cython.Py_ssize_t
    if high > lasts.shape[0]:
        high = lasts.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if lasts[middle] >= pc:
            high = middle
        else:
            low = middle + 1
    return low


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
    """The first of some rows that starts after an offset."""
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) >> 1
        if row_offset[middle] <= offset:
            low = middle + 1
        else:
            high = middle
    return low
