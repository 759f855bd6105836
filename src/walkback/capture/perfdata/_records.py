"""Goes from record to record, and finds each one's event and time (compiled).

Records have sizes and no index, so all that follows rests on this pass: it reads the header of each record and not
the records.
"""

import cython
import numpy as np

WHOLE = 0
CUT = 1
BAD = 2

_BYTES = cython.declare(cython.ulonglong, 0x00FF00FF00FF00FF)
_PAIRS = cython.declare(cython.ulonglong, 0x0000FFFF0000FFFF)
_LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_AUXTRACE = cython.declare(cython.uint, 71)
_TRACING_DATA = cython.declare(cython.uint, 66)
_SAMPLE = cython.declare(cython.uint, 9)
_USER_RECORDS = cython.declare(cython.uint, 64)
_NO_TIME = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_FARTHEST = cython.declare(cython.ulonglong, 0x3FFFFFFFFFFFFFFF)


def scan(data, position, end, big, most):
    """The records between two positions, `most` at the most.

    Comes back as (types, miscs, offsets, sizes, position after them, `WHOLE`, `CUT` or `BAD`): what stands at that
    position is a record or nothing, less than a record, or something whose size is none. The position is beyond the
    end where the last record has more data behind it than there is.
    """
    kind = np.empty(most, np.uint32)
    misc = np.empty(most, np.uint16)
    offset = np.empty(most, np.int64)
    size = np.empty(most, np.int64)
    state = np.array([position, WHOLE], np.int64)
    count = _scan(
        memoryview(data),
        end,
        1 if big else 0,
        memoryview(kind),
        memoryview(misc),
        memoryview(offset),
        memoryview(size),
        memoryview(state),
    )
    return kind[:count], misc[:count], offset[:count], size[:count], int(state[0]), int(state[1])


@cython.cfunc
def _scan(
    data: cython.const[cython.uchar][::1],
    end: cython.longlong,
    big: cython.int,
    kind: cython.uint[::1],
    misc: cython.ushort[::1],
    offset: cython.longlong[::1],
    size: cython.longlong[::1],
    state: cython.longlong[::1],
) -> cython.Py_ssize_t:
    count: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = state[0]
    i: cython.Py_ssize_t
    which: cython.uint
    more: cython.uint
    length: cython.uint
    word: cython.ulonglong
    status: cython.int = 0
    with cython.nogil:
        while count < kind.shape[0] and at < end:
            if end - at < 8:
                status = 1
                break
            if big:
                which = (
                    (cython.cast(cython.uint, data[at]) << 24)
                    | (cython.cast(cython.uint, data[at + 1]) << 16)
                    | (cython.cast(cython.uint, data[at + 2]) << 8)
                    | data[at + 3]
                )
                more = (cython.cast(cython.uint, data[at + 4]) << 8) | data[at + 5]
                length = (cython.cast(cython.uint, data[at + 6]) << 8) | data[at + 7]
            else:
                which = (
                    (cython.cast(cython.uint, data[at + 3]) << 24)
                    | (cython.cast(cython.uint, data[at + 2]) << 16)
                    | (cython.cast(cython.uint, data[at + 1]) << 8)
                    | data[at]
                )
                more = (cython.cast(cython.uint, data[at + 5]) << 8) | data[at + 4]
                length = (cython.cast(cython.uint, data[at + 7]) << 8) | data[at + 6]
            if length < 8:
                status = 2
                break
            if length > end - at:
                status = 1
                break
            kind[count] = which
            misc[count] = cython.cast(cython.ushort, more)
            offset[count] = at
            size[count] = length
            count += 1
            word = 0
            if which == _AUXTRACE and length >= 16:
                for i in range(8):
                    word |= cython.cast(cython.ulonglong, data[at + 8 + i]) << ((7 - i if big else i) * 8)
            elif which == _TRACING_DATA and length >= 12:
                for i in range(4):
                    word |= cython.cast(cython.ulonglong, data[at + 8 + i]) << ((3 - i if big else i) * 8)
            at += length
            if word:
                if word > _FARTHEST or at > cython.cast(cython.longlong, _FARTHEST - word):
                    status = 1
                    at = cython.cast(cython.Py_ssize_t, _FARTHEST)
                    break
                at += cython.cast(cython.Py_ssize_t, word)
        state[0] = at
        state[1] = status
    return count


