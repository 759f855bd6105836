"""The records of a recording in pieces, wherever they come from: a file, a pipe, compressed records.

A piece has whole records only, at multiples of 8 bytes, so that what reads them can take words. Those of a plain file
can be read again, so where many wait they need not be kept.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import I64, U16, U32
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.capture.perfdata import layout
from walkback.capture.perfdata._records import scan
from walkback.capture.perfdata.ahead import ReadAhead
from walkback.capture.perfdata.zstd import BrokenStreamError, ZstdStream
from walkback.elf import OpenFile

_ROWS = 1 << 16
_CHUNK = 4 << 20
_FILE_CHUNK = 10 << 20
"""Of a file, whose pieces need not come soon: many samples at once are walked sooner than few. Three are in memory: the
one that is walked, the one before it, whose last samples may wait for it, and the one that is read ahead."""
_LARGEST_PART = 128 << 20
"""Bytes that one compressed record, of 64 KiB at most, may come to."""
_RATIO = 5000
"""Stacks are mostly alike, and 400:1 was seen. zstd can do 32768:1."""


@dataclass(slots=True)
class RecordChunk:
    """Some records that stand in one buffer."""

    data: memoryview
    kind: U32
    misc: U16
    offset: I64
    size: I64
    owned: bool
    """Whether the buffer was made for these records, and takes memory as long as it is held."""
    file: OpenFile | None = None
    """Where the buffer can be read again, from `place` on."""
    place: int = 0

    def let_go(self) -> None:
        """Keep the records in the file alone."""
        if self.file is not None:
            self.data, self.owned = memoryview(b""), False

    def record(self, offset: int, size: int) -> memoryview:
        """The bytes of a record."""
        if self.file is not None and not self.owned:
            return self.file[self.place + offset : self.place + offset + size]
        return self.data[offset : offset + size]

    @property
    def words(self) -> memoryview:
        """The buffer as numbers of 64 bits in this machine's byte order."""
        return self.data[: len(self.data) & ~7].cast("Q")


class _DamageError(Exception):
    """Nothing can be read from here on."""


