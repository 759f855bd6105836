"""The processes that run already, as the records that the kernel would have written when they began."""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
from pathlib import Path

import numpy as np

from walkback.capture.live.maps import Maps, MapsLine
from walkback.capture.live.status import name_in
from walkback.capture.perfdata import layout
from walkback.capture.recorder.scanning import scanned
from walkback.symbols.kallsyms import KERNEL, kernel_build_id

_TRAILER = struct.pack("=iiQII", 0, 0, 0, 0, 0)
"""What records other than samples end with: process, thread, time, processor."""
_STATE = (layout.MMAP, layout.COMM, layout.EXIT, layout.FORK, layout.MMAP2)
_FIRST_LINES = 1 << 12
"""Of kallsyms, in which the kernel's first code is."""


class Present:
    """Writes such records."""

    def __init__(self, *, data: bool) -> None:
        """With `data` also for what is mapped beside code."""
        self._data = data

    def process(self, pid: int) -> bytes:
        """The names of a process's threads and what it has mapped; nothing if it has ended."""
        try:
            threads = [int(entry) for entry in os.listdir(f"/proc/{pid}/task")]
            # A first thread that has ended has no memory any more.
            contents = (Path(f"/proc/{pid}/task/{tid}/maps").read_bytes() for tid in [pid, *threads])
            maps = Maps(next(filter(None, contents), b""))
        except OSError:
            return b""
        named = ((tid, name_in(f"/proc/{pid}/task/{tid}/comm")) for tid in sorted(threads))
        records = [_record(layout.COMM, 0, struct.pack("=ii", pid, tid), name) for tid, name in named]
        records += [self._mapping(pid, one) for one in (maps.all if self._data else maps.code())]
        return b"".join(records)

    def _mapping(self, pid: int, one: MapsLine) -> bytes:
        about = struct.pack("=IIQQ", os.major(one.device), os.minor(one.device), one.inode, 0)
        fields = struct.pack("=iiQQQ", pid, pid, one.start, one.end - one.start, one.offset)
        flags = layout.CPUMODE_USER | (0 if one.executable else layout.MISC_MMAP_DATA)
        protection = struct.pack("=II", layout.PROT_READ | (layout.PROT_EXEC if one.executable else 0), 2)
        # The kernel calls memory without a file so.
        return _record(layout.MMAP2, flags, fields + about + protection, one.name or "//anon")

    def kernel(self) -> bytes:
        """The kernel and its modules, where this user may see their addresses."""
        parts = []
        begin = _kernel_begin()
        if begin:
            # perf looks for the names of this one only if it has no build ID.
            parts.append(_kernel_part(begin, 2**64 - 1 - begin, f"{KERNEL}_text", None))
            with contextlib.suppress(OSError):
                parts += [_module(line.split()) for line in Path("/proc/modules").read_text().splitlines()]
        return b"".join(parts)


def _kernel_begin() -> int:
    """Where the kernel's code begins; 0 if this user may not know."""
    with contextlib.suppress(OSError), Path("/proc/kallsyms").open("rb") as lines:
        for line in itertools.islice(lines, _FIRST_LINES):
            address, _, name = line.split()[:3]
            if name == b"_stext":
                return int(address, 16)
    return 0


def _module(words: list[str]) -> bytes:
    name, size, address = words[0], int(words[1]), int(words[5], 16)
    build_id = kernel_build_id(f"/sys/module/{name}/notes/.note.gnu.build-id")
    return _kernel_part(address, size, f"[{name}]", build_id)


def _kernel_part(start: int, size: int, name: str, build_id: bytes | None) -> bytes:
    flags = layout.CPUMODE_KERNEL | (layout.MISC_MMAP_BUILD_ID if build_id else 0)
    about = struct.pack("=BBH20sII", len(build_id or b""), 0, 0, build_id or b"", layout.PROT_EXEC, 0)
    return _record(layout.MMAP2, flags, struct.pack("=iiQQQ", layout.KERNEL_PID, 0, start, size, start) + about, name)


def _record(kind: int, misc: int, fields: bytes, name: str) -> bytes:
    text = os.fsencode(name) + b"\0"
    body = fields + text.ljust((len(text) + 7) & ~7, b"\0") + _TRAILER
    return struct.pack("=IHH", kind, misc, 8 + len(body)) + body


def changes(data: bytearray) -> bytearray:
    """Those of these records that say what runs."""
    found = bytearray()
    for rows in scanned(data):
        for i in np.flatnonzero(np.isin(rows.kind, _STATE)).tolist():
            found += data[int(rows.offset[i]) : int(rows.offset[i] + rows.size[i])]
    return found


def all_processes() -> list[int]:
    """Those that run."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def process_of(tid: int) -> int:
    """The process that a thread belongs to; 0 if it has ended."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        status = Path(f"/proc/{tid}/status").read_text(errors="replace")
        return int(status.partition("\nTgid:")[2].split()[0])
    return 0


def threads_of(pid: int | None) -> set[int]:
    """The threads of a process; none if it has ended."""
    try:
        return {int(entry) for entry in os.listdir(f"/proc/{pid}/task")}
    except OSError:
        return set()
