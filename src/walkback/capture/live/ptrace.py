"""Threads of other processes stopped for a moment: ptrace(2), process_vm_readv(2) and waitpid(2) by ctypes.

A thread is taken with PTRACE_SEIZE, which sends it no signal and lets it go when the tracer dies in whatever way.
PTRACE_INTERRUPT stops it; a signal that arrives first stops it as well, and is delivered when it is let go. A thread
whose process was stopped by SIGSTOP stays so.

The tracer is the calling thread, not its process: what it did not let go, the kernel lets go when that thread ends.

Waiting for a stop blocks, because on a busy machine nothing else is as quick. A thread that the kernel does not stop
(in vfork, or in the middle of a disk's work) is given up by somebody else, see `give_up`.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from walkback.base.arch import Machine
from walkback.capture.registers import FLOATING, GENERAL, PC_WORD, SP_WORD
from walkback.capture.snapshot import MemoryRange
from walkback.runtimes.chains import Standing

_PTRACE_DETACH, _PTRACE_GETREGSET, _PTRACE_SEIZE, _PTRACE_INTERRUPT = 17, 0x4204, 0x4206, 0x4207
_EVENT_STOP = 128
_WALL = 0x40000000
_NT_PRSTATUS, _NT_FPREGSET, _NT_ARM_PAC_MASK = 1, 2, 0x406
_RED_ZONE = 128
_MOST_GATHERED = 1024
"""Pieces of memory that the kernel reads at once."""
_CHUNK = 1 << 18
"""How much memory is read at once where a walk asks for some, and at most in pieces."""
_MARGIN = 1 << 12
"""Bytes by which a stack may be longer than when it was copied the last time."""
_LONG = 1 << 16
"""Bytes that a stack must have become shorter to be looked for anew."""
_MOST_THREADS = 1 << 12
"""Whose stacks are remembered."""


class _Vector(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


# None of these calls waits, so the interpreter's lock is kept, and no other thread takes it during a stop.
_LIBC = ctypes.PyDLL(None, use_errno=True)
_ptrace = _LIBC.ptrace
_ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_ptrace.restype = ctypes.c_long
_readv = _LIBC.process_vm_readv
_readv.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)
_readv.restype = ctypes.c_ssize_t

_REFUSED = (errno.EPERM, errno.ENOSYS)


class GivenUpError(Exception):
    """Nobody waits for this tracer any more."""


class Remote:
    """The memory of another process, read into one buffer again and again."""

    def __init__(self, size: int) -> None:
        """At most `size` bytes are read at once."""
        self.size = size
        self._buffer = ctypes.create_string_buffer(size)
        ctypes.memset(self._buffer, 1, size)  # Its pages are there before anybody waits for them.
        self._view = memoryview(self._buffer).cast("B")
        self._begin = ctypes.addressof(self._buffer)
        self._local = _Vector(self._begin, 0)
        self._remote = _Vector(0, 0)
        self._local_at, self._remote_at = ctypes.addressof(self._local), ctypes.addressof(self._remote)

    def fetch(self, tid: int, address: int, size: int, at: int = 0) -> int:
        """Read into the buffer, from a place in it on; returns how many bytes came, from the first on."""
        size = min(size, self.size - at)
        self._local.base = self._begin + at
        self._local.length = self._remote.length = size
        self._remote.base = address
        if size <= 0:
            return 0
        got = _readv(tid, self._local_at, 1, self._remote_at, 1, 0)
        return self._by_file(tid, [(address, size)], at) if got < 0 and ctypes.get_errno() in _REFUSED else max(got, 0)

    def collect(self, tid: int, pieces: Pieces) -> int:
        """Read pieces of memory into the buffer, one after the other; returns how many bytes came."""
        if not pieces.size:
            return 0
        self._local.base, self._local.length = self._begin, pieces.size
        got = _readv(tid, self._local_at, 1, pieces.vectors, len(pieces.ranges), 0)
        return self._by_file(tid, pieces.ranges, 0) if got < 0 and ctypes.get_errno() in _REFUSED else max(got, 0)

    def _by_file(self, tid: int, ranges: Sequence[tuple[int, int]], at: int) -> int:
        """The same through a file, where a filter of system calls refuses the other way."""
        done = at
        try:
            memory = os.open(f"/proc/{tid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            for address, size in ranges:
                got = os.preadv(memory, [self._view[done : done + size]], address)
                done += got
                if got < size:
                    break
        except (OSError, OverflowError):  # not mapped, or no address of a program
            pass
        finally:
            os.close(memory)
        return done - at

    def fetched(self, size: int, start: int = 0) -> bytes:
        """A copy of a part of the buffer."""
        return bytes(self._view[start : start + size])

    def read(self, tid: int, address: int, size: int) -> bytes:
        """As many bytes as can be read there."""
        return self.fetched(self.fetch(tid, address, size))

    def most_gathered(self, size: int) -> int:
        """From how many addresses that many bytes can be read at once."""
        return max(min(self.size // size, _MOST_GATHERED), 1)

    def gather(self, tid: int, addresses: Sequence[int], size: int) -> bytes:
        """`size` bytes from each address, one after the other, up to the first that cannot be read."""
        got = self.collect(tid, Pieces([(address, size) for address in addresses[: self.most_gathered(size)]]))
        return self.fetched(got // size * size)


class Pieces:
    """Pieces of memory, to be read at once."""

    def __init__(self, ranges: Sequence[tuple[int, int]] = ()) -> None:
        """Each range is an address and a size."""
        self.ranges = ranges
        self.size = sum(size for _, size in ranges)
        self.vectors = struct.pack(f"={2 * len(ranges)}Q", *(word for one in ranges for word in one))

    @property
    def is_fit(self) -> bool:
        """Whether they are few and small enough for a stop."""
        return self.size <= _CHUNK and len(self.ranges) < _MOST_GATHERED


_NOTHING = Pieces()


class Tracer:
    """Stops one thread at a time; what a stop needs is prepared here, once.

    After `take` the attributes describe the thread; they are overwritten by the next one.
    """

    def __init__(self, machine: Machine, limit: int) -> None:
        """Of each stack at most `limit` bytes are copied."""
        self.general = GENERAL[machine]
        self.floating = FLOATING.get(machine)
        self._sp_word, self._pc_word = SP_WORD[machine], PC_WORD[machine]
        self._with_pac_mask = machine.name == "AArch64"
        self._limit = limit + _RED_ZONE
        self._memory = Remote(_CHUNK + _MARGIN + self._limit)
        """During a stop: the pieces that are asked for, and behind them the stack."""
        self._chunk = Remote(_CHUNK)
        self._stacks: dict[int, tuple[int, int]] = {}
        """Where the copies of the stacks of threads will probably begin, and where the memory ends that holds them."""
        self._words = (ctypes.c_uint64 * 128)()
        self._more_words = (ctypes.c_uint64 * 128)()
        self._vector = _Vector(0, 0)
        self._vector_at = ctypes.addressof(self._vector)
        self._lock = threading.Lock()
        self._waiting = self._given_up = False
        self._since = 0

        self.more_registers = b""
        self.pac_mask = 0
        self.collected = b""
        """The pieces, up to the first that could not be read."""
        self.start = 0
        """Where the copied stack begins."""
        self.copied = 0
        self._stack_at = self._expected = 0
        """Where the copied stack begins in the memory here, and how much of it is expected."""
        self.end = 0
        """Where the memory that holds the stack pointer ends; 0 if it is not known."""
        self.stopped = 0
        """Nanoseconds from the interruption to the letting go."""

    def take(
        self,
        tid: int,
        extent: Callable[[int], tuple[int, int] | None],
        work: Callable[[], None] | None = None,
        pieces: Pieces = _NOTHING,
    ) -> str | None:
        """Stop a thread, copy its registers, its stack and pieces of memory, and let it go; returns what went wrong.

        `extent` gives the mapping that holds a stack pointer. `work` is done while the thread stands still.
        """
        wanted = self._expect(tid, pieces)
        if _ptrace(_PTRACE_SEIZE, tid, None, None) < 0:
            return _refusal(ctypes.get_errno())
        collecting = gc.isenabled()
        signal = 0
        began = time.monotonic_ns()
        try:
            if _ptrace(_PTRACE_INTERRUPT, tid, None, None) < 0:
                return "it ended"
            stop = self._wait(tid, began)
            if stop is not None and stop >> 8 != _EVENT_STOP:
                # A stop for a signal on its way has no event; the thread goes on with that signal.
                signal = stop & 0xFF
            if self._given_up:
                raise GivenUpError
            if stop is None:
                return "it ended"
            gc.disable()
            # This needs no registers, for which the kernel waits until the thread has left its processor.
            got = self._memory.collect(tid, wanted)
            trouble = self._copy(tid, extent, got - pieces.size)
            if trouble is None and work is not None:
                work()
        finally:
            _ptrace(_PTRACE_DETACH, tid, None, signal)
            self.stopped = time.monotonic_ns() - began
            if collecting:
                gc.enable()
        self.collected = self._memory.fetched(min(got, pieces.size))
        return trouble

    def _expect(self, tid: int, pieces: Pieces) -> Pieces:
        """The pieces, and behind them the stack where it probably is."""
        start, self.end = self._stacks.get(tid, (0, 0))
        self.start, self._stack_at = start, pieces.size
        self._expected = min(self.end - start, self._limit + _MARGIN)
        return Pieces([*pieces.ranges, (start, self._expected)]) if self._expected else pieces

    def _wait(self, tid: int, began: int) -> int | None:
        """Wait until a thread stops: the signal and the event, as wait(2) has them, or None if it ended instead.

        The stop itself is left to be waited for. The kernel would take it that the signal has been dealt with, and if
        this process were killed then, the signal would be lost.
        """
        with self._lock:
            self._waiting, self._since = True, began
        try:
            found = os.waitid(os.P_PID, tid, os.WSTOPPED | os.WEXITED | os.WNOWAIT | _WALL)
            if found is not None and found.si_code == os.CLD_TRAPPED:
                return found.si_status
            if not _is_child(tid):  # whose status is for who has started it
                os.waitpid(tid, _WALL)
            return None
        except ChildProcessError:
            return None
        finally:
            with self._lock:
                self._waiting = False

    def give_up(self, patience: float) -> bool:
        """Give up on a thread that has not stopped within `patience` seconds; return whether this tracer has given up.

        From then on the tracer only lets that thread go if it stops after all. Call this from another thread than the
        one that waits.
        """
        with self._lock:
            if self._waiting and time.monotonic_ns() - self._since > patience * 1e9:
                self._given_up = True
            return self._given_up

    def _copy(self, tid: int, extent: Callable[[int], tuple[int, int] | None], got: int) -> str | None:
        """Copy its registers, and its stack unless that is in the bytes that came behind the pieces."""
        size = self._regset(tid, _NT_PRSTATUS, self._words)
        if size < 0:
            return "its registers cannot be read"
        if size != self.general.size:
            return "it is a 32-bit thread"
        if self.floating is not None:
            has_more = self._regset(tid, _NT_FPREGSET, self._more_words) >= self.floating.size
            self.more_registers = bytes(self._more_words) if has_more else b""
        if self._with_pac_mask and self._regset(tid, _NT_ARM_PAC_MASK, self._more_words) >= 16:
            self.pac_mask = int(self._more_words[1])
        sp = int(self._words[self._sp_word])
        skipped = sp - _RED_ZONE - self.start
        if got == self._expected and 0 <= skipped < min(got - _RED_ZONE, _LONG):
            self.start += skipped
            self._stack_at += skipped
            self.copied = min(got - skipped, self._limit)
            return None
        found = extent(sp)
        self.copied = self.end = 0
        if found is not None:
            self.end = found[1]
            if len(self._stacks) >= _MOST_THREADS:
                self._stacks.clear()
            self._stacks[tid] = max(sp - _RED_ZONE - _MARGIN, found[0]), self.end
            for self.start in (max(sp - _RED_ZONE, found[0]), sp):
                # The pages below the stack pointer may not be there yet.
                size = min(self.end - self.start, self._limit)
                self.copied = self._memory.fetch(tid, self.start, size, self._stack_at)
                if self.copied:
                    break
        return None

    def _regset(self, tid: int, kind: int, words: ctypes.Array[ctypes.c_uint64]) -> int:
        """Read registers; returns how many bytes came."""
        self._vector.base, self._vector.length = ctypes.addressof(words), ctypes.sizeof(words)
        return -1 if _ptrace(_PTRACE_GETREGSET, tid, kind, self._vector_at) < 0 else int(self._vector.length)

    @property
    def registers(self) -> bytes:
        """As the kernel has them."""
        return bytes(self._words)

    @property
    def pc(self) -> int:
        """Where the thread was."""
        return int(self._words[self._pc_word])

    def copied_at(self, address: int, size: int) -> bytes:
        """A part of the copied stack; nothing where it does not have all of it."""
        away = address - self.start
        return self._memory.fetched(size, self._stack_at + away) if 0 <= away <= self.copied - size else b""

    def standing(self) -> Standing:
        """The thread, for those who look what it runs."""
        registers = tuple(self._words[: self.general.size // 8])
        return Standing(registers, self.start, self._memory.fetched(self.copied, self._stack_at), self.end)

    def piece(self) -> MemoryRange:
        """The copied stack."""
        return MemoryRange(self.start, self._memory.fetched(self.copied, self._stack_at))

    def read_around(self, tid: int, address: int, extent: tuple[int, int]) -> MemoryRange | None:
        """Memory of a mapping from the page of an address on."""
        start = max(address & -4096, extent[0])
        contents = self._chunk.read(tid, start, min(extent[1] - start, _CHUNK))
        return MemoryRange(start, contents) if start + len(contents) > address else None


def _is_child(tid: int) -> bool:
    """Whether this is the first thread of a process that this one has started."""
    try:
        lines = Path(f"/proc/{tid}/status").read_bytes().splitlines()
    except OSError:
        return False
    return b"Tgid:\t%d" % tid in lines and b"PPid:\t%d" % os.getpid() in lines


def _refusal(number: int) -> str:
    if number == errno.ESRCH:
        return "it ended"
    return f"it may not be stopped ({os.strerror(number)})"
