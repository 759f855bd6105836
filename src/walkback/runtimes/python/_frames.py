"""The chain of frames, as far as it is in one piece of memory (compiled)."""

import cython

from walkback.base.views import takes_views

WIDTH = 5
"""Words of a frame: its address, its code, its instruction, its owner, and which copy of its instructions it runs."""


@takes_views
def follow(
    memory: cython.const[cython.uchar][::1],
    start: cython.ulonglong,
    address: cython.ulonglong,
    shape: cython.const[cython.longlong][::1],
    big: cython.bint,
    found: cython.ulonglong[:, ::1],
    used: cython.Py_ssize_t,
):
    """Take frames from the one at an address on into `found`, which has `used` rows already.

    The memory is from `start` on; `shape` has the offsets of what a frame has: the previous one, code, instruction,
    owner, copy (-1 for none), and its size. Returns the frame to go on with, 0 at the end, and the number of rows.
    """
    place: cython.Py_ssize_t
    room: cython.Py_ssize_t = memory.shape[0] - cython.cast(cython.Py_ssize_t, shape[5])
    away: cython.ulonglong
    while address and not address & 7 and used < found.shape[0] and room >= 0:
        away = (address - start) & 0xFFFFFFFFFFFFFFFF
        if away > cython.cast(cython.ulonglong, room):
            break
        place = cython.cast(cython.Py_ssize_t, away)
        found[used, 0] = address
        found[used, 1] = _word(memory, place + shape[1], 8, big)
        found[used, 2] = _word(memory, place + shape[2], 8, big)
        found[used, 3] = memory[place + shape[3]]
        found[used, 4] = _word(memory, place + shape[4], 4, big) if shape[4] >= 0 else 0
        address = _word(memory, place + shape[0], 8, big)
        used += 1
    return address, used


@cython.cfunc
@cython.inline
def _word(
    memory: cython.const[cython.uchar][::1], place: cython.Py_ssize_t, size: cython.int, big: cython.bint
) -> cython.ulonglong:
    i: cython.int
    value: cython.ulonglong = 0
    for i in range(size):
        value |= cython.cast(cython.ulonglong, memory[place + i]) << (8 * (size - 1 - i if big else i))
    return value
