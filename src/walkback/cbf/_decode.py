"""Compact backtraces to columns (compiled); `decoding.py` is its face.

One pass over the bytes, which stops where the columns are full and goes on when they are larger. A run is a frame and
how often it repeats.
"""

import cython

from walkback.base.bits import WORD
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.cbf import layout
    from cython.cimports.walkback.cbf.layout import BacktraceFault, Ended, FrameCode
else:
    from walkback.cbf import layout
    from walkback.cbf.layout import BacktraceFault, Ended, FrameCode

_WORD = cython.declare(cython.ulonglong, WORD)

FULL = 1
"""Why `read` stopped: there is no room for one more run."""
_FULL = cython.declare(cython.int, FULL)


@cython.final
@cython.cclass
class _Progress:
    """How far reading came in one backtrace, and what was found there."""

    pos: cython.Py_ssize_t
    run: cython.Py_ssize_t
    ended: cython.int
    fault: cython.int
    wide: cython.Py_ssize_t
    """The first operand that is wider than a word; -1 if there is none."""


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
def _count(
    data: cython.const[cython.uchar][::1],
    pos: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    inline: cython.uint,
) -> cython.ulonglong:
    """The count that an instruction has: its operand (the last 8 bytes of a wider one), or `inline` without one."""
    size -= 1
    if size == 0:
        return 1 + inline
    return _operand(data, pos + 1, size, end) >> (64 - 8 * (size if size < 8 else 8))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _address(
    data: cython.const[cython.uchar][::1],
    pos: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    before: cython.ulonglong,
) -> cython.ulonglong:
    """An address that the operand of an instruction says as the difference from the one before."""
    raw: cython.ulonglong
    if pos < data.shape[0] - 8:
        # All 8 bytes at once: quicker than to ask how many there are.
        with cython.boundscheck(False):
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
    sign: cython.ulonglong = (0 - (raw >> 63)) & _WORD
    return (before + (((raw ^ sign) >> (72 - 8 * size)) ^ sign)) & _WORD


