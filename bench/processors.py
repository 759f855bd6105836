"""How much of a machine the verbs for many files use: one command with all processors, beside as many copies with one.

Each copy does all files by itself, so that all copies together do the work as many times; what they get done in a
second is what the machine can do. `python bench/processors.py [FILE...]` takes other files than programs of `/usr/bin`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from measure import WALKBACK

_VERBS = (("verify",), ("size",), ("compare", "--source", "cfi", "--each"))
_ROUNDS = 3
_FILES = 120


def main() -> None:
    files = sys.argv[1:] or _programs()
    processors = len(os.sched_getaffinity(0))
    print(f"{len(files)} files, {processors} processors\n")
    print("| verb | one process | all processors | quicker by | share of what copies reach |")
    print("|---|---:|---:|---:|---:|")
    for verb in _VERBS:
        rows = []
        for _ in range(_ROUNDS):
            alone = _seconds([*verb, "--jobs", "1", *files], 1)
            copies = _seconds([*verb, "--jobs", "1", *files], processors)
            together = _seconds([*verb, *files], 1)
            rows.append((alone, together, alone / together, copies / processors / together))
        alone, together, quicker, share = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"| {' '.join(verb)} | {alone:.2f} s | {together:.2f} s | {quicker:.2f} | {share:.2f} |", flush=True)


def _programs() -> list[str]:
    found = [path for path in sorted(Path("/usr/bin").iterdir()) if path.is_file() and not path.is_symlink()]
    return [str(path) for path in found if path.open("rb").read(4) == b"\x7fELF" and path.stat().st_size < 1 << 23][
        :_FILES
    ]


def _seconds(arguments: list[str], copies: int) -> float:
    """Until all copies have ended."""
    start = time.perf_counter()
    started = [subprocess.Popen([WALKBACK, *arguments], stdout=subprocess.DEVNULL) for _ in range(copies)]
    statuses = [one.wait() for one in started]
    assert max(statuses) <= 1, statuses
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
