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
from itertools import islice

import numpy as np

import unwinding
from frames import SMALL, _read, _source
from inputs import inputs
from measure import fastest
from run import _addresses
from walkback.base.threads import limit_processors
from walkback.capture.perfdata.recording import Recording
from walkback.dwarf.files import frame_sources
from walkback.elf import ElfFile
from walkback.naming.modules import Modules
from walkback.proof.prove import Prover
from walkback.sframe import decode, to_table
from walkback.walking.walker import Walker

_COUNTS = {
    "instructions": r"I\s+refs",
    "mispredicted": r"Mispredicts",
    "first cache missed": r"D1\s+misses",
    "last cache missed": r"LLd misses",
}
_ROUNDS = 20
_BATCHES = 4
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


def walking() -> Work:
    """Samples to stacks, a frame."""
    data = unwinding.recording("unwinding", "recorded.c", "gcc", *unwinding.OPTIONS)
    modules = Modules()
    recording = Recording.open(data, modules)
    walker = Walker(recording.machine, recording.byteorder, lambda number: modules[number].elf)
    batches = list(islice(recording.batches(), _BATCHES))

    def walk() -> int:
        return sum(len(walker.walk(batch.samples, recording.spaces).pc) for batch in batches)

    return walk, walk()


def proving() -> Work:
    """A table of call frame information proved by one thread, an instruction."""
    limit_processors(1)
    elf = ElfFile(SMALL)
    [source] = [one for one in frame_sources(elf) if one.name == ".eh_frame"]
    proof = Prover(elf).prove(source.table, source)
    instructions = sum(len(proof.instructions(unit)) for unit in range(len(proof.units.first) - 1))
    return lambda: Prover(elf).prove(source.table, source), instructions


WORKS = {work.__name__: work for work in (decoding, finding, call_frames, walking, proving)}


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
