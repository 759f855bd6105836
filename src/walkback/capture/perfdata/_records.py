"""Goes from record to record, and finds each one's event and time (compiled).

Records have sizes and no index, so all that follows rests on this pass: it reads the header of each record and not
the records.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.cursor import swapped
    from cython.cimports.walkback.capture.perfdata import layout
    from cython.cimports.walkback.capture.perfdata.layout import ScanEnd
else:
    from walkback.base.cursor import swapped
    from walkback.capture.perfdata import layout
    from walkback.capture.perfdata.layout import ScanEnd

_NO_TIME = cython.declare(cython.ulonglong, WORD)
_FARTHEST = cython.declare(cython.ulonglong, 0x3FFFFFFFFFFFFFFF)


def scan(data, position, end, big, most):
    """The records between two positions, `most` at the most.

    Comes back as (types, miscs, offsets, sizes, position after them, the `ScanEnd` there). The position is beyond the
    end where the last record has more data behind it than there is.
    """
    most = min(most, max(end - position, 0) // layout.RECORD_HEADER + 1)
    kind = np.empty(most, np.uint32)
    misc = np.empty(most, np.uint16)
    offset = np.empty(most, np.int64)
    size = np.empty(most, np.int64)
    state = np.array([position, 0], np.int64)
    count = _scan(data, end, big, kind, misc, offset, size, state)
    return kind[:count], misc[:count], offset[:count], size[:count], int(state[0]), int(state[1])


@takes_views
def _scan(
    data: cython.const[cython.uchar][::1],
    end: cython.longlong,
    big: cython.bint,
    kind: cython.uint[::1],
    misc: cython.ushort[::1],
    offset: cython.longlong[::1],
    size: cython.longlong[::1],
    state: cython.longlong[::1],
):
    count: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = state[0]
    which: cython.uint
    length: cython.uint
    word: cython.ulonglong
    status: cython.int = ScanEnd.WHOLE
    with cython.nogil:
        while count < kind.shape[0] and at < end:
            if end - at < layout.RECORD_HEADER:
                status = ScanEnd.CUT
                break
            which = cython.cast(cython.uint, _number(data, at, 4, big))
            length = cython.cast(cython.uint, _number(data, at + layout.RECORD_SIZE_AT, 2, big))
            if length < layout.RECORD_HEADER:
                status = ScanEnd.BAD
                break
            if length > end - at:
                status = ScanEnd.CUT
                break
            kind[count] = which
            misc[count] = cython.cast(cython.ushort, _number(data, at + layout.RECORD_MISC_AT, 2, big))
            offset[count] = at
            size[count] = length
            count += 1
            word = 0
            if which == layout.AUXTRACE and length >= layout.RECORD_HEADER + 8:
                word = _number(data, at + layout.RECORD_HEADER, 8, big)
            elif which == layout.HEADER_TRACING_DATA and length >= layout.RECORD_HEADER + 4:
                word = _number(data, at + layout.RECORD_HEADER, 4, big)
            at += length
            if word:
                if word > _FARTHEST or at > cython.cast(cython.longlong, _FARTHEST - word):
                    status = ScanEnd.CUT
                    at = cython.cast(cython.Py_ssize_t, _FARTHEST)
                    break
                at += cython.cast(cython.Py_ssize_t, word)
        state[0] = at
        state[1] = status
    return count


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=True)
def _number(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.int, big: cython.bint
) -> cython.ulonglong:
    """A number of some bytes."""
    i: cython.int
    value: cython.ulonglong = 0
    for i in range(size):
        value |= cython.cast(cython.ulonglong, data[at + i]) << ((size - 1 - i if big else i) * 8)
    return value


def identify(words, big, kind, offset, size, ids, event_of_id, id_at, id_back, time_at, time_back):
    """The event and the time of each record; event -1 for an ID that no event has, time 0 where none is recorded.

    `ids` rise; without any all records are of event 0. `id_at` says where samples have their ID, in words from the
    record's start, and `id_back` where other records have it, in words from its end; 0 for nowhere. `time_at` and
    `time_back` say the same of the time for each event.
    """
    event = np.empty(len(kind), np.int32)
    time = np.empty(len(kind), np.uint64)
    _identify(words, big, kind, offset, size, ids, event_of_id, id_at, id_back, time_at, time_back, event, time)
    return event, time


@takes_views
def _identify(
    words: cython.const[cython.ulonglong][::1],
    big: cython.bint,
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
):
    i: cython.Py_ssize_t
    first: cython.Py_ssize_t
    length: cython.Py_ssize_t
    place: cython.Py_ssize_t
    which: cython.int
    word: cython.ulonglong
    with cython.nogil:
        for i in range(kind.shape[0]):
            event[i] = 0
            time[i] = 0
            if kind[i] >= layout.USER_RECORDS:
                continue
            first = offset[i] >> 3
            length = size[i] >> 3
            which = 0
            if ids.shape[0]:
                place = id_at if kind[i] == layout.SAMPLE else (length - id_back if id_back else 0)
                if 0 < place < length:
                    word = words[first + place]
                    which = _event(swapped(word) if big else word, kind[i] == layout.SAMPLE, ids, event_of_id)
            event[i] = which
            if which < 0:
                continue
            if kind[i] == layout.SAMPLE:
                place = time_at[which]
            else:
                place = length - time_back[which] if time_back[which] else 0
            if 0 < place < length:
                word = words[first + place]
                if big:
                    word = swapped(word)
                # perf takes the highest number as no time as well.
                time[i] = word if word != _NO_TIME else 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-2, check=False)
def _event(
    wanted: cython.ulonglong,
    is_sample: cython.bint,
    ids: cython.const[cython.ulonglong][::1],
    event_of_id: cython.const[cython.int][::1],
) -> cython.int:
    """The event of an ID; -1 for a sample with one that no event has. What perf made up itself has ID 0."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = ids.shape[0]
    middle: cython.Py_ssize_t
    if not wanted:
        return 0
    while low < high:
        middle = (low + high) >> 1
        if ids[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < ids.shape[0] and ids[low] == wanted:
        return event_of_id[low]
    return -1 if is_sample else 0


@takes_views
def gather(
    data: cython.const[cython.ulonglong][::1],
    offset: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    target: cython.ulonglong[::1],
):
    """Copy pieces of a buffer, each to its place in another."""
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
