"""Work on many files in several processes, whose output appears in the order of the files.

The processes are forked, so that they need not import anything again, and whatever goes wrong in one of them is done
again here: then it goes wrong as it does without them.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import selectors
import signal
import socket
import stat
import struct
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Generic, NamedTuple, TypeVar

from walkback.base.threads import available_processors, share_processors
from walkback.cli.progress import aside

Found = TypeVar("Found")

_WORTH = 1 << 20
"""Bytes of all files; less is done sooner by one process."""
_AHEAD = 256
"""Files whose output may wait for that of files before them; each is open for as long."""
_ORDER = struct.Struct("<Q")
_PART = struct.Struct("<BQ")
_OUT, _ERR = 1, 2
_COPIED = 1 << 20


class Printed(NamedTuple, Generic[Found]):
    """What a process made of a file."""

    output: IO[bytes]
    """What it printed: parts with the number of their stream, and their size."""
    size: int
    found: Found

    def show(self) -> None:
        """Print it here."""
        self.output.seek(0)
        while self.output.tell() < self.size:
            stream, left = _PART.unpack(self.output.read(_PART.size))
            out = sys.stdout if stream == _OUT else sys.stderr
            with contextlib.nullcontext() if stream == _OUT else aside():
                while left:
                    part = self.output.read(min(left, _COPIED))
                    out.buffer.write(part)
                    left -= len(part)
                out.flush()
        self.output.close()


def processes_for(files: Sequence[str], jobs: int | None) -> int:
    """How many are worth it; 1 is this process alone, as for what can be read only once."""
    most = min(len(files), jobs or available_processors())
    if most < 2 or len(os.listdir("/proc/self/task")) > 1:  # what other threads do is not forked
        return 1
    size = 0
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            continue
        if not stat.S_ISREG(status.st_mode):
            return 1
        size += status.st_size
    return most if size >= _WORTH else 1


def side_by_side(
    files: Sequence[str], work: Callable[[str], Found], processes: int, *, writes: bool = False
) -> Iterator[tuple[str, Printed[Found] | None]]:
    """What the processes make of each file, in order; None if one of them could not do it.

    If no more results are wanted, each process is killed; or interrupted, if it `writes` files and has to clean up.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    started: list[tuple[int, socket.socket]] = []
    for _ in range(processes):
        started.append(_started(files, work, [end for _, end in started], processes, writes=writes))
    try:
        crew: _Crew[Found] = _Crew(len(files), [end for _, end in started])
        for turn, file in enumerate(files):
            yield file, crew.result(turn)
    finally:
        for pid, end in started:
            end.close()
            os.kill(pid, signal.SIGTERM if writes else signal.SIGKILL)
        for pid, _ in started:
            os.waitpid(pid, 0)


class _Crew(Generic[Found]):
    """Processes, by the sockets on which they take orders: the numbers of files."""

    def __init__(self, files: int, ends: Sequence[socket.socket]) -> None:
        self._waiting = deque(range(files))
        self._idle = list(ends)
        self._at_work: dict[socket.socket, int] = {}
        self._done: dict[int, Printed[Found] | None] = {}

    def result(self, turn: int) -> Printed[Found] | None:
        """Of one file; they are asked for in order."""
        while turn not in self._done:
            self._give_orders(turn + _AHEAD)
            if not self._at_work:  # they have all ended
                self._waiting.popleft()
                return None
            self._collect()
        return self._done.pop(turn)

    def _give_orders(self, limit: int) -> None:
        while self._idle and self._waiting and self._waiting[0] < limit:
            end, number = self._idle.pop(), self._waiting.popleft()
            self._at_work[end] = number
            with contextlib.suppress(OSError):  # it has ended, as is seen when its result is received
                end.send(_ORDER.pack(number))

    def _collect(self) -> None:
        """Wait for one of them, or more."""
        with selectors.DefaultSelector() as selector:
            for end in self._at_work:
                selector.register(end, selectors.EVENT_READ, end)
            ready = [key.data for key, _ in selector.select()]
        for end in ready:
            received: Printed[Found] | None = _received(end)
            self._done[self._at_work.pop(end)] = received
            if received is not None:
                self._idle.append(end)


def _received(end: socket.socket) -> Printed[Found] | None:
    """What a process has done; None if it has ended, or its output cannot be opened here."""
    try:
        message, descriptors, _, _ = socket.recv_fds(end, _ORDER.size, 1)
    except OSError:
        return None
    if not descriptors:
        return None
    output = os.fdopen(descriptors[0], "rb")
    (size,) = _ORDER.unpack(message)
    output.seek(size)
    return Printed(output, size, pickle.load(output))  # noqa: S301 - our own process wrote it


def _started(
    files: Sequence[str],
    work: Callable[[str], Found],
    others: Sequence[socket.socket],
    processes: int,
    *,
    writes: bool,
) -> tuple[int, socket.socket]:
    """A new process, and what it takes orders by; with those of others open, it would keep these alive."""
    end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid:
        other.close()
        return pid, end
    try:
        for one in (end, *others):
            one.close()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt if writes else signal.SIG_DFL)
        share_processors(processes)
        while order := other.recv(_ORDER.size):
            (number,) = _ORDER.unpack(order)
            with tempfile.TemporaryFile() as output:
                found = _captured(output, work, files[number])
                size = output.tell()
                pickle.dump(found, output)
                output.flush()
                socket.send_fds(other, [_ORDER.pack(size)], [output.fileno()])
    finally:
        os._exit(0)


def _interrupt(_number: int, _frame: object) -> None:
    """End the work, once: nothing is to end what cleans up."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _captured(output: IO[bytes], work: Callable[[str], Found], file: str) -> Found:
    """Do the work with all that is printed written to `output`."""
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedWriter(_Stream(output, number, is_terminal=former.isatty())),
            encoding=former.encoding,
            errors=former.errors,
            newline="\n",
        )
        for number, former in ((_OUT, sys.stdout), (_ERR, sys.stderr))
    )
    found = work(file)
    sys.stdout.flush()
    sys.stderr.flush()
    return found


class _Stream(io.RawIOBase):
    """Standard output or error of a process that does not print itself."""

    def __init__(self, output: IO[bytes], number: int, *, is_terminal: bool) -> None:
        self._output, self._number, self._is_terminal = output, number, is_terminal

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        """As what it stands for, which decides on colours."""
        return self._is_terminal

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        self._output.write(_PART.pack(self._number, size))
        self._output.write(data)
        return size
