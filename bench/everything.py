"""Derives SFrame for all linked ELF files in folders, compares it, and prints figures as JSON.

Files without call frame information do not count. What is refused is reported on standard error.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from walkback.base.errors import MissingError, WalkbackError
from walkback.elf import ElfFile
from walkback.sections.derive import derive


def main() -> None:
    total = Counter(files=0, functions=0, rows=0, uncovered=0, different=0, refused=0)
    paths = list(linked(sys.argv[1:]))
    start = time.perf_counter()
    for path in paths:
        try:
            total.update(_figures(path))
        except MissingError:
            continue
        except WalkbackError as error:
            total["refused"] += 1
            print(error, file=sys.stderr)
    print(json.dumps({**total, "seconds": time.perf_counter() - start}))


def linked(folders: list[str]) -> Iterator[Path]:
    """Each linked ELF file once, under one of its names."""
    seen = set()
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            status = path.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with path.open("rb") as file:
                head = file.read(18)
            if head[:4] == b"\x7fELF" and head[16:18] in {b"\2\0", b"\3\0", b"\0\2", b"\0\3"}:
                yield path


def _figures(path: Path) -> dict[str, int]:
    with ElfFile(path) as elf:
        made = derive(elf)
        return {
            "files": 1,
            "functions": made.functions,
            "rows": len(made.table.row_offset),
            "uncovered": made.functions - made.covered,
            "different": not made.proof().equal,
        }


if __name__ == "__main__":
    main()
