"""Tables made from code alone, beside the call frame information that they do without: a table of shares.

Without arguments: programs of this machine, and programs and libraries of two others (`make peers`).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from codetables import compared
from peers import root
from walkback.base.errors import WalkbackError

_FILES = 100
"""Of each machine, besides those of compilers and languages that a distribution's base does not have."""
_FOLDERS = (("AMD64", "", "samples-amd64"), ("AArch64", "arm64", "samples-arm64"), ("s390x", "s390x", "samples-s390x"))
"""Of the programs of this machine, or of the peers, and of the samples."""


def main() -> None:
    print("| | files | seconds | bytes | described by both | left out | contradicting |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    if len(sys.argv) > 1:
        print(_line("files", [Path(one) for one in sys.argv[1:]]))
        return
    for machine, base, samples in _FOLDERS:
        folder = root(base) if base else Path("/")
        found = sorted({*folder.glob("usr/bin/*"), *folder.glob("usr/lib/*-linux-gnu/*.so.*")})
        found = [path for path in found if path.is_file() and not path.is_symlink() and _is_elf(path)]
        more = sorted(path for path in root(samples).rglob("*") if path.is_file() and _is_elf(path))
        print(_line(machine, found[:: max(len(found) // _FILES, 1)][:_FILES] + more), flush=True)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _line(name: str, paths: list[Path]) -> str:
    both = contradicting = first = files = 0
    start = time.perf_counter()
    for path in paths:
        try:
            found = compared(path)
        except (WalkbackError, AssertionError) as error:
            print(f"{path}: {error or 'no call frame information'}", file=sys.stderr)
            continue
        both, contradicting, first, files = both + found[0], contradicting + found[1], first + found[2], files + 1
        if found[1]:
            print(f"{path}: {found[1]} of {found[0]} bytes contradict", file=sys.stderr)
    seconds = time.perf_counter() - start
    share, left = 100 * both / max(first, 1), 100 * (first - both) / max(first, 1)
    return f"| {name} | {files} | {seconds:.1f} | {first:,} | {share:.2f} % | {left:.2f} % | {contradicting:,} |"


if __name__ == "__main__":
    main()