def identify(words, big, kind, offset, size, ids, event_of_id, id_at, id_back, time_at, time_back):
    """The event and the time of each record; event -1 for an ID that no event has, time 0 where none is recorded.

    `ids` rise; without any all records are of event 0. `id_at` tells where samples have their ID, in words from the
    record's start, and `id_back` where other records have it, in words from its end; 0 for nowhere. `time_at` and
    `time_back` tell the same of the time for each event.
    """
    event = np.empty(len(kind), np.int32)
    time = np.empty(len(kind), np.uint64)
    _identify(
        memoryview(words),
        1 if big else 0,
        memoryview(kind),
        memoryview(offset),
        memoryview(size),
        memoryview(ids),
        memoryview(event_of_id),
        id_at,
        id_back,
        memoryview(time_at),
        memoryview(time_back),
        memoryview(event),
        memoryview(time),
    )
    return event, time


@cython.cfunc
def _identify(
    words: cython.const[cython.ulonglong][::1],
    big: cython.int,
    kind: cython.const[cython.uint][::1],
    offset: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    ids: cython.const[cython.ulonglong][::1],
    event_of_id: cython.const[cython.int][::1],
    id_at: cython.Py_ssize_t,
    id_back: cython.Py_ssize_t,
    time_at: cython.const[cython.longlong][::1],
    time_back: cython.const[cython.longlong][::1],
    event: cython.int[::1],
    time: cython.ulonglong[::1],
) -> cython.int:
    i: cython.Py_ssize_t
    first: cython.Py_ssize_t
    length: cython.Py_ssize_t
    place: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    which: cython.int
    wanted: cython.ulonglong
    with cython.nogil:
        for i in range(kind.shape[0]):
            event[i] = 0
            time[i] = 0
            if kind[i] >= _USER_RECORDS:
                continue
            first = offset[i] >> 3
            length = size[i] >> 3
            which = 0
            if ids.shape[0]:
                place = id_at if kind[i] == _SAMPLE else (length - id_back if id_back else 0)
                if 0 < place < length:
                    wanted = words[first + place]
                    if big:
                        wanted = _swapped(wanted)
                    # What perf made up itself has ID 0.
                    if wanted:
                        low = 0
                        high = ids.shape[0]
                        while low < high:
                            middle = (low + high) >> 1
                            if ids[middle] < wanted:
                                low = middle + 1
                            else:
                                high = middle
                        if low < ids.shape[0] and ids[low] == wanted:
                            which = event_of_id[low]
                        elif kind[i] == _SAMPLE:
                            which = -1
            event[i] = which
            if which < 0:
                continue
            if kind[i] == _SAMPLE:
                place = time_at[which]
            else:
                place = length - time_back[which] if time_back[which] else 0
            if 0 < place < length:
                wanted = words[first + place]
                if big:
                    wanted = _swapped(wanted)
                # perf takes the highest number as no time as well.
                time[i] = wanted if wanted != _NO_TIME else 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _swapped(value: cython.ulonglong) -> cython.ulonglong:
    value = ((value & _BYTES) << 8) | ((value >> 8) & _BYTES)
    value = ((value & _PAIRS) << 16) | ((value >> 16) & _PAIRS)
    return ((value & _LOW) << 32) | (value >> 32)


def gather(data, offset, size, start, target):
    """Copy pieces of a buffer, each to its place in another."""
    _gather(memoryview(data), memoryview(offset), memoryview(size), memoryview(start), memoryview(target))


@cython.cfunc
def _gather(
    data: cython.const[cython.ulonglong][::1],
    offset: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    target: cython.ulonglong[::1],
) -> cython.int:
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    origin: cython.Py_ssize_t
    place: cython.Py_ssize_t
    with cython.nogil:
        for i in range(offset.shape[0]):
            origin = offset[i] >> 3
            place = start[i] >> 3
            for k in range((size[i] + 7) >> 3):
                target[place + k] = data[origin + k]
    return 0
