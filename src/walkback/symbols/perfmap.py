"""Names of code that a process made at run time: `/tmp/perf-PID.map`, which JIT compilers write for perf.

Each line is the start and size of a function in hexadecimal, and its name; lines that are not are passed over. The
file of a process in a container is in the container's `/tmp`, and has the number that the process has in there.
"""

from __future__ import annotations

import contextlib
import os
import re
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from walkback.base.arrays import U64, ends_of
from walkback.base.errors import UnreadableError
from walkback.base.owned import owners_of, read_owned
from walkback.symbols.spans import SettledSpans

_PROC, _TMP = "/proc", "/tmp"  # noqa: S108 - perf's own place
_LARGEST = 64 * 1024 * 1024
"""So much of a file is read; perf maps of large programs have some ten megabytes."""
_LINE = re.compile(rb"^(?:0[xX])?([0-9a-fA-F]{1,16}) +(?:0[xX])?([0-9a-fA-F]{1,16}) +([^\n]+)$", re.MULTILINE)


class PerfMap:
    """One such file, as far as it was read."""

    def __init__(self, contents: bytes = b"", file: PerfMapFile | None = None) -> None:
        """It begins with these lines, and has those of the file as well once they are read."""
        self._file = file
        self._contents = b""
        self._starts, self._sizes, self._places = array("Q"), array("Q"), array("q")
        self._add(contents)

    def __len__(self) -> int:
        return len(self._start)

    def read_on(self) -> bool:
        """Take in what was added to the file since the last time; whether there was anything."""
        added = self._file.read_on() if self._file is not None else b""
        if added:
            self._add(added)
        return bool(added)

    def _add(self, contents: bytes) -> None:
        # Columns from the start: a large file has millions of lines.
        begin = len(self._contents)
        self._contents += contents
        for line in _LINE.finditer(contents):
            self._starts.append(int(line[1], 16))
            self._sizes.append(int(line[2], 16))
            self._places.extend(begin + place for place in line.span(3))
        start, size = (np.array(column, np.uint64) for column in (self._starts, self._sizes))
        self._start = start
        self._spans = SettledSpans(start, ends_of(start, size))

    def locate(self, addresses: U64) -> tuple[list[str | None], U64]:
        """Of each address the name, and where what has that name begins; None and 0 if it has none."""
        numbers = self._spans.find(addresses)
        if not len(self):
            return [None] * len(addresses), np.zeros(len(addresses), np.uint64)
        names = [self._name(number) if number >= 0 else None for number in numbers.tolist()]
        return names, np.where(numbers >= 0, self._start[numbers], np.uint64(0))

    def _name(self, number: int) -> str:
        first, end = self._places[2 * number : 2 * number + 2]
        return self._contents[first:end].rstrip(b"\r").decode(errors="backslashreplace")


class PerfMapFile:
    """The file of a process, which adds to it as it makes code; read only if nobody else could have written it."""

    def __init__(self, pid: int, proc: str | os.PathLike[str] = _PROC, tmp: str | os.PathLike[str] = _TMP) -> None:
        self._pid, self._proc, self._tmp = pid, Path(proc), Path(tmp)
        self._identity: tuple[int, int] | None = None
        """Its device and inode."""
        self._place = 0
        """How far it was read."""

    def read_on(self) -> bytes:
        """The lines that were added since the last time, as far as they are whole."""
        for path in self._paths():
            with contextlib.suppress(OSError, UnreadableError):
                status = path.lstat()
                identity = status.st_dev, status.st_ino
                if self._identity != identity or status.st_size < self._place:
                    self._identity, self._place = identity, 0
                owners = owners_of(self._pid, self._proc)
                # Also an empty one must be of the right kind and owner, or the next place counts.
                contents = read_owned(path, owners, _LARGEST - self._place, self._place)
                # Without a last line that its writer, or the bound, has cut off.
                whole = contents[: contents.rfind(b"\n") + 1]
                self._place += len(whole)
                return whole
        return b""

    def _paths(self) -> Iterator[Path]:
        """As the process sees it, under its own number; then as we do."""
        inner = self._pid
        with contextlib.suppress(OSError, ValueError):
            for line in Path(self._proc, str(self._pid), "status").read_bytes().split(b"\n"):
                if line.startswith(b"NSpid:"):
                    inner = int(line.split()[-1])
        yield self._proc / str(self._pid) / "root" / "tmp" / f"perf-{inner}.map"
        yield self._tmp / f"perf-{self._pid}.map"


def read_perf_map(pid: int, proc: str | os.PathLike[str] = _PROC, tmp: str | os.PathLike[str] = _TMP) -> PerfMap:
    """The names that a process has written by now; none if there is no such file that may be read."""
    found = PerfMap(file=PerfMapFile(pid, proc, tmp))
    found.read_on()
    return found
