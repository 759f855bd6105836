"""Reading the Compact Backtrace Format, version 0.

Strict, it takes what the document allows and raises where that is broken first. Lenient, it keeps what comes before, as
Swift's reader does, and calls such a backtrace truncated; `fault` and `at` say what was wrong.

The first address of a backtrace may be relative, which the document forbids and Swift writes, and the data may end
without `end`; `instructions.py` notes both.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U8, Numbers, longer
from walkback.base.errors import ArgumentError
from walkback.cbf import _decode
from walkback.cbf.backtraces import Backtrace, Backtraces
from walkback.cbf.layout import BacktraceFault, Ended

Data = bytes | bytearray | memoryview | U8

_SMALLEST_ROOM = 1024
_NOT_BEGUN = (BacktraceFault.EMPTY, BacktraceFault.VERSION, BacktraceFault.SIZE)


def decode(data: Data, *, lenient: bool = False) -> Backtrace:
    """The one backtrace that the data is; raises BacktraceError.

    >>> list(walkback.cbf.decode(bytes.fromhex("021a40104600")))
    [(<FrameCode.PC: 1>, 4198470)]
    """
    return decode_all(data, np.array([0, len(data)], np.int64), lenient=lenient)[0]


def decode_all(data: Data, offsets: Numbers | None = None, *, lenient: bool = False) -> Backtraces:
    """Backtraces that stand one after the other; raises BacktraceError.

    Backtrace i is from `offsets[i]` up to `offsets[i + 1]`. Without offsets each has to end with `end` or `trunc`, but
    the last may do without; then what is behind one that cannot be read is not looked at.

    >>> walkback.cbf.decode_all(bytes.fromhex("021a40104600021a40104600")).frame_counts().tolist()
    [1, 1]
    """
    found = _Read(as_array(data), offsets)
    found.run(filling=True)
    if not lenient:
        _raise_first(found.fault, found.at)
    truncated = found.ended == Ended.TRUNC
    if lenient:
        truncated |= (found.ended == Ended.DATA) & ~np.isin(found.fault, _NOT_BEGUN)
    return Backtraces(found.first, found.kind, found.value, found.times, truncated, found.word, found.fault, found.at)


def split(data: Data) -> I64:
    """Where each backtrace of a stream begins and the last ends, found without decoding anything.

    It is one place more than there are backtraces. Raises BacktraceError where an instruction cannot be stepped over.

    >>> walkback.cbf.split(bytes.fromhex("021a40104600021a40104600")).tolist()
    [0, 6, 12]
    """
    found = _Read(as_array(data), None)
    found.run(filling=False)
    _raise_first(found.fault, found.at)
    return found.offsets


def as_array(data: Data) -> U8:
    """The bytes, not copied if they stand together."""
    return np.ascontiguousarray(data, np.uint8) if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)


class _Read:
    """The columns that are filled; all grow as they have to, because what the data claims is not to be trusted."""

    def __init__(self, source: U8, offsets: Numbers | None) -> None:
        self._source = source
        self._state = np.zeros(3, np.int64)
        self._known = offsets is not None
        if offsets is None:
            # A backtrace of a program has some dozen bytes at least.
            count = max(_SMALLEST_ROOM, len(source) // 32)
            self.offsets: I64 = np.empty(count + 1, np.int64)
        else:
            self.offsets = np.array(offsets, np.int64)  # a copy, which may be written to
            if not len(self.offsets) or (np.diff(self.offsets, prepend=0, append=len(source)) < 0).any():
                raise ArgumentError("offsets of backtraces must rise, from 0 on, to at most the size of the data")
            count = len(self.offsets) - 1
        self.first = np.zeros(count + 1, np.int64)
        self.word = np.empty(count, np.uint8)
        self.ended = np.empty(count, np.uint8)
        self.fault = np.empty(count, np.uint8)
        self.at = np.empty(count, np.int64)
        self.kind = np.empty(0, np.uint8)
        self.value = np.empty(0, np.uint64)
        self.times = np.empty(0, np.uint64)

    def run(self, *, filling: bool) -> None:
        """Go through all of the data; with `filling` runs are made."""
        if filling:
            # Frames of programs take some 4 bytes.
            self._more_runs(max(_SMALLEST_ROOM, len(self._source) // 3))
        while self._goes_on(filling=filling):
            pass
        if not self._known:
            self._resize(int(self._state[0]))
            self.offsets[-1] = self._state[1]
        for column in (self.kind, self.value, self.times):
            column.resize(int(self._state[2]), refcheck=False)

    def _goes_on(self, *, filling: bool) -> bool:
        """Read until some column is full, and make it larger."""
        full = _decode.read(
            self._source, self.offsets, self._known, self._state, self.word, self.first, self.ended, self.fault,
            self.at, filling, self.kind, self.value, self.times,
        )  # fmt: skip
        if full:
            self._more_runs(2 * len(self.kind))
            return True
        if self._known or self._state[1] >= len(self._source):
            return False
        self._resize(2 * len(self.word))
        return True

    def _resize(self, count: int) -> None:
        self.offsets.resize(count + 1, refcheck=False)
        self.first.resize(count + 1, refcheck=False)
        for column in (self.word, self.ended, self.fault, self.at):
            column.resize(count, refcheck=False)

    def _more_runs(self, room: int) -> None:
        # A new array, which the system gives in large pages: half of the time went into getting small ones.
        self.kind, self.value, self.times = (longer(one, room) for one in (self.kind, self.value, self.times))


def _raise_first(fault: U8, at: I64) -> None:
    if fault.any():
        number = int((fault != 0).argmax())
        raise BacktraceFault(int(fault[number])).at(int(at[number])).error()
