"""The measures of call frame information: reading it, and deriving SFrame from it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from inputs import CACHE
from measure import LIBRARIES, READELF, WALKBACK, Figure, alternate, fastest, process
from walkback.base.errors import WalkbackError
from walkback.dwarf.decoding import decode
from walkback.dwarf.files import FrameSource
from walkback.dwarf.files import read as cfi_sources
from walkback.dwarf.frames import Frames
from walkback.dwarf.rulewords import RuleKind

SMALL = LIBRARIES / "libcrypto.so.3"
"""What pyelftools reads in seconds. It fails on the C library."""


def frames(rounds: int) -> Iterator[Figure]:
    """All of them."""
    large = largest()
    yield from reading(large, rounds)
    yield from deriving(large, rounds)


def largest() -> Path:
    """The machine's largest library with call frame information."""
    found = [path for path in Path("/usr/lib").rglob("*.so*") if path.is_file() and not path.is_symlink()]
    found.sort(key=lambda path: path.stat().st_size, reverse=True)
    return next(path for path in found if _has_frames(path))


def _has_frames(path: Path) -> bool:
    try:
        return bool(_source(path))
    except (WalkbackError, StopIteration):
        return False


def reading(large: Path, rounds: int) -> Iterator[Figure]:
    """Bytes of `.eh_frame` to the rules of every row: against pyelftools on one file, and on the largest alone."""
    sources = [_source(SMALL), _source(large)]
    slow, rows, cfa = _pyelftools(SMALL)
    decoded = _read(sources[0])
    words = decoded.rule_words[decoded.row_rule, 0].view(np.int64)
    ours = len(words), int((words >> 20)[words & 15 == RuleKind.REGISTER].sum())
    if ours != (rows, cfa):
        message = f"{SMALL} has {ours[0]} rows with the sum {ours[1]}; for pyelftools {rows} with {cfa}"
        raise AssertionError(message)
    quick, large_time = alternate(rounds, *(lambda one=one: fastest(lambda: _read(one)) for one in sources))
    yield Figure(f".eh_frame of {SMALL.name}", quick * 1e3, slow * 1e3, "ms", "pyelftools", 1 / 300)
    each, slow_each = large_time * 1e9 / len(_read(sources[1]).row_offset), slow * 1e9 / rows
    yield Figure(f".eh_frame of {large.name}, a row", each, slow_each, "ns", f"pyelftools, {SMALL.name}", 1 / 300, 50)


def _read(source: FrameSource) -> Frames:
    return decode(source.data, source.machine, address=source.address)


def _source(path: Path) -> FrameSource:
    return next(one for one in cfi_sources(path) if one.name == ".eh_frame")


def _pyelftools(path: Path) -> tuple[float, int, int]:
    """Seconds, number of rows, and the sum of their CFA offsets."""
    with path.open("rb") as file:
        info = ELFFile(file).get_dwarf_info()
        start = time.perf_counter()
        tables = [entry.get_decoded().table for entry in info.EH_CFI_entries() if isinstance(entry, FDE)]
        seconds = time.perf_counter() - start
    cfas = [row["cfa"] for table in tables for row in table]
    return seconds, len(cfas), sum(cfa.offset for cfa in cfas if cfa.expr is None)


def deriving(large: Path, rounds: int) -> Iterator[Figure]:
    """`derive`, the whole process with its proof, against readelf that prints what `derive` reads; and its memory.

    By itself it gives rules to code without call frame information, too, which it looks for in all of the code.
    """
    made = CACHE / "derived.sframe"
    ours = (WALKBACK, "derive", "--source", "cfi", large, "-o", made)
    filling = (WALKBACK, "derive", large, "-o", made)
    theirs = (*READELF, "--debug-dump=frames-interp", large)
    derived, filled, read = alternate(rounds, *(lambda one=one: process(one)[0] for one in (ours, filling, theirs)))
    memory, their_memory = process(ours)[1], process(theirs)[1]
    made.unlink()
    name, peer = f"derive --source cfi {large.name}", "readelf --debug-dump=frames-interp"
    most = 64 + (large.stat().st_size + 40 * len(_read(_source(large)).row_offset)) / 1e6
    yield Figure(name, derived * 1e3, read * 1e3, "ms", peer, 1)
    yield Figure(f"{name}, memory", memory, their_memory, "MB", peer, 1, most)
    yield Figure(f"derive {large.name}", filled * 1e3, read * 1e3, "ms", peer, 2)


def over_everything() -> str:
    """Derive and compare over the whole machine, in one process."""
    found = CACHE / "everything.json"
    script = Path(__file__).with_name("everything.py")
    _, memory = process((sys.executable, script, "/usr/bin", "/usr/sbin", "/usr/lib"), found)
    total = json.loads(found.read_text())
    found.unlink()
    return (
        "derive and compare of every linked file under /usr/bin, /usr/sbin and /usr/lib, in one process: "
        f"{total['files']:,} files, {total['functions']:,} functions, {total['rows']:,} rows; "
        f"{total['uncovered']} functions not covered, {total['different']} files with differences, "
        f"{total['refused']} files refused; {total['seconds']:.1f} s, {memory:.0f} MB at most."
    )
