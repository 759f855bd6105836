"""The measure of linking: an index of what another linker concatenated, against GNU ld's work on the same objects."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from inputs import BIN, CACHE, PEERS, functions
from measure import LIBRARIES, LOADER, SID, WALKBACK, Figure, alternate, process
from walkback.sframe.files import read

FUNCTIONS = 118_000
"""A little more than a million rows."""
OBJECTS = (300, 3000)
ALLOWED = 0.15
"""Seconds that a Python program may need besides: to start, and to read and write what GNU ld has in memory."""
_LD = (LOADER, "--inhibit-cache", "--library-path", LIBRARIES, SID / "bin" / "x86_64-linux-gnu-ld", "-shared")


def linking(rounds: int) -> Iterator[Figure]:
    """The whole process of `walkback link`, against a run of GNU ld less one with `--discard-sframe`."""
    for count in OBJECTS:
        folder = _objects(count)
        library, objects = folder / "lld.so", sorted(folder.glob("*.o"))
        _check(folder, objects)
        scratch = folder / "scratch"
        ours, whole, without = alternate(
            rounds,
            lambda library=library, scratch=scratch: process((WALKBACK, "link", library, "-o", scratch))[0],
            lambda objects=objects, scratch=scratch: process((*_LD, "-o", scratch, *objects))[0],
            lambda objects=objects, scratch=scratch: process((*_LD, "--discard-sframe", "-o", scratch, *objects))[0],
        )
        title = f"index 1.1 M rows of {count} objects"
        yield Figure(title, ours, whole - without + ALLOWED, "s", "GNU ld, its SFrame work + 150 ms", 1)


def _objects(count: int) -> Path:
    """The objects, and the library that lld makes of them; made once."""
    text = Path(__file__).read_bytes() + (PEERS / "peers.json").read_bytes()
    folder = CACHE.with_name("bench-linking") / f"{hashlib.sha256(text).hexdigest()[:12]}-{count}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(dir=folder.parent))
        _assemble(new, count)
        subprocess.run([BIN / "ld.lld", "-shared", "-o", new / "lld.so", *sorted(new.glob("*.o"))], check=True)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    return folder


def _assemble(folder: Path, count: int) -> None:
    head, *lines = functions(FUNCTIONS)
    text: list[str] = []
    done = objects = 0
    for line in lines:
        text.append(line)
        done += ".size" in line
        if done * count >= (objects + 1) * FUNCTIONS and ".size" in line:
            command = [BIN / "as-new", "--gsframe", "-o", folder / f"{objects:05}.o"]
            subprocess.run(command, input="".join([head, *text]).encode(), check=True)
            text, objects = [], objects + 1


def _check(folder: Path, objects: list[Path]) -> None:
    """Both have the same functions and rows."""
    theirs, ours = folder / "gnu.so", folder / "walkback.sframe"
    subprocess.run([*_LD, "-o", theirs, *objects], check=True)
    subprocess.run([WALKBACK, "link", folder / "lld.so", "-o", ours], check=True, stdout=subprocess.DEVNULL)
    counts = []
    for path in (theirs, ours):
        (section,) = (piece.section for source in read(path) for piece in source.pieces())
        counts.append((len(section.functions), len(section.row_start), section.sorted))
    if counts[0] != counts[1]:
        message = f"GNU ld has (functions, rows, sorted) {counts[0]}, walkback {counts[1]}"
        raise AssertionError(message)
