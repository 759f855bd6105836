"""How fast tables other than call frame information are read, and made from code: a table of times (`make peers`).

Times are of decoding alone: without opening the file, and without putting the rules together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import walkback
from measure import fastest
from peers import root
from walkback.gopclntab import decode
from walkback.orc import decode as decode_orc
from walkback.orc import read as read_orc
from walkback.packages.walk import FoundFile, elf_files_in
from walkback.proof.fromcode import table_of_code
from walkback.proof.functions import undescribed_code
from walkback.proof.prove import Prover

_PROGRAMS = ("/usr/bin/git", "/usr/bin/perl", "/usr/lib/x86_64-linux-gnu/libc.so.6")
"""Whose tables are made from code."""


def main() -> None:
    print("| what | | time | each |")
    print("|---|---:|---:|---:|")
    for what, count, unit, work in _works():
        seconds = fastest(work, 5)
        print(f"| {what} | {count:,} {unit} | {1e3 * seconds:.3g} ms | {_each(seconds, count)} |", flush=True)


def _works() -> Iterator[tuple[str, int, str, Callable[[], object]]]:
    """What is measured: its name, how many things it reads, and what they are."""
    [path] = root("kernel-6.12").glob("**/vmlinuz*")
    [found] = elf_files_in(str(path))
    assert isinstance(found, FoundFile)
    [orc] = read_orc(walkback.ElfFile(found.data, str(path)))
    # The table of a linked kernel has no sections of its own.
    yield "ORC table of Linux 6.12", len(orc.entries), "entries", lambda: decode_orc(orc.data, orc.places, orc.layout)
    [path] = root("go-1.24").glob("usr/lib/go-*/bin/go")
    [go] = walkback.gopclntab.read(path)
    text = int(go.functions.start[0])
    yield "Go's table of `go` 1.24", int(go.functions.rows.sum()), "rows", lambda: decode(go.data, text=text)
    for name in _PROGRAMS:
        functions = len(_from_code(name).range_start)
        yield f"table from the code of `{Path(name).name}`", functions, "functions", lambda name=name: _from_code(name)


def _from_code(path: str) -> walkback.table.UnwindTable:
    prover, nothing = Prover(walkback.ElfFile(path), ()), np.zeros(0, np.uint64)
    return table_of_code(prover, undescribed_code(prover, nothing, nothing))


def _each(seconds: float, count: int) -> str:
    each = seconds / count
    return f"{1e9 * each:.3g} ns" if each < 1e-6 else f"{1e6 * each:.3g} us"


if __name__ == "__main__":
    main()
