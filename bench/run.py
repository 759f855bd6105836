"""The benchmarks: walkback and a peer on the same input, in one run, turn and turn about.

Of each measure's rounds the fastest counts, for start-up times the median. The answers are compared as well: a fast
wrong answer is an error here. With `--markdown` the table is one for the README.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from backtraces import backtraces
from frames import frames, over_everything
from inputs import CACHE, Input, inputs
from lines import lining
from linking import linking
from measure import LIBRARIES, LOADER, READELF, SID, WALKBACK, Figure, alternate, fastest, process
from stopping import stopping
from storing import storing
from surveying import surveying
from unwinding import inlining, unwinding
from verifying import verifying
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode, with_byteorder
from walkback.sframe.rules import to_table
from walkback.table.table import UnwindTable

LOOKUPS = 1_000_000
COLUMNS = ("what", "walkback", "peer", "which is", "ratio", "at most", "holds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="print a table for the README")
    parser.add_argument("--rounds", type=int, default=7, help="of each measure")
    options = parser.parse_args()
    made = inputs()
    peer = _compile_peer()
    figures: list[Figure] = []
    for one in made:
        for measure in (decoding, foreign_order, encoding, finding, printing):
            figures.extend(measure(one, peer, options.rounds))
    figures.extend(frames(options.rounds))
    figures.extend(verifying(min(options.rounds, 3)))
    figures.extend(linking(options.rounds))
    figures.extend(stopping(options.rounds))
    figures.extend(unwinding(options.rounds))
    figures.extend(inlining(options.rounds))
    figures.extend(lining(options.rounds))
    figures.extend(backtraces(options.rounds))
    figures.extend(storing(min(options.rounds, 3)))
    figures.extend(surveying(min(options.rounds, 3)))
    figures.append(starting(20))
    print(_conditions(made[-1]))
    rows = [COLUMNS, *(figure.cells() for figure in figures)]
    print(_markdown(rows) if options.markdown else _aligned(rows))
    print(f"\n{over_everything()}")
    sys.exit(0 if all(figure.holds for figure in figures) else 1)


# The measures


def decoding(one: Input, peer: Path, rounds: int) -> Iterator[Figure]:
    """Bytes to columns, and on to the rule of every row, against decoding and visiting every row."""
    data = one.section.read_bytes()
    if one.version == 1:  # libsframe reads no version 1
        return
    columns, rules, visited = alternate(
        rounds,
        lambda: fastest(lambda: decode(data)),
        lambda: fastest(lambda: to_table(decode(data))),
        lambda: _peer_time(peer, "visit", one.section),
    )
    ours = to_table(decode(data))
    offsets = ours.rules["cfa"]["offset"][ours.row_rule]
    _agree(_peer_answer(peer, "visit", one.section), len(offsets), offsets.sum())
    name = f"decode V{one.version}"
    yield Figure(name, columns * 1e3, visited * 1e3, "ms", "libsframe, every row", 1 / 4)
    yield Figure(f"{name}, rules", rules * 1e3, visited * 1e3, "ms", "libsframe, every row", 1 / 4)


def foreign_order(one: Input, _peer: Path, rounds: int) -> Iterator[Figure]:
    """A section of the other byte order against the same of this machine's."""
    data = one.section.read_bytes()
    foreign = encode(with_byteorder(decode(data), "big" if sys.byteorder == "little" else "little"))
    other, native = alternate(rounds, lambda: fastest(lambda: decode(foreign)), lambda: fastest(lambda: decode(data)))
    yield Figure(f"decode V{one.version}, foreign", other * 1e3, native * 1e3, "ms", "native order", 1.2)


def encoding(one: Input, _peer: Path, rounds: int) -> Iterator[Figure]:
    """Columns to bytes against bytes to columns."""
    data = one.section.read_bytes()
    section = decode(data)
    assert encode(section) == data
    out, back = alternate(rounds, lambda: fastest(lambda: encode(section)), lambda: fastest(lambda: decode(data)))
    yield Figure(f"encode V{one.version}", out * 1e3, back * 1e3, "ms", "decode", 2)


def finding(one: Input, peer: Path, rounds: int) -> Iterator[Figure]:
    """The rows that hold at random addresses of the code."""
    if one.version == 1:
        return
    section = decode(one.section.read_bytes(), address=one.address)
    unwind = to_table(section)
    pcs = _addresses(unwind)
    ranges, rows = unwind.find_many(pcs)
    relative = pcs - np.uint64(one.address)
    if not section.pcrel:
        # libsframe counts every start from its own field, so without the flag the place asked for is moved.
        relative += (section.fde_start + ranges * section.fde_size).astype(np.uint64)
    asked = CACHE / "pcs.bin"
    relative.tofile(asked)
    offsets = unwind.rules["cfa"]["offset"][unwind.row_rule[rows]]
    _agree(_peer_answer(peer, "find", one.section, asked), len(rows), offsets.sum())
    ours, theirs = alternate(
        rounds,
        lambda: fastest(lambda: unwind.find_many(pcs)),
        lambda: _peer_time(peer, "find", one.section, asked),
    )
    scale = 1e9 / len(pcs)
    yield Figure(f"find in V{one.version}", ours * scale, theirs * scale, "ns", "sframe_find_fre", 1 / 4)


