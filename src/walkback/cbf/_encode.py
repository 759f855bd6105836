"""Columns to compact backtraces (compiled); `encode.py` is its face.

The encoding is the shortest there is. An address takes 1 + k bytes, with the least k that can say it as it is or as
the difference from the address before; that one is the same however it was written, so a choice binds no later one.
Equal frames one after the other are one frame and repeats. An instruction of 1 byte repeats 8 times and one of 1 + k
bytes 256^k - 1 times, which no two of together as many bytes do; so one is best, and of more than the widest can say as
many of the widest as go into it and one for the rest.
"""

import cython

_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_SIGNED_MOST = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)

BAD_KIND = 1
"""Why `encode` stopped: a frame is of no kind that there is."""
TOO_WIDE = 2
"""Why `encode` stopped: an address or a number of frames has more bits than the word."""
NOT_SWIFT = 3
"""Why `encode` stopped: Swift cannot write this number of omitted frames."""
NO_ROOM = 4
"""Why `encode` stopped: the output is too small."""
_BAD_KIND = cython.declare(cython.int, 1)
_TOO_WIDE = cython.declare(cython.int, 2)
_NOT_SWIFT = cython.declare(cython.int, 3)
_NO_ROOM = cython.declare(cython.int, 4)

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
        if some <= 8:
            out[pos] = cython.cast(cython.uchar, 0x80 | (some - 1))
            pos += 1
        else:
            size = _width(some)
            _put(out, pos, 0x88 | (size - 1), some, size)
            pos += 1 + size
        repeats -= some
    return pos


def encode(first, kind, value, times, word, truncated, swift, end, most, out, offsets, state):
    """Write backtraces one after the other into `out`, and where each begins and the last ends into `offsets`.

    A backtrace has the frames from `first[i]` up to `first[i + 1]`; each stands for `times` frames, or where `times` is
    empty for one. `most` has what one instruction may repeat, for each size of word. Returns 0, or why it stopped;
    `state` then has the number of the backtrace and of the frame.
    """
    return _encode(
        memoryview(first),
        memoryview(kind),
        memoryview(value),
        memoryview(times),
        memoryview(word),
        memoryview(truncated),
        swift,
        end,
        memoryview(most),
        memoryview(out),
        memoryview(offsets),
        memoryview(state),
    )


@cython.cfunc
@cython.exceptval(-1, check=False)
def _encode(
    first: cython.const[cython.longlong][::1],
    kind: cython.const[cython.uchar][::1],
    value: cython.const[cython.ulonglong][::1],
    times: cython.const[cython.ulonglong][::1],
    word: cython.const[cython.uchar][::1],
    truncated: cython.const[cython.uchar][::1],
    swift: cython.int,
    end: cython.int,
    most: cython.const[cython.ulonglong][::1],
    out: cython.uchar[::1],
    offsets: cython.longlong[::1],
    state: cython.longlong[::1],
) -> cython.int:
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    pos: cython.Py_ssize_t = 0
    what: cython.uint
    before: cython.uint
    number: cython.ulonglong
    number_before: cython.ulonglong
    address: cython.ulonglong
    more: cython.ulonglong
    repeats: cython.ulonglong
    mask: cython.ulonglong
    top: cython.ulonglong
    whole: cython.ulonglong
    delta: cython.ulonglong
    limit: cython.ulonglong
    size: cython.int
    whole_bits: cython.ulonglong
    delta_bits: cython.ulonglong
    absolute: cython.bint
    is_first: cython.bint
    room: cython.Py_ssize_t = out.shape[0] - _MOST
    with cython.nogil:
        for i in range(word.shape[0]):
            offsets[i] = pos
            state[0] = i
            if pos > room:
                return _NO_ROOM
            mask = _WORD >> (64 - word[i])
            top = (mask >> 1) + 1
            out[pos] = word[i] >> 5
            limit = most[word[i] >> 5]
            pos += 1
            address = repeats = number_before = 0
            before = 256  # which no kind is
            is_first = not swift
            for j in range(first[i], first[i + 1]):
                what = kind[j]
                number = value[j]
                more = 1
                if times.shape[0]:
                    more = times[j]
                    if more == 0:
                        continue
                if what == before and number == number_before:
                    if repeats + more < more or repeats + more > _WORD:
                        # More than one number can count.
                        pos = _repeat(out, pos, _WORD, limit)
                        if pos < 0:
                            return _NO_ROOM
                        more -= _WORD - repeats
                        repeats = 0
                    repeats += more
                    continue
                if repeats:
                    pos = _repeat(out, pos, repeats, limit)
                    if pos < 0:
                        return _NO_ROOM
                if pos > room:
                    return _NO_ROOM
                before = what
                number_before = number
                repeats = more - 1
                state[1] = j
                if 1 <= what <= 3:
                    if number > mask:
                        return _TOO_WIDE
                    whole = ((number ^ top) - top) & _WORD
                    delta = ((((number - address) & mask) ^ top) - top) & _WORD
                    whole_bits = _unsigned(whole)
                    delta_bits = _unsigned(delta)
                    size = _width(whole_bits if whole_bits < delta_bits else delta_bits)
                    # Of two that are as wide it is the difference.
                    absolute = size < 8 and delta_bits >> (8 * size) != 0
                    if is_first:
                        size = _width(whole_bits)
                        absolute = True
                        is_first = False
                    if absolute:
                        delta = whole
                    _put(out, pos, (what << 4) | (8 if absolute else 0) | (size - 1), delta, size)
                    pos += 1 + size
                    address = number
                elif what == 4:
                    if swift:
                        if number == 0 or number > _SIGNED_MOST:
                            return _NOT_SWIFT
                    elif number > mask:
                        return _TOO_WIDE
                    if number - 1 < 32 - swift and number:
                        out[pos] = cython.cast(cython.uchar, 0x40 | (number - 1))
                        pos += 1
                    else:
                        size = _width(number)
                        _put(out, pos, 0x60 | (size - 1), number, size)
                        pos += 1 + size
                else:
                    return _BAD_KIND
            if repeats:
                pos = _repeat(out, pos, repeats, limit)
                if pos < 0:
                    return _NO_ROOM
            if pos > room:
                return _NO_ROOM
            if truncated[i]:
                out[pos] = 1
                pos += 1
            elif end:
                out[pos] = 0
                pos += 1
        offsets[word.shape[0]] = pos
    return 0