class RecordSource(ABC):
    """The records of a recording."""

    is_merged = False
    """Whether it is made of several files, whose rounds have nothing to do with each other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.position = 0
        """Bytes that were read."""
        self.total: int | None = None
        self.latest = 0
        """The latest time of the piece that was given last; set by whoever takes it."""

    @abstractmethod
    def pieces(self) -> Iterator[RecordChunk]:
        """The records, in their order."""


class _SingleSource(RecordSource):
    """The records of one file or stream."""

    def __init__(self, name: str, byteorder: ByteOrder, troubles: list[str]) -> None:
        super().__init__(name)
        self.part = ""
        """The name of its file, where a recording has several."""
        self._big = byteorder == "big"
        self._byteorder = byteorder
        self._troubles = troubles
        self._stream: ZstdStream | None = None
        self._unpacked = 0
        self._arena = bytearray()
        self._rows: list[tuple[U32, U16, I64, I64]] = []
        self._carry = b""

    def pieces(self) -> Iterator[RecordChunk]:
        """The records, in their order. What is wrong with the recording is listed in its troubles, and ends it."""
        try:
            for piece in self._stored():
                yield from self._unpack(piece)
        except _DamageError as error:
            self._report(f"{error}; nothing behind it is read")
        yield from self._emit()
        if self._carry:
            self._report("the last compressed record ends within a record")

    def _report(self, trouble: str) -> None:
        self._troubles.append(f"{self.part}: {trouble}" if self.part else trouble)

    @abstractmethod
    def _stored(self) -> Iterator[RecordChunk]:
        """The records as they are stored."""

    def _scan(
        self, data: memoryview, position: int, end: int, *, owned: bool, base: int
    ) -> Iterator[tuple[RecordChunk, int, bool]]:
        """The records between two positions of a buffer: where they end, and whether what is behind is read next."""
        status = 0
        while position < end and not status:
            kind, misc, offset, size, position, status = scan(data, position, end, self._big, _ROWS)
            self.position = base + min(position, end)
            yield (
                RecordChunk(data, kind, misc, offset, size, owned),
                position,
                position >= end or status == layout.ScanEnd.CUT,
            )
            if status == layout.ScanEnd.BAD:
                claimed = int.from_bytes(data[position + 6 : position + 8], self._byteorder)
                raise _DamageError(f"at {base + position:#x} is a record of {claimed} bytes")

    # Compressed records

    def _unpack(self, piece: RecordChunk) -> Iterator[RecordChunk]:
        """The records of a piece, with those that are compressed in the place of the ones that hold them."""
        packed = np.isin(piece.kind, (layout.COMPRESSED, layout.COMPRESSED2))
        if not packed.any() and not self._rows:
            yield _aligned(piece)
            return
        for i in range(len(piece.kind)):
            record = piece.data[int(piece.offset[i]) : int(piece.offset[i] + piece.size[i])]
            if not packed[i]:
                self._copy(record, piece, i)
            else:
                try:
                    self._decompress(record, two=piece.kind[i] == layout.COMPRESSED2)
                except BrokenStreamError as error:
                    raise _DamageError(f"before {self.position:#x} is a broken zstd stream: {error}") from error
            if len(self._arena) >= _CHUNK:
                yield from self._emit()

    def _copy(self, record: memoryview, piece: RecordChunk, i: int) -> None:
        """A record that is not compressed, between others that are."""
        place = np.array([len(self._arena)], np.int64)
        self._rows.append((piece.kind[i : i + 1], piece.misc[i : i + 1], place, piece.size[i : i + 1]))
        self._arena += record
        self._arena += bytes(-len(self._arena) % 8)

    def _decompress(self, record: memoryview, *, two: bool) -> None:
        stored = record[layout.RECORD_HEADER :]
        if two:
            length = int.from_bytes(stored[:8], self._byteorder)
            if len(stored) < 8 or length > len(stored) - 8:
                raise _DamageError(f"before {self.position:#x} is a compressed record shorter than its contents")
            stored = stored[8 : 8 + length]
        if self._stream is None:
            self._stream = ZstdStream()
        begin = len(self._arena)
        self._arena += self._carry
        limit = begin + _LARGEST_PART
        most = _LARGEST_PART + _RATIO * self.position

        def take(part: bytes) -> None:
            self._arena += part
            self._unpacked += len(part)
            if len(self._arena) > limit or self._unpacked > most:
                raise _DamageError(f"before {self.position:#x} is a record that decompresses to too much")

        self._carry = b""
        self._stream.feed(stored, take)
        position, status = begin, 0
        while position < len(self._arena) and not status:
            kind, misc, offset, size, position, status = scan(
                memoryview(self._arena), position, len(self._arena), self._big, _ROWS
            )
            self._rows.append((kind.copy(), misc.copy(), offset.copy(), size.copy()))
        if status == layout.ScanEnd.BAD:
            del self._arena[position:]
            raise _DamageError(f"the compressed records before {self.position:#x} hold one without size")
        if status == layout.ScanEnd.CUT:
            self._carry = bytes(self._arena[position:])
        del self._arena[position:]

    def _emit(self) -> Iterator[RecordChunk]:
        """What was decompressed so far."""
        if self._rows:
            kind, misc, offset, size = (np.concatenate([rows[i] for rows in self._rows]) for i in range(4))
            self._arena += bytes(-len(self._arena) % 8)
            yield _aligned(RecordChunk(memoryview(self._arena), kind, misc, offset, size, owned=True))
        self._rows = []
        self._arena = bytearray()


def _aligned(piece: RecordChunk) -> RecordChunk:
    """The same records at multiples of 8 bytes. perf's own tools write odd sizes now and then, never many."""
    if not ((piece.offset | piece.size) & 7).any():
        return piece
    padded = (piece.size + 7) & ~7
    start = np.cumsum(padded) - padded
    arena = bytearray(int(padded.sum()))
    for origin, size, place in zip(piece.offset.tolist(), piece.size.tolist(), start.tolist(), strict=True):
        arena[place : place + size] = piece.data[origin : origin + size]
    return RecordChunk(memoryview(arena), piece.kind, piece.misc, start, piece.size, owned=True)