def printing(one: Input, _peer: Path, rounds: int) -> Iterator[Figure]:
    """`show --format gnu`, the whole process, writing to a file, against readelf; and its memory."""
    if one.version == 1:  # the newest readelf reads no version 1
        return
    ours = (WALKBACK, "show", "--format", "gnu", one.library)
    theirs = (*READELF, "--sframe", one.library)
    texts = (CACHE / "walkback.txt", CACHE / "readelf.txt")
    shown, read = alternate(rounds, lambda: process(ours, texts[0])[0], lambda: process(theirs, texts[1])[0])
    memory, their_memory = process(ours, texts[0])[1], process(theirs, texts[1])[1]
    if texts[0].read_bytes().strip() != texts[1].read_bytes().strip():
        message = f"{texts[0]} and {texts[1]} differ"
        raise AssertionError(message)
    name = f"show --format gnu V{one.version}"
    yield Figure(name, shown * 1e3, read * 1e3, "ms", "readelf --sframe", 1)
    yield Figure(f"{name}, memory", memory, their_memory, "MB", "readelf --sframe", 1, 150)
    for text in texts:
        text.unlink()


def starting(rounds: int) -> Figure:
    """What `walkback --help` costs more than Python alone."""
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(rounds):
        ours.append(process((WALKBACK, "--help"))[0] * 1e3)
        bare.append(process((sys.executable, "-c", "pass"))[0] * 1e3)
    base = statistics.median(bare)
    return Figure("--help", statistics.median(ours), base, "ms", "python -c pass", 1, base + 60)


# The peer's program


def _compile_peer() -> Path:
    """The program on libsframe; its headers need two macros of a header that the package does not have."""
    program = CACHE / "libsframe"
    (CACHE / "ansidecl.h").write_text(
        "#define ATTRIBUTE_PACKED __attribute__ ((packed))\n#define ATTRIBUTE_UNUSED __attribute__ ((unused))\n"
    )
    source = Path(__file__).with_name("libsframe.c")
    link = f"-Wl,--allow-shlib-undefined,-rpath,{LIBRARIES},--dynamic-linker,{LOADER}"
    include = (f"-I{CACHE}", f"-I{SID / 'include'}")
    command = ("gcc", "-O2", *include, "-o", program, source, LIBRARIES / "libsframe.so.3", link)
    subprocess.run(command, check=True)
    return program


def _peer_run(peer: Path, work: str, section: Path, times: int, pcs: tuple[Path, ...]) -> list[int]:
    done = subprocess.run([peer, work, section, str(times), *pcs], check=True, capture_output=True)
    return [int(word) for word in done.stdout.split()]


def _peer_time(peer: Path, work: str, section: Path, *pcs: Path) -> float:
    return _peer_run(peer, work, section, 3, pcs)[0] / 1e9


def _peer_answer(peer: Path, work: str, section: Path, *pcs: Path) -> tuple[int, int]:
    _, rows, cfa, _ = _peer_run(peer, work, section, 1, pcs)
    return rows, cfa


def _agree(theirs: tuple[int, int], rows: int, cfa: int) -> None:
    """Number of rows and sum of their CFA offsets."""
    if theirs != (rows, cfa):
        message = f"{rows} rows with the sum {cfa}; libsframe has {theirs[0]} with {theirs[1]}"
        raise AssertionError(message)


def _addresses(unwind: UnwindTable) -> np.ndarray:
    """Random addresses from the first function to the end of the last that have a row; a few lie between functions."""
    rng = np.random.default_rng(20)
    first = unwind.range_start.min()
    last = (unwind.range_start + unwind.range_size).max()
    pcs = rng.integers(first, last, LOOKUPS * 5 // 4, np.uint64)
    return pcs[unwind.find_many(pcs)[1] >= 0][:LOOKUPS]


# How they are printed


def _conditions(one: Input) -> str:
    section = decode(one.section.read_bytes())
    model = [line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return (
        f"{len(section.functions):,} functions, {len(section.row_start):,} rows, "
        f"{one.section.stat().st_size / 1e6:.1f} MB of version {one.version}. "
        f"Python {platform.python_version()}, NumPy {np.__version__}, {' '.join(model[:1])} ({os.cpu_count()} cores).\n"
    )


def _aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _markdown(rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
