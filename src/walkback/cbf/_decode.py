"""Compact backtraces to columns (compiled); `decode.py` is its face.

One pass over the bytes, which stops where the columns are full and goes on when they are larger. A run is a frame and
how often it repeats.
"""

import cython

_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

# Those of `layout.py`, as C knows them.
_EMPTY = cython.declare(cython.int, 1)
_VERSION = cython.declare(cython.int, 2)
_SIZE = cython.declare(cython.int, 3)
_RESERVED = cython.declare(cython.int, 4)
_SHORT = cython.declare(cython.int, 5)
_REPEAT = cython.declare(cython.int, 6)
_WIDE = cython.declare(cython.int, 7)
_TRAILING = cython.declare(cython.int, 8)

FULL = 1
"""Why `read` stopped: there is no room for one more run."""
_FULL = cython.declare(cython.int, 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _operand(
    data: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t, size: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.ulonglong:
    """An operand at the top of 64 bits; of a wider one the last 8 bytes. It ends at `end` or before."""
    i: cython.Py_ssize_t
    value: cython.ulonglong = 0
    if size > 8:
        pos += size - 8
        size = 8
    if pos < 0 or size < 1 or end > data.shape[0] or end - pos < size:
        return 0
    with cython.boundscheck(False):
        for i in range(size):
            value |= cython.cast(cython.ulonglong, data[pos + i]) << (56 - 8 * i)
    return value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unsigned(
    data: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t, size: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.ulonglong:
    """An operand as a number; of a wider one the last 8 bytes."""
    return _operand(data, pos, size, end) >> (64 - 8 * (size if size < 8 else 8))


def read(data, offsets, known, state, word, first, ended, fault, at, filling, kind, value, times):
    """Read backtraces, from number `state[0]` on, from place `state[1]` on, and into runs from `state[2]` on.

    With `known`, backtrace i is from `offsets[i]` up to `offsets[i + 1]`; else each begins where the one before ended,
    and `offsets` is filled. Fills for each the bits of a word, where its runs begin, an `Ended`, a `Fault` and the
    place of that; and with `filling` the runs. Returns 0 when the data ends or `word` is full, or `FULL`; `state` then
    says how far it came, in whole backtraces.
    """
    return _read(
        memoryview(data),
        memoryview(offsets),
        known,
        memoryview(state),
        memoryview(word),
        memoryview(first),
        memoryview(ended),
        memoryview(fault),
        memoryview(at),
        filling,
        memoryview(kind),
        memoryview(value),
        memoryview(times),
    )


@cython.cfunc
@cython.exceptval(-1, check=False)
def _read(
    data: cython.const[cython.uchar][::1],
    offsets: cython.longlong[::1],
    known: cython.int,
    state: cython.longlong[::1],
    word: cython.uchar[::1],
    first: cython.longlong[::1],
    ended: cython.uchar[::1],
    fault: cython.uchar[::1],
    at: cython.longlong[::1],
    filling: cython.int,
    kind: cython.uchar[::1],
    value: cython.ulonglong[::1],
    times: cython.ulonglong[::1],
) -> cython.int:
    i: cython.Py_ssize_t
    pos: cython.Py_ssize_t = state[1]
    end: cython.Py_ssize_t = data.shape[0]
    size: cython.Py_ssize_t
    width: cython.Py_ssize_t
    wide: cython.Py_ssize_t
    wrong_at: cython.Py_ssize_t
    whole: cython.Py_ssize_t = data.shape[0] - 8
    run: cython.Py_ssize_t = state[2]
    room: cython.Py_ssize_t = min(kind.shape[0], value.shape[0], times.shape[0])
    code: cython.uint
    wrong: cython.int
    how: cython.int
    any_frame: cython.int
    raw: cython.ulonglong
    sign: cython.ulonglong
    mask: cython.ulonglong
    address: cython.ulonglong
    with cython.nogil:
        for i in range(state[0], word.shape[0]):
            if known:
                pos = offsets[i]
                end = offsets[i + 1]
                if pos < 0 or end < pos or end > data.shape[0]:
                    pos = end = 0
            elif pos >= end:
                break
            else:
                offsets[i] = pos
            wrong = how = any_frame = 0
            wide = -1
            address = 0
            width = 8
            first[i] = run
            if pos >= end:
                wrong = _EMPTY
            elif data[pos] >> 2:
                wrong = _VERSION
            elif data[pos] == 3:
                wrong = _SIZE
            else:
                width = 2 << data[pos]
                pos += 1
            word[i] = 8 * width
            mask = _WORD >> (64 - 8 * width)
            # In this loop `pos` is before `end`, which is in the data, and `run` before `room`, wherever they are used.
            while pos < end and wrong == 0:
                with cython.boundscheck(False):
                    code = data[pos]
                    if 0x10 <= code < 0x80:
                        if code < 0x40:
                            size = 2 + (code & 7)
                        elif code & 0x20:
                            size = 2 + (code & 0x1F)
                        else:
                            size = 1
                        if size > end - pos:
                            wrong = _SHORT
                            break
                        any_frame = 1
                        if filling:
                            if run >= room:
                                return _FULL
                            times[run] = 1
                            if code < 0x40:
                                if pos < whole:
                                    # All 8 bytes at once: quicker than to ask how many there are.
                                    raw = (
                                        (cython.cast(cython.ulonglong, data[pos + 1]) << 56)
                                        | (cython.cast(cython.ulonglong, data[pos + 2]) << 48)
                                        | (cython.cast(cython.ulonglong, data[pos + 3]) << 40)
                                        | (cython.cast(cython.ulonglong, data[pos + 4]) << 32)
                                        | (cython.cast(cython.ulonglong, data[pos + 5]) << 24)
                                        | (cython.cast(cython.ulonglong, data[pos + 6]) << 16)
                                        | (cython.cast(cython.ulonglong, data[pos + 7]) << 8)
                                        | cython.cast(cython.ulonglong, data[pos + 8])
                                    )
                                else:
                                    raw = _operand(data, pos + 1, size - 1, end)
                                # The operand is at the top of the 64 bits; its sign comes along when it moves down.
                                sign = (0 - (raw >> 63)) & _WORD
                                raw = ((raw ^ sign) >> (72 - 8 * size)) ^ sign
                                address = raw if code & 8 else (address + raw) & _WORD
                                kind[run] = code >> 4
                                value[run] = address & mask
                            else:
                                kind[run] = 4
                                value[run] = _unsigned(data, pos + 1, size - 1, end) if size > 1 else 1 + (code & 0x1F)
                            run += 1
                    elif code <= 1:
                        how = 1 + code
                        break
                    elif 0x80 <= code < 0x90:
                        size = 2 + (code & 7) if code & 8 else 1
                        if not any_frame:
                            wrong = _REPEAT
                            break
                        if size > end - pos:
                            wrong = _SHORT
                            break
                        if filling:
                            raw = _unsigned(data, pos + 1, size - 1, end) if size > 1 else 1 + (code & 7)
                            if times[run - 1] <= _WORD - raw:
                                times[run - 1] += raw
                            elif run >= room:
                                return _FULL
                            else:
                                # So many frames are counted in two runs.
                                kind[run] = kind[run - 1]
                                value[run] = value[run - 1]
                                times[run] = raw
                                run += 1
                    else:
                        wrong = _RESERVED
                        break
                if size > 1 + width and wide < 0:
                    wide = pos
                pos += size
            wrong_at = pos
            if how:
                pos += 1
                if known and pos < end:
                    wrong = _TRAILING
                    wrong_at = pos
            elif not known:
                # Where the next one would begin is not known.
                pos = end
            if wide >= 0:
                # It can be stepped over, and came before anything that cannot.
                wrong = _WIDE
                wrong_at = wide
            first[i + 1] = run
            ended[i] = how
            fault[i] = wrong
            at[i] = wrong_at
            state[0] = i + 1
            state[1] = pos
            state[2] = run
    return 0