class FileSource(_SingleSource):
    """The records of a file."""

    def __init__(
        self, file: OpenFile, begin: int, end: int, name: str, byteorder: ByteOrder, troubles: list[str]
    ) -> None:
        super().__init__(name, byteorder, troubles)
        self._file = file
        self._begin = begin
        self._end = end
        self.at_once = _FILE_CHUNK
        """Bytes that are read of it at once."""
        self.position = begin
        self.total = end

    @property
    def size(self) -> int:
        """Bytes of its records."""
        return self._end - self._begin

    @property
    def done(self) -> int:
        """Bytes of its records that are read."""
        return self.position - self._begin

    def _stored(self) -> Iterator[RecordChunk]:
        position = self.position
        ahead = ReadAhead(self._file, self._end, min(self.at_once, self.size))
        while position < self._end:
            chunk = ahead.take(position)
            read = 0
            is_last = position + len(chunk) == self._end
            for found, read, is_next in self._scan(chunk, 0, len(chunk), owned=True, base=position):
                found.file, found.place = self._file, position
                if is_next and not is_last:
                    ahead.begin(position + read)
                yield found
            cut = is_last and read < len(chunk)
            position += read
            if cut:
                break
        if position != self._end and self._end:
            raise _DamageError(f"the file is cut off at {self._end:#x}, within a record")


class MergedSource(RecordSource):
    """The records of several files; the file furthest behind in time is read next."""

    is_merged = True

    def __init__(self, name: str, parts: list[FileSource]) -> None:
        super().__init__(name)
        self._parts = parts
        for part in parts:  # as two of each are in memory at the same time
            part.at_once = max(_CHUNK, _FILE_CHUNK // len(parts))
        self.total = sum(part.size for part in parts)

    def pieces(self) -> Iterator[RecordChunk]:
        """The records, in the order of time but for what is in one piece."""
        behind = [(0, number, part.pieces()) for number, part in enumerate(self._parts)]
        while behind:
            time, number, pieces = heapq.heappop(behind)
            piece = next(pieces, None)
            if piece is not None:
                yield piece
                self.position = sum(part.done for part in self._parts)
                heapq.heappush(behind, (max(time, self.latest), number, pieces))


class StreamSource(_SingleSource):
    """The records that come through a pipe."""

    def __init__(self, stream: BinaryIO, begin: int, name: str, byteorder: ByteOrder, troubles: list[str]) -> None:
        super().__init__(name, byteorder, troubles)
        self._input = stream
        self._begin = begin

    def _stored(self) -> Iterator[RecordChunk]:
        base = self._begin
        rest = b""
        skip = 0
        while True:
            chunk = bytearray(len(rest) + _CHUNK)
            chunk[: len(rest)] = rest
            end = len(rest) + read_into(self._input, memoryview(chunk)[len(rest) :])
            finished = end < len(chunk)
            if skip >= end:
                skip -= end
                base += end
                rest = b""
                if finished:
                    break
                continue
            data = memoryview(chunk)
            position = skip
            for found, position_behind, _ in self._scan(data, skip, end, owned=True, base=base):
                position = position_behind
                yield found
            skip = max(0, position - end)
            rest = bytes(data[position:end])
            base += min(position, end)
            if finished:
                break
        if rest or skip:
            raise _DamageError(f"the recording is cut off at {base + len(rest):#x}, within a record")


def read_into(stream: BinaryIO, target: memoryview) -> int:
    """Fill with what comes, up to the end of the stream; how much it was."""
    done = 0
    while done < len(target):
        count = stream.readinto(target[done:])  # type: ignore[attr-defined]  # each stream has it, BinaryIO does not
        if count is None or count < 0:
            raise UnreadableError("the stream has nothing to read yet; it must be one that waits")
        if not count:
            break
        done += count
    return done
