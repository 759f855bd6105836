"""The measure of a survey: a sample of this machine's programs and libraries, against readelf on the same files.

`python bench/surveying.py PATH...` prints what each part of a survey of these paths takes, as
docs/reference/survey.md has it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import walkback
from inputs import CACHE
from measure import READELF, WALKBACK, Figure, alternate, process
from walkback.packages.walk import FoundFile, elf_files_in
from walkback.surveys.digest import content_digest
from walkback.surveys.examine import examine
from walkback.surveys.finding import SurveyUnit, find_units

FOLDERS = ("/usr/bin", "/usr/lib/x86_64-linux-gnu")
EVERY = 4
"""Of how many files one is taken."""
COUNTS = (100, 1_000, 10_000)
"""Of the same files: what each costs more from one count to the next."""


def surveying(rounds: int) -> Iterator[Figure]:
    """The whole process of `walkback survey` on one core and on two, and as files become a hundred times as many.

    readelf prints one table; a survey makes three, proves them, and measures what else they could be. So the limits
    of the first three are no targets: they are what was measured and a third more, for it to get no worse.
    """
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


def costs(paths: list[Path]) -> Iterator[str]:
    """What each part of a survey takes of one processor, part by part, which adds up to the whole."""
    units = [unit for unit in find_units([str(path) for path in paths]) if isinstance(unit, SurveyUnit)]
    start = time.process_time()
    sizes, examined = [], []
    for unit in units:
        for found in elf_files_in(unit.path):
            if isinstance(found, FoundFile):
                before = time.process_time()
                examine(found.data, content_digest(found.data), debug_roots=())
                examined.append(time.process_time() - before)
                sizes.append(len(found.data) / 1e6)
    opened = time.process_time() - start - sum(examined)
    each, more = np.linalg.lstsq(np.column_stack((np.ones(len(sizes)), sizes)), np.array(examined), rcond=None)[0]
    yield f"{len(units)} units with {len(sizes)} ELF files of {sum(sizes):.0f} MB"
    yield f"looking through: {each * 1e3:.1f} ms a file, {more * 1e3:.1f} ms a megabyte, {sum(examined):.1f} s in all"
    yield f"unpacking: {opened * 1e3 / sum(sizes):.1f} ms a megabyte, {opened:.1f} s in all"
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        start, began = time.process_time(), time.perf_counter()
        walkback.survey(paths, Path(folder, "survey"))
        writing, whole = time.process_time() - start, time.perf_counter() - began
    yield f"finding and writing: {writing * 1e3 / len(sizes):.2f} ms a file, {writing:.1f} s in all"
    yield f"the survey: {whole:.1f} s on {len(os.sched_getaffinity(0))} processors"


def main() -> None:
    """Print the costs of a survey of these paths, or of a sample of this machine."""
    for line in costs([Path(path) for path in sys.argv[1:]] or _sample()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
