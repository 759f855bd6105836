"""One piece of work within a process, by its name: prints the seconds on the processor of the fastest of a few runs.

The package is that of PYTHONPATH. `shortly` says what is measured so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

_LEAST = 0.3
"""Seconds of all runs together."""
_ADDRESSES = 300_000


def main() -> None:
    name, path = sys.argv[1:]
    work = WORKS[name](Path(path))
    work()
    seconds: list[float] = []
    while len(seconds) < 3 or sum(seconds) < _LEAST:
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    print(min(seconds))


def _decoding(path: Path) -> Callable[[], object]:
    """Bytes to the rule of every row."""
    from walkback.sframe.decoding import decode
    from walkback.sframe.files import read
    from walkback.sframe.rules import to_table

    (source,) = read(path)
    return lambda: to_table(decode(source.data))


def _finding(path: Path) -> Callable[[], object]:
    """The rows that hold at random addresses of the code."""
    from walkback.sframe.decoding import decode
    from walkback.sframe.files import read
    from walkback.sframe.rules import to_table

    (source,) = read(path)
    table = to_table(decode(source.data, address=source.address))
    rng = np.random.default_rng(1)
    chosen = rng.integers(0, len(table.range_start), _ADDRESSES)
    addresses = table.range_start[chosen] + (rng.random(_ADDRESSES) * table.range_size[chosen]).astype(np.uint64)
    return lambda: table.find_many(addresses)


def _reading_frames(path: Path) -> Callable[[], object]:
    """Call frame information to rows."""
    from walkback.elf import ElfFile
    from walkback.sections.pairs import call_frame_table

    elf = ElfFile(path)
    return lambda: call_frame_table(elf)


def _walking(path: Path) -> Callable[[], object]:
    """Walk all samples of a recording."""
    from walkback.capture.perfdata.recording import Recording
    from walkback.naming.modules import Modules
    from walkback.walking.walker import Walker

    modules = Modules()
    recording = Recording.open(path, modules)
    walker = Walker(recording.machine, recording.byteorder, lambda number: modules[number].elf)
    batches = list(recording.batches())
    return lambda: [walker.walk(batch.samples, recording.spaces) for batch in batches]


WORKS = {"decode": _decoding, "find": _finding, "frames": _reading_frames, "walk": _walking}

if __name__ == "__main__":
    main()
