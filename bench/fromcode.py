"""Tables made from code alone, beside the call frame information that they do without: a table of shares.

Without arguments: programs of this machine, and programs and libraries of two others (`make peers`).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from codetables import Compared, compared
from peers import root
from walkback.base.errors import WalkbackError

_FILES = 100
"""Of each machine, besides those of compilers and languages that a distribution's base does not have."""
_FOLDERS = (("AMD64", "", "samples-amd64"), ("AArch64", "arm64", "samples-arm64"), ("s390x", "s390x", "samples-s390x"))
"""Of the programs of this machine, or of the peers, and of the samples."""


def main() -> None:
    print("| | files | seconds | bytes | described by both | contradicting | not held wrong by the proof |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    if len(sys.argv) > 1:
        print(_line("files", [Path(one) for one in sys.argv[1:]]))
        return
    for machine, base, samples in _FOLDERS:
        folder = root(base) if base else Path("/")
        found = sorted({*folder.glob("usr/bin/*"), *folder.glob("usr/lib/*-linux-gnu/*.so.*")})
        found = [path for path in found if _is_elf(path)]
        more = [path for path in sorted(root(samples).rglob("*")) if _is_elf(path) and not _is_other(path)]
        print(_line(machine, found[:: max(len(found) // _FILES, 1)][:_FILES] + more), flush=True)


def _is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _is_other(path: Path) -> bool:
    """Whether functions of a sample call one another in other ways than those of C, or are described elsewhere."""
    return path.name in {"alex", "age", "age-keygen"} or path.name.startswith("cppo")


def _line(name: str, paths: list[Path]) -> str:
    total, files, start = np.zeros(len(Compared._fields), np.int64), 0, time.perf_counter()
    for path in paths:
        try:
            found = compared(path)
        except (WalkbackError, AssertionError) as error:
            print(f"{path}: {error or 'no call frame information'}", file=sys.stderr)
            continue
        total, files = total + found, files + 1
        if found.unexplained:
            print(f"{path}: {found.unexplained} of {found.both} bytes contradict", file=sys.stderr)
    seconds = time.perf_counter() - start
    both, contradicting, unexplained, former = total.tolist()
    share = 100 * both / max(former, 1)
    return f"| {name} | {files} | {seconds:.1f} | {former:,} | {share:.2f} % | {contradicting:,} | {unexplained:,} |"


if __name__ == "__main__":
    main()
