"""The measure of a survey: a sample of this machine's programs and libraries, against readelf on the same files.

With `python bench/surveying.py` it prints what a file and a megabyte cost, of which docs/cluster.md computes the rest.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from inputs import CACHE
from measure import READELF, WALKBACK, Figure, alternate, process

FOLDERS = ("/usr/bin", "/usr/lib/x86_64-linux-gnu")
EVERY = 4
"""Of how many files one is taken."""
COUNTS = (100, 1_000, 10_000)
"""Of the same files: what each costs more from one count to the next."""


def surveying(rounds: int) -> Iterator[Figure]:
    """The whole process of `walkback survey` on one core and on two, and as files become a hundred times as many."""
    files = _sample()
    CACHE.mkdir(parents=True, exist_ok=True)
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    what = f"survey {len(files)} files of {megabytes:.0f} MB"
    one, two, frames, headers = alternate(
        rounds,
        lambda: survey(files, jobs=1),
        lambda: survey(files, jobs=2),
        lambda: process((*READELF, "--wide", "--debug-dump=frames-interp", *files))[0],
        lambda: process((*READELF, "--wide", "-S", *files))[0],
    )
    yield Figure(f"{what}, one core", one, frames, "s", "readelf frames-interp", 5)
    yield Figure(f"{what}, two cores", two, frames, "s", "readelf frames-interp", 3)
    yield Figure(f"{what}, two cores", two, headers, "s", "readelf -S", 200)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        folders = [copies(Path(scratch, str(count)), count) for count in COUNTS]
        few, some, many = alternate(rounds, *(lambda folder=folder: survey([folder]) for folder in folders))
    each = 1e3 * (many - some) / (COUNTS[2] - COUNTS[1]), 1e3 * (some - few) / (COUNTS[1] - COUNTS[0])
    yield Figure(f"survey {COUNTS[2]} files, each", *each, "ms", f"each of {COUNTS[1]}", 1.15)


def survey(paths: list[Path], jobs: int = 2) -> float:
    """Seconds of a survey."""
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        output = Path(folder, "survey")
        return process((WALKBACK, "survey", "--jobs", str(jobs), "-o", output, *paths))[0]


def _sample() -> list[Path]:
    """Linked ELF files, each once."""
    found = {}
    for folder in FOLDERS:
        for path in sorted(Path(folder).iterdir()):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    if file.read(5) == b"\x7fELF\x02":
                        found[path.stat().st_ino] = path
    return list(found.values())[::EVERY]


def copies(folder: Path, count: int) -> Path:
    """So many different files: one program with a number behind its end."""
    folder.mkdir()
    program = Path(shutil.which("ls") or os.devnull).read_bytes()
    for number in range(count):
        (folder / f"program-{number}").write_bytes(program + number.to_bytes(8, "little"))
    return folder


def main() -> None:
    """What one file costs besides its bytes, and what a megabyte costs: a line through the costs of single files."""
    from walkback.elf import map_file
    from walkback.survey.examine import examine

    sizes, seconds = [], []
    for path in _sample():
        start = time.perf_counter()
        examine(map_file(path), "", debug_roots=())
        seconds.append(time.perf_counter() - start)
        sizes.append(path.stat().st_size / 1e6)
    each, more = np.linalg.lstsq(np.column_stack((np.ones(len(sizes)), sizes)), np.array(seconds), rcond=None)[0]
    print(f"{len(sizes)} files: {each * 1e3:.1f} ms a file and {more * 1e3:.1f} ms a megabyte")


if __name__ == "__main__":
    main()
