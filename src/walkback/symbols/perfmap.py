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
LARGEST = 64 * 1024 * 1024
"""So much of a file is read; perf maps of large programs have some ten megabytes."""
_LINE = re.compile(rb"^(?:0[xX])?([0-9a-fA-F]{1,16}) +(?:0[xX])?([0-9a-fA-F]{1,16}) +([^\n]+)$", re.MULTILINE)


class PerfMap:
    """One such file, as it was when it was read."""

    def __init__(self, contents: bytes) -> None:
        # Columns from the start: a large file has millions of lines.
        starts, sizes, places = array("Q"), array("Q"), array("q")
        for line in _LINE.finditer(contents):
            starts.append(int(line[1], 16))
            sizes.append(int(line[2], 16))
            places.extend(line.span(3))
        self._contents = contents
        self._name_places = np.frombuffer(places, np.int64).reshape(-1, 2) if places else np.zeros((0, 2), np.int64)
        start, size = (np.array(column, np.uint64) for column in (starts, sizes))
        self._start = start
        self._spans = SettledSpans(start, ends_of(start, size))

    def __len__(self) -> int:
        return len(self._start)

    def locate(self, addresses: U64) -> tuple[list[str | None], U64]:
        """Of each address the name, and where what has that name begins; None and 0 if it has none."""
        numbers = self._spans.find(addresses)
        if not len(self):
            return [None] * len(addresses), np.zeros(len(addresses), np.uint64)
        names = [self._name(number) if number >= 0 else None for number in numbers.tolist()]
        return names, np.where(numbers >= 0, self._start[numbers], np.uint64(0))

    def _name(self, number: int) -> str:
        first, end = self._name_places[number].tolist()
        return self._contents[first:end].rstrip(b"\r").decode(errors="backslashreplace")


def read_perf_map(pid: int, proc: str | os.PathLike[str] = _PROC, tmp: str | os.PathLike[str] = _TMP) -> PerfMap:
    """The names that a process wrote; none if there is no such file, or somebody else could have written it."""
    owners = owners_of(pid, proc)
    for path in perf_map_paths(pid, proc, tmp):
        with contextlib.suppress(UnreadableError):
            return PerfMap(whole_lines(read_owned(path, owners, LARGEST)))
    return PerfMap(b"")


def perf_map_paths(
    pid: int, proc: str | os.PathLike[str] = _PROC, tmp: str | os.PathLike[str] = _TMP
) -> Iterator[Path]:
    """Where the file may be: as the process sees it, under its own number; then as we do."""
    inner = pid
    with contextlib.suppress(OSError, ValueError):
        for line in Path(proc, str(pid), "status").read_bytes().split(b"\n"):
            if line.startswith(b"NSpid:"):
                inner = int(line.split()[-1])
    yield Path(proc, str(pid), "root", "tmp", f"perf-{inner}.map")
    yield Path(tmp, f"perf-{pid}.map")


def whole_lines(contents: bytes) -> bytes:
    """Without a last line that its writer, or the bound, has cut off."""
    return contents[: contents.rfind(b"\n") + 1]
