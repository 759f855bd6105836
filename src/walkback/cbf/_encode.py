"""Columns to compact backtraces (compiled); `encoding.py` is its face.

The encoding is the shortest there is. An address takes 1 + k bytes, with the least k that can say it as it is or as
the difference from the address before; that one is the same however it was written, so a choice binds no later one.
Equal frames one after the other are one frame and repeats. An instruction of 1 byte repeats 8 times and one of 1 + k
bytes 256^k - 1 times, which no two of together as many bytes do; so one is best, and of more than the widest can say as
many of the widest as go into it and one for the rest.
"""

import cython

from walkback.base.bits import WORD
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.cbf import layout
    from cython.cimports.walkback.cbf.layout import FrameCode
else:
    from walkback.cbf import layout
    from walkback.cbf.layout import FrameCode

_WORD = cython.declare(cython.ulonglong, WORD)
_SIGNED_MOST = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)

BAD_KIND = 1
"""Why `encode` stopped: a frame is of no kind that there is."""
TOO_WIDE = 2
"""Why `encode` stopped: an address or a number of frames has more bits than the word."""
NOT_SWIFT = 3
"""Why `encode` stopped: Swift cannot write this number of omitted frames."""
NO_ROOM = 4
"""Why `encode` stopped: the output is too small."""
_BAD_KIND = cython.declare(cython.int, BAD_KIND)
_TOO_WIDE = cython.declare(cython.int, TOO_WIDE)
_NOT_SWIFT = cython.declare(cython.int, NOT_SWIFT)
_NO_ROOM = cython.declare(cython.int, NO_ROOM)

_NO_KIND = cython.declare(cython.uint, 256)
"""Which no frame's is: they are bytes."""
_MOST = cython.declare(cython.Py_ssize_t, 32)
"""More bytes than any instruction has, and than a store of 8 bytes leaves behind one."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _width(value: cython.ulonglong) -> cython.int:
    """Bytes that a number takes."""
    return (
        1
        + (1 if value >> 8 else 0)
        + (1 if value >> 16 else 0)
        + (1 if value >> 24 else 0)
        + (1 if value >> 32 else 0)
        + (1 if value >> 40 else 0)
        + (1 if value >> 48 else 0)
        + (1 if value >> 56 else 0)
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unsigned(value: cython.ulonglong) -> cython.ulonglong:
    """A number as wide as one in two's complement: its sign takes one bit more."""
    return ((value ^ (0 - (value >> 63))) << 1) & _WORD


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(
    out: cython.uchar[::1], pos: cython.Py_ssize_t, code: cython.uint, value: cython.ulonglong, size: cython.int
) -> cython.void:
    """An instruction with an operand; 8 bytes are stored at once, and the next instruction goes over the rest."""
    value = (value << (64 - 8 * size)) & _WORD
    with cython.boundscheck(False):
        out[pos] = code
        out[pos + 1] = cython.cast(cython.uchar, value >> 56)
        out[pos + 2] = cython.cast(cython.uchar, (value >> 48) & 0xFF)
        out[pos + 3] = cython.cast(cython.uchar, (value >> 40) & 0xFF)
        out[pos + 4] = cython.cast(cython.uchar, (value >> 32) & 0xFF)
        out[pos + 5] = cython.cast(cython.uchar, (value >> 24) & 0xFF)
        out[pos + 6] = cython.cast(cython.uchar, (value >> 16) & 0xFF)
        out[pos + 7] = cython.cast(cython.uchar, (value >> 8) & 0xFF)
        out[pos + 8] = cython.cast(cython.uchar, value & 0xFF)


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _repeat(
    out: cython.uchar[::1], pos: cython.Py_ssize_t, repeats: cython.ulonglong, most: cython.ulonglong
) -> cython.Py_ssize_t:
    """Repeats of the previous frame, by instructions of at most `most` each; returns the place behind, or -2."""
    size: cython.int
    some: cython.ulonglong
    while repeats:
        if out.shape[0] - pos < _MOST:
            return -2
        some = repeats if repeats < most else most
        if some <= layout.REP_COUNT + 1:
            out[pos] = cython.cast(cython.uchar, layout.OP_REP | (some - 1))
            pos += 1
        else:
            size = _width(some)
            _put(out, pos, layout.OP_REP | layout.REP_EXTERNAL | (size - 1), some, size)
            pos += 1 + size
        repeats -= some
    return pos


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_address(
    out: cython.uchar[::1],
    pos: cython.Py_ssize_t,
    what: cython.uint,
    number: cython.ulonglong,
    before: cython.ulonglong,
    mask: cython.ulonglong,
    is_first: cython.bint,
) -> cython.Py_ssize_t:
    """An address behind the address `before`; returns the place behind. The first one is absolute."""
    top: cython.ulonglong = (mask >> 1) + 1
    whole: cython.ulonglong = ((number ^ top) - top) & _WORD
    delta: cython.ulonglong = ((((number - before) & mask) ^ top) - top) & _WORD
    whole_bits: cython.ulonglong = _unsigned(whole)
    delta_bits: cython.ulonglong = _unsigned(delta)
    size: cython.int = _width(whole_bits if is_first or whole_bits < delta_bits else delta_bits)
    code: cython.uint = (what << layout.KIND_SHIFT) | (size - 1)
    # Of two that are as wide it is the difference.
    if is_first or (size < 8 and delta_bits >> (8 * size) != 0):
        _put(out, pos, code | layout.ABSOLUTE, whole, size)
    else:
        _put(out, pos, code, delta, size)
    return pos + 1 + size


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def _put_omission(
    out: cython.uchar[::1],
    pos: cython.Py_ssize_t,
    number: cython.ulonglong,
    mask: cython.ulonglong,
    swift: cython.bint,
) -> cython.Py_ssize_t:
    """A number of omitted frames; returns the place behind, or why there is none, less than 0."""
    if swift and (number == 0 or number > _SIGNED_MOST):
        return -_NOT_SWIFT
    if not swift and number > mask:
        return -_TOO_WIDE
    if number - 1 < layout.OMIT_COUNT + 1 - swift and number:
        out[pos] = cython.cast(cython.uchar, layout.OP_OMIT | (number - 1))
        return pos + 1
    size: cython.int = _width(number)
    _put(out, pos, layout.OP_OMIT | layout.OMIT_EXTERNAL | (size - 1), number, size)
    return pos + 1 + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def _put_frame(
    out: cython.uchar[::1],
    pos: cython.Py_ssize_t,
    what: cython.uint,
    number: cython.ulonglong,
    before: cython.ulonglong,
    mask: cython.ulonglong,
    is_first: cython.bint,
    swift: cython.bint,
) -> cython.Py_ssize_t:
    """One frame, behind the address `before`; returns the place behind, or why there is none, less than 0."""
    if FrameCode.PC <= what < FrameCode.OMIT:
        if number > mask:
            return -_TOO_WIDE
        return _put_address(out, pos, what, number, before, mask, is_first)
    if what == FrameCode.OMIT:
        return _put_omission(out, pos, number, mask, swift)
    return -_BAD_KIND


