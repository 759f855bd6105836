"""How long threads were away from a processor: the sample where each left, with the time until it came back.

The kernel samples a thread that leaves, and records that it comes back. The two are put together here: the time between
them becomes the period of the sample, which is held back until then. What leaves for good is not away: a thread that
has ended. Neither is the idle task, whose number the kernel also gives to what has none.
"""

from __future__ import annotations

import sys

import numpy as np

from walkback.base.arrays import I64, U64
from walkback.capture.perfdata import layout
from walkback.capture.recorder.scanning import Rows, scanned

_SAMPLE_TID, _SAMPLE_TIME, _SAMPLE_PERIOD = 2, 3, 5
"""Where samples have these, in words: behind them are the header and the address."""
_SWITCH_TID, _SWITCH_TIME = 1, 2
_WIDE_TID, _WIDE_TIME = 2, 3
"""The same of the whole machine's switches."""
_EXIT_TID, _EXIT_TIME = 2, 3
_NOBODY = (0, 2**32 - 1)
"""The idle task, or one that cannot be seen from here, and one that has no number any more."""
_TID_SHIFT = np.uint64(32 if sys.byteorder == "little" else 0)
"""The thread is the second half of its word."""
_MOST_HELD = 256 << 20


class Away:
    """Takes records as they come, and gives them back with the samples whose threads have come back."""

    def __init__(self) -> None:
        self._held = bytearray()
        self.given_up = 0
        """Samples that were given up because too many threads are away."""

    def take(self, data: bytearray, until: int | None = None) -> bytearray:
        """Take in records; with `until` all samples are given back, as if their threads came back then."""
        whole = self._held + data
        if not whole:
            return whole
        kind, misc, offset, size = _at_once(whole)
        words = np.frombuffer(whole, np.uint64)
        samples, exits, wide = (kind == one for one in (layout.SAMPLE, layout.EXIT, layout.SWITCH_CPU_WIDE))
        switches = wide | (kind == layout.SWITCH)
        back = switches & (misc & layout.MISC_SWITCH_OUT == 0)
        rows = np.flatnonzero(samples | back | exits)
        left, ended, first = samples[rows], exits[rows], offset[rows] >> 3
        which = [left, ended, wide[rows]]
        tid_at = first + np.select(which, (_SAMPLE_TID, _EXIT_TID, _WIDE_TID), _SWITCH_TID)
        time_at = first + np.select(which, (_SAMPLE_TIME, _EXIT_TIME, _WIDE_TIME), _SWITCH_TIME)
        # The thread that has ended is the first half of its word; the other half is who has started it.
        shift = np.where(ended, np.uint64(32) - _TID_SHIFT, _TID_SHIFT)
        tid, time = words[tid_at] >> shift & np.uint64(2**32 - 1), words[time_at]
        order = np.lexsort((time, tid))
        rows, left, ended, tid, time = rows[order], left[order], ended[order], tid[order], time[order]
        is_over = np.maximum.accumulate(np.where(ended, tid + np.uint64(1), np.uint64(0))) == tid + np.uint64(1)
        counts = ~is_over & ~np.isin(tid, _NOBODY)
        follows = np.zeros(len(rows), np.bool_)
        follows[:-1] = tid[1:] == tid[:-1]
        paired = left & counts & follows & ~np.append((left | ended)[1:], True)
        returned = np.append(time[1:], np.uint64(0))
        if until is not None:
            last = left & counts & ~follows
            returned[last] = max(until, int(time.max(initial=0)))
            paired |= last
        _write_periods(whole, offset[rows[paired]], returned[paired] - time[paired])
        given = ~(samples | switches)
        given[offset < len(self._held)] = False
        given[rows[paired]] = True
        # The last sample of a thread may come later than its end, which is known until the next time.
        waiting = (counts & ~follows & ~paired) | (ended & (offset[rows] >= len(self._held)))
        self._hold(whole, offset, size, np.sort(rows[waiting]))
        return _joined(whole, offset, size, np.flatnonzero(given))

    def _hold(self, whole: bytearray, offset: I64, size: I64, rows: I64) -> None:
        """Keep these for later; the latest, if they are too many."""
        kept = np.cumsum(size[rows][::-1])[::-1] <= _MOST_HELD
        self.given_up += int((~kept).sum())
        self._held = _joined(whole, offset, size, rows[kept])


def _at_once(data: bytearray) -> Rows:
    """All records."""
    return Rows(*(np.concatenate(columns) for columns in zip(*scanned(data), strict=True)))


def _write_periods(data: bytearray, offset: I64, period: U64) -> None:
    words = np.frombuffer(data, np.uint64)
    words[(offset >> 3) + _SAMPLE_PERIOD] = period


def _joined(data: bytearray, offset: I64, size: I64, rows: I64) -> bytearray:
    view = memoryview(data)
    return bytearray().join(
        view[begin : begin + count] for begin, count in zip(offset[rows].tolist(), size[rows].tolist(), strict=True)
    )
