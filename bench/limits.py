"""What keeps kernels from being faster: instructions, mispredicted branches and cache misses for each thing.

    python bench/limits.py [WORK...]

cachegrind counts them in runs that do the work once and three times; half of the difference is the work alone. The time
is measured without it. The least that is possible is the time to copy what goes in and out.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from frames import SMALL, _read, _source
from inputs import inputs
from measure import fastest
from run import _addresses
from walkback.sframe import decode, to_table

_COUNTS = {
    "instructions": r"I\s+refs",
    "mispredicted": r"Mispredicts",
    "first cache missed": r"D1\s+misses",
    "last cache missed": r"LLd misses",
}
_ROUNDS = 20
Work = tuple[Callable[[], object], int]
"""What is done, and how many things that are."""


def decoding() -> Work:
    """SFrame to columns and rules, a row."""
    data = inputs()[-1].section.read_bytes()
    return lambda: to_table(decode(data)), len(decode(data).row_start)


def finding() -> Work:
    """Random program counters to rows, a program counter."""
    one = inputs()[-1]
    table = to_table(decode(one.section.read_bytes(), address=one.address))
    pcs = _addresses(table)
    return lambda: table.find_many(pcs), len(pcs)


def call_frames() -> Work:
    """`.eh_frame` to rows, a row."""
    source = _source(SMALL)
    return lambda: _read(source), len(_read(source).row_offset)


WORKS = {work.__name__: work for work in (decoding, finding, call_frames)}


def main() -> None:
    asked = sys.argv[1:]
    if asked[:1] == ["--times"]:
        work, _ = WORKS[asked[2]]()
        for _ in range(int(asked[1])):
            work()
        return
    print(f"copying memory: {_copying():.3f} ns a byte\n")
    print(f"| work | ns | {' | '.join(_COUNTS)} |")
    print("|---|---:" + "|---:" * len(_COUNTS) + "|")
    for name in asked or WORKS:
        work, things = WORKS[name]()
        counts = np.subtract(_counted(name, 3), _counted(name, 1)) / 2 / things
        cells = " | ".join(f"{count:.3g}" for count in counts.tolist())
        print(f"| {name} | {fastest(work, _ROUNDS) / things * 1e9:.1f} | {cells} |", flush=True)


def _counted(name: str, times: int) -> list[int]:
    """What cachegrind counts of a process that does a work so often."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                *("valgrind", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes"),
                *(f"--cachegrind-out-file={folder}/out", sys.executable, __file__, "--times", str(times), name),
            ],
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    found = []
    for pattern in _COUNTS.values():
        [number] = re.findall(rf"{pattern}:\s+([0-9,]+)", done.stderr)
        found.append(int(number.replace(",", "")))
    return found


def _copying() -> float:
    """Nanoseconds a byte, for more than the caches hold."""
    much = np.zeros(1 << 28, np.uint8)
    other = much.copy()
    best = min(_timed(lambda: np.copyto(other, much)) for _ in range(5))
    return best * 1e9 / len(much)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
