"""Program counters to ranges and rows (compiled).

Ranges are disjoint and in order. A directory of equally wide buckets over the addresses leaves a handful of ranges
to search for each program counter; then the rows of the range are searched.
"""

import cython
import numpy as np


def find(pcs, starts, lasts, ranges, directory, shift, range_start, first_row, rows, block, row_offset):
    """For each program counter its range and row, -1 where there is none.

    `starts`, `lasts` (inclusive) and `ranges` describe the disjoint pieces; `directory[b]` is the first piece that ends
    in bucket b or after it. The other columns are those of the table.
    """
    found_range = np.empty(len(pcs), np.int64)
    found_row = np.empty(len(pcs), np.int64)
    _find(
        memoryview(pcs),
        memoryview(starts),
        memoryview(lasts),
        memoryview(ranges),
        memoryview(directory),
        shift,
        memoryview(range_start),
        memoryview(first_row),
        memoryview(rows),
        memoryview(block),
        memoryview(row_offset),
        memoryview(found_range),
        memoryview(found_row),
    )
    return found_range, found_row


@cython.cfunc
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
) -> cython.int:
    i: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    which: cython.Py_ssize_t
    pieces: cython.Py_ssize_t = starts.shape[0]
    pc: cython.ulonglong
    offset: cython.ulonglong
    base: cython.ulonglong
    last: cython.ulonglong
    with cython.nogil:
        if pieces:
            base = starts[0]
            last = lasts[pieces - 1]
        else:
            base = 1
            last = 0
        for i in range(pcs.shape[0]):
            pc = pcs[i]
            found_range[i] = -1
            found_row[i] = -1
            if pc < base or pc > last:
                continue
            low = directory[(pc - base) >> shift]
            high = cython.cast(cython.Py_ssize_t, directory[((pc - base) >> shift) + 1]) + 1
            if high > pieces:
                high = pieces
            # The first piece that ends after pc is in [low, high).
            while low < high:
                middle = (low + high) >> 1
                if lasts[middle] >= pc:
                    high = middle
                else:
                    low = middle + 1
            if low == pieces or starts[low] > pc:
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
    return 0
