"""Lines of folded stacks as columns (compiled); `folded.py` is its face.

A line mostly begins like the one before it. What they share is compared, and its names have their numbers already.
"""

import cython

from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.intern import Interner
    from cython.cimports.walkback.base.loading import load8
else:
    from walkback.base.intern import Interner
    from walkback.base.loading import load8

BAD_WEIGHT = 1
"""Why `read_lines` stopped: a line does not end in a blank and a number."""
TOO_LONG = 2
"""A line has more bytes than it may."""
_BAD_WEIGHT = cython.declare(cython.int, BAD_WEIGHT)
_TOO_LONG = cython.declare(cython.int, TOO_LONG)

_MOST_DIGITS = cython.declare(cython.Py_ssize_t, 18)
"""Of a weight: more could be too large for a column."""


@takes_views
def read_lines(
    data: cython.const[cython.uchar][::1],
    behind: cython.const[cython.longlong][::1],
    most: cython.Py_ssize_t,
    with_process: cython.bint,
    interner: Interner,
    first: cython.longlong[::1],
    frames: cython.int[::1],
    processes: cython.int[::1],
    weights: cython.longlong[::1],
    path: cython.int[::1],
    ends: cython.longlong[::1],
    state: cython.longlong[::1],
):
    """Read all lines, none of more than `most` bytes; returns why it stopped, or 0.

    `behind` has where each line ends.

    `interner` numbers the names, those of processes with the tag 1. A stack has its frames innermost first. `path` and
    `ends` are room for the names of one line, and for where they end in it. `state` gets the number of the lines that
    have a stack, and of all lines.
    """
    line: cython.Py_ssize_t
    begin: cython.Py_ssize_t = 0
    former: cython.Py_ssize_t = 0
    former_size: cython.Py_ssize_t = 0
    depth: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    used: cython.Py_ssize_t = 0
    below: cython.Py_ssize_t = 1 if with_process else 0
    i: cython.Py_ssize_t
    wrong: cython.int = 0
    first[0] = 0
    with cython.nogil, cython.boundscheck(False):
        for line in range(behind.shape[0]):
            end: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, behind[line])
            begin = cython.cast(cython.Py_ssize_t, behind[line - 1]) + 1 if line else 0
            state[1] = line + 1
            if end - begin > most:
                wrong = _TOO_LONG
                break
            while end > begin and is_blank(data[end - 1]):
                end -= 1
            if end == begin:
                continue
            at: cython.Py_ssize_t = end
            while at > begin and 0x30 <= data[at - 1] <= 0x39:
                at -= 1
            if at == end or end - at > _MOST_DIGITS or at - begin < 2 or data[at - 1] != 0x20:
                wrong = _BAD_WEIGHT
                break
            weight: cython.longlong = 0
            for i in range(at, end):
                weight = 10 * weight + (data[i] - 0x30)
            end = at - 1
            # The names that end within what this line shares with the former one are known.
            shared: cython.Py_ssize_t = 0
            both: cython.Py_ssize_t = min(former_size, end - begin)
            while shared + 8 <= both and load8(data, former + shared) == load8(data, begin + shared):
                shared += 8
            while shared < both and data[former + shared] == data[begin + shared]:
                shared += 1
            names: cython.Py_ssize_t = 0
            while names < depth and ends[names] < shared:
                names += 1
            at = begin
            if names:
                at += cython.cast(cython.Py_ssize_t, ends[names - 1]) + 1
            i = at
            while True:
                if i == end or data[i] == 0x3B:
                    path[names] = interner.add(at, i - at, 1 if names < below else 0)
                    ends[names] = i - begin
                    names += 1
                    at = i + 1
                    if i == end:
                        break
                i += 1
            depth, former, former_size = names, begin, end - begin
            while names > below:
                names -= 1
                frames[used] = path[names]
                used += 1
            processes[count] = path[0]
            weights[count] = weight
            count += 1
            first[count] = used
            state[0] = count
    return wrong


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_blank(byte: cython.uchar) -> cython.bint:
    """What `bytes.strip` takes away."""
    return byte == 0x20 or 0x09 <= byte <= 0x0D
