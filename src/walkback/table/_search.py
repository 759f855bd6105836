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
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    which: cython.Py_ssize_t
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
            low = directory[(pc - base) >> shift]
            high = cython.cast(cython.Py_ssize_t, directory[((pc - base) >> shift) + 1]) + 1
            if high > starts.shape[0]:
                high = starts.shape[0]
            # The first piece that ends after pc is in [low, high).
            while low < high:
                middle = (low + high) >> 1
                if lasts[middle] >= pc:
                    high = middle
                else:
                    low = middle + 1
            if low == starts.shape[0] or starts[low] > pc:
                continue
            which = ranges[low]
            found_range[i] = which
            offset = pc - range_start[which]
            if block[which]:
                offset = offset % block[which]
            # The last row that does not start after the offset.
            low = first_row[which]
            high = low + rows[which]
            while low < high:
                middle = (low + high) >> 1
                if row_offset[middle] <= offset:
                    low = middle + 1
                else:
                    high = middle
            if low > first_row[which]:
                found_row[i] = low - 1
