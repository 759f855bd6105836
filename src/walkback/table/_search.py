"""Program counters to ranges and rows (compiled).

Ranges are disjoint and in order. A directory of equally wide buckets over the addresses leaves a handful of ranges
to search for each program counter; then the rows of the range are searched.
"""

import cython
import numpy as np

from walkback.base.views import takes_views

_TOGETHER = cython.declare(cython.Py_ssize_t, 256)
"""How many program counters are looked up side by side."""


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
    first: cython.Py_ssize_t
    end: cython.Py_ssize_t = 0
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
        # Ranges first, and then their rows: so the memory is asked for the lines of several program counters at once.
        while end < pcs.shape[0]:
            first = end
            end = min(first + _TOGETHER, pcs.shape[0])
            for i in range(first, end):
                pc = pcs[i]
                if pc < base or pc > last:
                    continue
                piece = _piece_of(pc, lasts, directory, cython.cast(cython.Py_ssize_t, (pc - base) >> shift))
                if piece < starts.shape[0] and starts[piece] <= pc:
                    found_range[i] = ranges[piece]
            for i in range(first, end):
                which = found_range[i]
                if which < 0:
                    continue
                offset = pcs[i] - range_start[which]
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
    count: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, directory[bucket + 1]) + 1 - low
    half: cython.Py_ssize_t
    if count > lasts.shape[0] - low:
        count = lasts.shape[0] - low
    # Without a branch on what is compared, the processor goes on with the next program counters meanwhile.
    while count > 1:
        half = count >> 1
        low += half * (lasts[low + half - 1] < pc)
        count -= half
    return low + (count == 1 and lasts[low] < pc)


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
    count: cython.Py_ssize_t = high - low
    half: cython.Py_ssize_t
    while count > 1:
        half = count >> 1
        low += half * (row_offset[low + half - 1] <= offset)
        count -= half
    return low + (count == 1 and row_offset[low] <= offset)
