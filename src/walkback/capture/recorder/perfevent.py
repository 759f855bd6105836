"""perf_event_open(2) by ctypes: events opened, switched on, and their buffers mapped."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import resource
import struct
import threading
from pathlib import Path

from walkback.base.errors import UnreadableError

_NUMBERS = {"x86_64": 298, "amd64": 298, "aarch64": 241, "s390x": 331}
"""Of the system call."""
_CLOEXEC = 8
_ENABLE, _DISABLE, _SET_OUTPUT = 0x2400, 0x2401, 0x2405
_HEAD_AT, _TAIL_AT = 1024, 1032

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


class RefusedError(UnreadableError):
    """The kernel does not let this user sample events, or not as many as it takes."""


class LockedError(OSError):
    """A buffer is larger than what this user may lock."""


def open_event(attr: bytes, tid: int, cpu: int) -> int:
    """The descriptor of an event of one thread, or of all with -1, on one processor."""
    number = _NUMBERS[os.uname().machine]
    contents = ctypes.create_string_buffer(attr, len(attr))
    found: int = _syscall(*map(ctypes.c_long, (number, ctypes.addressof(contents), tid, cpu, -1, _CLOEXEC)))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found


def explained(error: OSError, event: str, most_paranoid: int, *, foreign: bool = False) -> UnreadableError:
    """What it means that an event cannot be opened, which needs a kernel that is `most_paranoid` so much.

    `foreign` says that it is for the process of another user.
    """
    if isinstance(error, LockedError):
        return RefusedError("this user may not lock memory for the buffers of events; ulimit -l allows more")
    if error.errno in {errno.EACCES, errno.EPERM, errno.ENOSYS}:
        return RefusedError(_refusal(error.errno, event, most_paranoid, foreign=foreign))
    if error.errno in {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP}:
        return UnreadableError(
            f"this machine does not count {event}, as most virtual ones; -e cpu-clock samples by time"
        )
    if error.errno == errno.EINVAL:
        rate = _setting("perf_event_max_sample_rate")
        return UnreadableError(f"the kernel refuses to sample {event} so, or so often: more than {rate} times a second")
    if error.errno == errno.EMFILE:
        return RefusedError("there are more threads and processors than files may be open; ulimit -n allows more")
    return RefusedError(f"{event} cannot be sampled: {error.strerror}")


def _refusal(code: int, event: str, most_paranoid: int, *, foreign: bool) -> str:
    """What is missing, and what would grant it."""
    if code == errno.ENOSYS:
        return "this kernel has no perf events"
    level = _setting("perf_event_paranoid")
    if level.lstrip("-").isdigit() and int(level) > most_paranoid and not _may_all():
        return (
            f"kernel.perf_event_paranoid is {level}, so perf_event_open is refused;"
            f" sysctl kernel.perf_event_paranoid={most_paranoid} or CAP_PERFMON allows it"
        )
    if event.startswith(("uprobe:", "uretprobe:")):
        return "uprobes need root or CAP_PERFMON"
    if foreign:
        return "perf_event_open is refused for another user's process; root or CAP_SYS_PTRACE allows it"
    return "perf_event_open is refused, as by the seccomp filter of a container; there CAP_PERFMON allows it"


def _may_all() -> bool:
    """Whether this user has CAP_PERFMON or CAP_SYS_ADMIN, so that the setting is not the reason."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text()
        return int(status.split("CapEff:")[1].split()[0], 16) & (1 << 38 | 1 << 21) != 0
    return False


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys/kernel", name).read_text().strip()
    except OSError:
        return "an unknown number of"


class Ring:
    """The buffer of one processor's events."""

    def __init__(self, descriptor: int, size: int) -> None:
        """`size` is a power of two of at least a page; raises `LockedError` if this user may not lock as much."""
        self.descriptor = descriptor
        self._page = mmap.PAGESIZE
        self._size = size
        try:
            self._memory = memoryview(mmap.mmap(descriptor, self._page + size))
        except PermissionError as error:
            raise LockedError(error.errno, error.strerror) from None
        self._lock = threading.Lock()

    def take(self, into: bytearray) -> None:
        """Append what has come since the last time: whole records."""
        head = self._word(_HEAD_AT)
        with self._lock:  # A lock that is taken keeps the machine from reading the records before their end.
            tail = self._word(_TAIL_AT)
        begin, count = tail % self._size, head - tail
        first = min(count, self._size - begin)
        into += self._memory[self._page + begin : self._page + begin + first]
        into += self._memory[self._page : self._page + count - first]
        with self._lock:
            struct.pack_into("Q", self._memory, _TAIL_AT, head)

    def _word(self, at: int) -> int:
        found: int = struct.unpack_from("Q", self._memory, at)[0]
        return found

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.release()


class OpenEvents:
    """One event of some threads, each on every processor, with a buffer for each processor."""

    def __init__(self, attr: bytes, ring_size: int) -> None:
        self.rings: dict[int, Ring] = {}
        """By processor."""
        self._attr = attr
        self._ring_size = ring_size
        self._events: list[int] = []

    def add(self, tid: int) -> None:
        """The event of a thread, or of all with -1; nothing if it has ended."""
        for cpu in _processors():
            try:
                descriptor = open_event(self._attr, tid, cpu)
            except ProcessLookupError:
                return
            self._events.append(descriptor)
            if cpu in self.rings:
                fcntl.ioctl(descriptor, _SET_OUTPUT, self.rings[cpu].descriptor)
            else:
                self.rings[cpu] = Ring(descriptor, self._ring_size)

    def enable(self) -> None:
        """Let the events count, with those that were inherited of them."""
        for descriptor in self._events:
            fcntl.ioctl(descriptor, _ENABLE, 0)

    def disable(self) -> None:
        """Let them count no more."""
        for descriptor in self._events:
            fcntl.ioctl(descriptor, _DISABLE, 0)

    def take(self) -> bytearray:
        """What has come since the last time."""
        data = bytearray()
        for ring in self.rings.values():
            ring.take(data)
        return data

    def close(self) -> None:
        """Let go of the events and their buffers."""
        for ring in self.rings.values():
            ring.close()
        for descriptor in self._events:
            os.close(descriptor)
        self.rings, self._events = {}, []


def _processors() -> list[int]:
    """The numbers of those that are online."""
    found: list[int] = []
    try:
        online = Path("/sys/devices/system/cpu/online").read_text()
    except OSError:  # as where only a program's own files are
        return sorted(os.sched_getaffinity(0))
    for part in online.strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def allow_files() -> None:
    """Allow as many descriptors as this user may have: there is one for each thread and processor."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
