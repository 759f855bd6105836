"""Brings records into the order of their times.

Each processor of the recorded machine had a buffer of its own, which perf emptied in turn. After each round it says so,
and then nothing comes any more that is older than what came before the round. So after each round what is as old as
that can be delivered, in the order of time; at the end, all.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I32, I64, U16, U32, U64, concatenated
from walkback.base.dataclass import dataclass
from walkback.capture.perfdata.source import RecordChunk

_ROW = 48
"""Bytes that a waiting record takes, beside its buffer."""


@dataclass(slots=True)
class Records:
    """Records, wherever they stand."""

    kind: U32
    misc: U16
    offset: I64
    size: I64
    event: I32
    time: U64
    buffer: I32
    """The number of the buffer that holds each."""

    def __len__(self) -> int:
        return len(self.kind)

    def buffers(self) -> list[int]:
        """The numbers of the buffers that hold them."""
        if not len(self):
            return []
        lowest = self.buffer.min()
        found: list[int] = (np.flatnonzero(np.bincount(self.buffer - lowest)) + lowest).tolist()
        return found

    def __getitem__(self, which: I64 | slice) -> Records:
        return Records(*(getattr(self, name)[which] for name in _COLUMNS))


_COLUMNS = ("kind", "misc", "offset", "size", "event", "time", "buffer")


class Waiting:
    """Records that are not delivered yet, and the buffers that hold them."""

    def __init__(self, bound: int) -> None:
        """`bound` is how many bytes may wait; beyond it the oldest records go, whatever may come."""
        self.early = 0
        """How often that was."""
        self.buffers: dict[int, RecordChunk] = {}
        self._bound = bound
        self._rows: list[Records] = []
        self._latest = 0
        self._limit = 0
        self._oldest = 2**64
        self._count = 0
        self._bytes = 0
        self._next = 0

    def add_buffer(self, piece: RecordChunk) -> int:
        """A number for a piece's buffer; several pieces can be in one, also with those of other files between them."""
        for number, held in self.buffers.items():
            if held.data is piece.data:
                return number
        self.buffers[self._next] = piece
        self._bytes += len(piece.data) if piece.owned else 0
        self._next += 1
        return self._next - 1

    def add(self, rows: Records) -> None:
        """Records of one round."""
        if not len(rows):
            return
        self._rows.append(rows)
        self._count += len(rows)
        self._latest = max(self._latest, int(rows.time.max()))
        self._oldest = min(self._oldest, int(rows.time.min()))

    def end_round(self) -> Records | None:
        """What can be delivered after a round."""
        ready = self._until(self._limit)
        self._limit = self._latest
        return ready

    def pass_round(self) -> None:
        """A round ends, and another one will before anything is delivered."""
        self._limit = self._latest

    def make_room(self) -> Records | None:
        """What has to be delivered so that not too much waits, and what has no time, which never waits."""
        if self._count * _ROW + self._bytes > self._bound:
            self._let_go()
        if self._count * _ROW + self._bytes > self._bound:
            self.early += 1
            times = np.concatenate([rows.time for rows in self._rows])
            return self._until(int(np.partition(times, len(times) // 2)[len(times) // 2]))
        return self._until(0)

    def _let_go(self) -> None:
        """Keep what can be read again in its file alone, but for the last, which is not done yet."""
        for number, piece in self.buffers.items():
            if piece.owned and piece.file is not None and number != self._next - 1:
                self._bytes -= len(piece.data)
                piece.let_go()

    def end(self) -> Records | None:
        """All that waits."""
        return self._until(2**64 - 1)

    def _until(self, limit: int) -> Records | None:
        if self._oldest > limit:
            return None
        rows = self._rows[0] if len(self._rows) == 1 else concatenated(self._rows)
        ready = rows.time <= np.uint64(limit)
        chosen = np.flatnonzero(ready)
        found = rows[chosen[np.argsort(rows.time[chosen], kind="stable")]]
        rest = rows[np.flatnonzero(~ready)]
        self._rows = [rest] if len(rest) else []
        self._count = len(rest)
        self._oldest = int(rest.time.min()) if len(rest) else 2**64
        return found

    def forget(self) -> None:
        """Let go of the buffers in which nothing waits any more, but for the last."""
        if len(self.buffers) < 2:
            return
        used = {number for rows in self._rows for number in rows.buffers()}
        for number in [number for number in self.buffers if number not in used and number != self._next - 1]:
            piece = self.buffers.pop(number)
            self._bytes -= len(piece.data) if piece.owned else 0