@takes_views
def read(
    data: cython.const[cython.uchar][::1],
    offsets: cython.longlong[::1],
    known: cython.bint,
    state: cython.longlong[::1],
    word: cython.uchar[::1],
    first: cython.longlong[::1],
    ended: cython.uchar[::1],
    fault: cython.uchar[::1],
    at: cython.longlong[::1],
    filling: cython.bint,
    kind: cython.uchar[::1],
    value: cython.ulonglong[::1],
    times: cython.ulonglong[::1],
):
    """Read backtraces, from number `state[0]` on, from place `state[1]` on, and into runs from `state[2]` on.

    With `known`, backtrace i is from `offsets[i]` up to `offsets[i + 1]`; else each begins where the one before ended,
    and `offsets` is filled. Fills for each the bits of a word, where its runs begin, an `Ended`, a `Fault` and the
    place of that; and with `filling` the runs. Returns 0 when the data ends or `word` is full, or `FULL`; `state` then
    says how far it came, in whole backtraces.
    """
    i: cython.Py_ssize_t
    end: cython.Py_ssize_t = data.shape[0]
    status: cython.int = 0
    here = _Progress()
    here.pos = state[1]
    here.run = state[2]
    with cython.nogil:
        for i in range(state[0], word.shape[0]):
            if known:
                here.pos = offsets[i]
                end = offsets[i + 1]
                if here.pos < 0 or end < here.pos or end > data.shape[0]:
                    here.pos = end = 0
            elif here.pos >= end:
                break
            else:
                offsets[i] = here.pos
            first[i] = here.run
            word[i] = _read_word(here, data, end)
            if here.fault == BacktraceFault.NONE and _read_runs(
                here, data, end, word[i] >> 3, filling, kind, value, times
            ):
                status = _FULL
                break
            at[i] = _finish(here, end, known)
            first[i + 1] = here.run
            ended[i] = here.ended
            fault[i] = here.fault
            state[0] = i + 1
            state[1] = here.pos
            state[2] = here.run
    return status


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(0, check=False)
def _read_word(here: _Progress, data: cython.const[cython.uchar][::1], end: cython.Py_ssize_t) -> cython.uchar:
    """Begin a backtrace with its information byte: the bits of a word, as many as there can be if it is wrong."""
    here.ended = Ended.DATA
    here.wide = -1
    here.fault = _information_fault(data, here.pos, end)
    if here.fault != BacktraceFault.NONE:
        return layout.LARGEST_WORD
    here.pos += 1
    return layout.SMALLEST_WORD << data[here.pos - 1]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _finish(here: _Progress, end: cython.Py_ssize_t, known: cython.bint) -> cython.Py_ssize_t:
    """Go behind a backtrace, and settle what is wrong with it; returns the place of that."""
    wrong_at: cython.Py_ssize_t = here.pos
    if here.ended:
        here.pos += 1
        if known and here.pos < end:
            here.fault = BacktraceFault.TRAILING
            wrong_at = here.pos
    elif not known:
        # Where the next one would begin is not known.
        here.pos = end
    if here.wide >= 0:
        # It can be stepped over, and came before anything that cannot.
        here.fault = BacktraceFault.WIDE
        wrong_at = here.wide
    return wrong_at


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _information_fault(
    data: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.int:
    """What is wrong with the information byte that stands here."""
    if pos >= end:
        return BacktraceFault.EMPTY
    if data[pos] >> layout.VERSION_SHIFT:
        return BacktraceFault.VERSION
    return BacktraceFault.SIZE if data[pos] == layout.RESERVED_SIZE else BacktraceFault.NONE


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _stop(here: _Progress, code: cython.uint) -> cython.void:
    """Note why a backtrace does not go on: this instruction ends it, has nothing to repeat, or is reserved."""
    if code <= layout.OP_TRUNC:
        here.ended = Ended.END + code - layout.OP_END
    elif layout.OP_REP <= code < layout.FIRST_RESERVED:
        here.fault = BacktraceFault.REPEAT
    else:
        here.fault = BacktraceFault.RESERVED


@cython.cfunc
@cython.nogil
@cython.boundscheck(False)  # the place is before `end`, which is in the data, and the run before `room`
@cython.exceptval(check=False)
def _read_runs(
    here: _Progress,
    data: cython.const[cython.uchar][::1],
    end: cython.Py_ssize_t,
    width: cython.Py_ssize_t,
    filling: cython.bint,
    kind: cython.uchar[::1],
    value: cython.ulonglong[::1],
    times: cython.ulonglong[::1],
) -> cython.int:
    """Read the instructions of one backtrace, whose words have `width` bytes; returns 0 or `FULL`."""
    pos: cython.Py_ssize_t = here.pos
    run: cython.Py_ssize_t = here.run
    room: cython.Py_ssize_t = min(kind.shape[0], value.shape[0], times.shape[0])
    mask: cython.ulonglong = _WORD >> (64 - 8 * width)
    address: cython.ulonglong = 0
    any_frame: cython.bint = False
    while pos < end:
        code: cython.uint = data[pos]
        size: cython.Py_ssize_t = 1
        if layout.FIRST_ADDRESS <= code < layout.OP_REP:
            if code < layout.OP_OMIT:
                size = 2 + (code & layout.ADDRESS_COUNT)
            elif code & layout.OMIT_EXTERNAL:
                size = 2 + (code & layout.OMIT_COUNT)
            if size > end - pos:
                here.fault = BacktraceFault.SHORT
                break
            any_frame = True
            if filling:
                if run >= room:
                    return _FULL
                times[run] = 1
                if code < layout.OP_OMIT:
                    address = _address(data, pos, size, end, 0 if code & layout.ABSOLUTE else address)
                    kind[run] = code >> layout.KIND_SHIFT
                    value[run] = address & mask
                else:
                    kind[run] = FrameCode.OMIT
                    value[run] = _count(data, pos, size, end, code & layout.OMIT_COUNT)
                run += 1
        elif layout.OP_REP <= code < layout.FIRST_RESERVED and any_frame:
            if code & layout.REP_EXTERNAL:
                size = 2 + (code & layout.REP_COUNT)
            if size > end - pos:
                here.fault = BacktraceFault.SHORT
                break
            if filling:
                run = _repeat(kind, value, times, run, room, _count(data, pos, size, end, code & layout.REP_COUNT))
                if run < 0:
                    return _FULL
        else:
            _stop(here, code)
            break
        if size > 1 + width and here.wide < 0:
            here.wide = pos
        pos += size
    here.pos = pos
    here.run = run
    return 0


@cython.cfunc
@cython.nogil
@cython.boundscheck(False)
@cython.exceptval(check=False)
def _repeat(
    kind: cython.uchar[::1],
    value: cython.ulonglong[::1],
    times: cython.ulonglong[::1],
    run: cython.Py_ssize_t,
    room: cython.Py_ssize_t,
    more: cython.ulonglong,
) -> cython.Py_ssize_t:
    """Repeat the frame of the run before `run`; returns the next free run, or -1 if there is no room."""
    if times[run - 1] <= _WORD - more:
        times[run - 1] += more
        return run
    if run >= room:
        return -1
    # The sum does not fit into one run: the new frames get a second one.
    kind[run] = kind[run - 1]
    value[run] = value[run - 1]
    times[run] = more
    return run + 1
