"""What the readers of archives read from: bytes that lie in memory, or that come one piece after the other.

Nothing is read twice and nothing is kept, so that an archive of any size takes no memory: a reader asks for the next
bytes, or cuts the next part off as a stream of its own, and what it does not read of the part is passed over. Only
what is wanted `whole` is put together, in memory or, where that would be too much, in a temporary file.

An error stays: who reads on after it gets the same one again, and so knows that it is no second one.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Self

from walkback.base.dataclass import dataclass
from walkback.base.decoders import STEP, decompressed
from walkback.base.errors import ElfError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.base.decoders import Method
    from walkback.elf.opened import OpenFile

    Buffer = bytes | memoryview

IN_MEMORY: Final = 1 << 28
"""What is larger goes through a temporary file."""
_HARMLESS: Final = 1 << 28
_RATIO: Final = 100
"""Of Debian's 63,000 packages none holds 100 MB more than a hundred times its size, and some hold nearly that."""
_MEMBER: Final = 1 << 13
_BLOCK: Final = 1 << 16
_ZEROS: Final = bytes(_BLOCK)


class TooLargeError(ElfError):
    """More comes out of an archive than may come out of one of its size."""


class ExhaustedError(TooLargeError):
    """No more may come out of this file, from whatever part of it."""


@dataclass(frozen=True, slots=True)
class Link:
    """What an archive has in the place of contents where a member is another name of a file that came before."""

    target: bytes
    """The name that the file had."""


def limit_of(size: int) -> int:
    """How much may come out of an archive of this size."""
    return _HARMLESS + _RATIO * size


class MemoryBudget:
    """How many bytes may come out of something; a member of an archive counts as some."""

    def __init__(self, limit: int, outer: MemoryBudget | None = None) -> None:
        """What comes out of a part comes out of the whole, too."""
        self._limit = self._left = limit
        self._outer = outer

    def take(self, size: int) -> None:
        """Count what came out."""
        self._left -= size
        if self._left < 0:
            kind = TooLargeError if self._outer else ExhaustedError
            counted = f"{self._limit} bytes, with {_MEMBER} for each member"
            raise kind(f"comes to more than {counted}, which is more than one of its size may")
        if self._outer:
            self._outer.take(size)

    def take_member(self) -> None:
        """Count a member of an archive, which takes its time however small it is."""
        self.take(_MEMBER)

    def of(self, part: Stream) -> MemoryBudget:
        """The room of a part: no more than goes with its size, where that is known."""
        return self if part.left is None else MemoryBudget(limit_of(part.left), self)