@takes_views
def encode(
    first: cython.const[cython.longlong][::1],
    kind: cython.const[cython.uchar][::1],
    value: cython.const[cython.ulonglong][::1],
    times: cython.const[cython.ulonglong][::1],
    word: cython.const[cython.uchar][::1],
    truncated: cython.const[cython.uchar][::1],
    swift: cython.bint,
    end: cython.bint,
    most: cython.const[cython.ulonglong][::1],
    out: cython.uchar[::1],
    offsets: cython.longlong[::1],
    state: cython.longlong[::1],
):
    """Write backtraces one after the other into `out`, and where each begins and the last ends into `offsets`.

    A backtrace has the frames from `first[i]` up to `first[i + 1]`; each stands for `times` frames, or where `times` is
    empty for one. `most` has what one instruction may repeat, for each size of word. Returns 0, or why it stopped;
    `state` then has the number of the backtrace and of the frame.
    """
    i: cython.Py_ssize_t
    pos: cython.Py_ssize_t = 0
    status: cython.int = 0
    with cython.nogil:
        for i in range(word.shape[0]):
            offsets[i] = pos
            state[0] = i
            if out.shape[0] - _MOST < pos:
                status = _NO_ROOM
                break
            out[pos] = word[i] >> layout.WORD_SHIFT
            pos = _encode_frames(
                first[i], first[i + 1], kind, value, times, word[i], most[out[pos]], swift, out, pos + 1, state
            )
            if pos < 0:
                status = cython.cast(cython.int, -pos)
                break
            if truncated[i] or end:
                out[pos] = layout.OP_TRUNC if truncated[i] else layout.OP_END
                pos += 1
        if status == 0:
            offsets[word.shape[0]] = pos
    return status


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def _encode_frames(
    begin: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    kind: cython.const[cython.uchar][::1],
    value: cython.const[cython.ulonglong][::1],
    times: cython.const[cython.ulonglong][::1],
    bits: cython.int,
    most: cython.ulonglong,
    swift: cython.bint,
    out: cython.uchar[::1],
    pos: cython.Py_ssize_t,
    state: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Write the frames of one backtrace; returns the place behind, or why it stopped, less than 0."""
    j: cython.Py_ssize_t
    room: cython.Py_ssize_t = out.shape[0] - _MOST
    mask: cython.ulonglong = _WORD >> (64 - bits)
    address: cython.ulonglong = 0
    repeats: cython.ulonglong = 0
    before: cython.uint = _NO_KIND
    number_before: cython.ulonglong = 0
    is_first: cython.bint = not swift
    for j in range(begin, stop):
        what: cython.uint = kind[j]
        number: cython.ulonglong = value[j]
        more: cython.ulonglong = 1
        if times.shape[0]:
            more = times[j]
            if more == 0:
                continue
        if what == before and number == number_before:
            if repeats + more < more or repeats + more > _WORD:
                # More than one number can count.
                pos = _repeat(out, pos, _WORD, most)
                if pos < 0:
                    return -_NO_ROOM
                more -= _WORD - repeats
                repeats = 0
            repeats += more
            continue
        if repeats:
            pos = _repeat(out, pos, repeats, most)
        if pos < 0 or pos > room:
            return -_NO_ROOM
        before = what
        number_before = number
        repeats = more - 1
        state[1] = j
        pos = _put_frame(out, pos, what, number, address, mask, is_first, swift)
        if pos < 0:
            return pos
        if what != FrameCode.OMIT:
            address = number
            is_first = False
    if repeats:
        pos = _repeat(out, pos, repeats, most)
    return pos if 0 <= pos <= room else -_NO_ROOM
