"""Stacks of running Go programs against what the programs themselves say: a table of counts, and what differs.

The programs have no symbols and no debug information. One is of Go alone; the other goes to C and back, with C that
keeps frame pointers and C that does not. `gostacks.py [ROUNDS [THREADS]]`; needs `make peers`.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from gopclntab.callers import Comparison, running, stopped
from gopclntab.gotools import VERSIONS, callers

_PROGRAMS = {
    "Go": ("callers", ""),
    "C, frame pointers": ("callers_cgo", "-O2 -fno-omit-frame-pointer"),
    "C, no frame pointers": ("callers_cgo", "-O2 -fomit-frame-pointer"),
    "C, not optimized": ("callers_cgo", "-O0"),
}
_MODES = ((), ("-buildmode=pie",))


def main() -> None:
    rounds, threads = (int(word) for word in (*sys.argv[1:], "2", "200")[:2])
    print("| program | Go | linked | stacks | frames | equal | different | seconds |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    total = [0, 0, 0]
    with contextlib.nullcontext("/tmp/hgo-work/bench") as name:
        for title, (program, c_flags) in _PROGRAMS.items():
            for version in VERSIONS:
                for flags in _MODES:
                    path = callers(Path(name), version, program, c_flags, *flags)
                    start = time.perf_counter()
                    found = _compared(path, rounds, threads)
                    seconds = time.perf_counter() - start
                    counts = (found.stacks, found.frames, len(found.different))
                    total = [one + more for one, more in zip(total, counts, strict=True)]
                    print(f"| {title} | {version} | {'PIE' if flags else 'fixed'} {_line(counts)} {seconds:.1f} |", flush=True)
                    for line in set(found.different):
                        print(f"{path.name}: {line}", file=sys.stderr)
    print(f"| all | | {_line((total[0], total[1], total[2]))} |")


def _compared(path: Path, rounds: int, threads: int) -> Comparison:
    found = Comparison(path)
    for seed in range(rounds):
        with running(path, str(seed), str(threads)) as (pid, held):
            found.compare(stopped(pid), held)
    return found


def _line(counts: tuple[int, int, int]) -> str:
    stacks, frames, different = counts
    return f"| {stacks:,} | {frames:,} | {stacks - different:,} | {different:,} |"


if __name__ == "__main__":
    main()