class Stream(ABC):
    """The bytes that come next: `left` of them, or an unknown number if that is None."""

    left: int | None

    @abstractmethod
    def some(self, size: int) -> Buffer:
        """The next bytes, at least one and at most `size`; none at the end."""

    @abstractmethod
    def peek(self, size: int) -> bytes:
        """The next `size` bytes, which stay; fewer where it ends before."""

    @abstractmethod
    def part(self, size: int) -> Stream:
        """The next bytes as a stream of their own; it is to be done with before this one is read on."""

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes."""
        pieces = []
        while size and (piece := self.some(size)):
            pieces.append(piece)
            size -= len(piece)
        if size:
            raise ElfError(f"ends {size} bytes too early")
        return b"".join(pieces)

    def drain(self) -> None:
        """Read to the end, so that damage shows."""
        while self.some(STEP):
            pass

    def whole(self) -> memoryview:
        """All that is left."""
        held = bytearray()
        while piece := self.some(STEP):
            if len(held) + len(piece) + (self.left or 0) > IN_MEMORY:
                return self._in_a_file(held, piece)
            held += piece
        return memoryview(held).toreadonly()

    def _in_a_file(self, held: bytearray, piece: Buffer) -> memoryview:
        """The same, as a mapped file without a name, which has holes where there is nothing but zeros."""
        with tempfile.TemporaryFile() as file:
            for start in range(0, len(held), STEP):
                _write(file.fileno(), memoryview(held)[start : start + STEP])
            held.clear()
            while piece:
                _write(file.fileno(), memoryview(piece))
                piece = self.some(STEP)
            size = os.lseek(file.fileno(), 0, os.SEEK_CUR)
            os.truncate(file.fileno(), size)
            return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))


def _write(descriptor: int, data: memoryview) -> None:
    while data:
        block = data[:_BLOCK]
        if bytes(block) == _ZEROS:
            os.lseek(descriptor, _BLOCK, os.SEEK_CUR)
            data = data[_BLOCK:]
        else:
            data = data[os.write(descriptor, block) :]


class RangeStream(Stream):
    """A file on the disk, or a part of it: what is passed over is not read."""

    left: int

    def __init__(
        self,
        source: OpenFile | memoryview,
        start: int = 0,
        end: int | None = None,
        *,
        failure: UnreadableError | None = None,
    ) -> None:
        """`failure` is what is wrong behind the last of them."""
        self._source = source
        self._end = len(source) if end is None else end
        self._failure = failure
        self.left = self._end - start

    def _next(self, size: int) -> memoryview:
        if not self.left and self._failure:
            raise self._failure
        start = self._end - self.left
        return self._source[start : min(start + size, self._end)]

    def some(self, size: int) -> memoryview:
        """The next bytes, which is as many as are wanted, or as are there."""
        taken = self._next(size)
        self.left -= len(taken)
        return taken

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay."""
        return bytes(self._next(size))

    def part(self, size: int) -> Self:
        """The next bytes; all that are left if they are fewer, and the error behind them."""
        failure = None
        if size > self.left:
            failure = self._failure or ElfError(f"ends {size - self.left} bytes too early")
            size = self.left
        start = self._end - self.left
        self.left -= size
        return type(self)(self._source, start, start + size, failure=failure)

    def drain(self) -> None:
        """Nothing is read for it: what stands there may have holes of any size."""
        self.left = 0
        self.some(1)


class MemoryStream(RangeStream):
    """Bytes in memory, given out in parts without copying."""

    def whole(self) -> memoryview:
        """All that is left, where it lies."""
        whole = self.some(self.left)
        self.some(1)
        return whole


class Flow(Stream):
    """Bytes that come in pieces."""

    def __init__(self, pieces: Iterator[Buffer], left: int | None = None) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")
        self._failure: UnreadableError | None = None
        self.left = left

    def some(self, size: int) -> memoryview:
        """The next bytes, as far as they are in one piece."""
        if not self._piece:
            self._piece = self._next()
        taken, self._piece = self._piece[:size], self._piece[size:]
        if self.left is not None:
            self.left -= len(taken)
        return taken

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, which stay; damage behind them does not show yet."""
        while len(self._piece) < size and (more := self._next(wait=bool(self._piece))):
            self._piece = memoryview(bytes(self._piece) + bytes(more))
        return bytes(self._piece[:size])

    def part(self, size: int) -> Flow:
        """The next bytes; where they are fewer, that is found when they are read."""
        return Flow(self._cut(size), size)

    def _cut(self, size: int) -> Iterator[Buffer]:
        while size:
            piece = self.some(size)
            if not piece:
                raise ElfError(f"ends {size} bytes too early")
            size -= len(piece)
            yield piece

    def _next(self, *, wait: bool = False) -> memoryview:
        """The next piece, or none at the end; what is wrong can wait until the bytes before it are used up."""
        if self._failure is None:
            try:
                for piece in self._pieces:
                    if piece:
                        return memoryview(piece)
            except UnreadableError as error:
                self._failure = error
        if self._failure and not wait:
            raise self._failure
        return memoryview(b"")


def inflated(method: Method, stream: Stream, room: MemoryBudget) -> Flow:
    """What a compressed stream holds."""
    return Flow(counted(decompressed(method, stream.some), room.of(stream)))


def counted(pieces: Iterator[bytes], room: MemoryBudget) -> Iterator[bytes]:
    """The pieces, each counted before it is given out."""
    for piece in pieces:
        room.take(len(piece))
        yield piece
