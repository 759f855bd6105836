"""Real ELF files."""

from __future__ import annotations

import contextlib
import sys
import sysconfig
from pathlib import Path

import pytest

SMALL_ENOUGH = 8_000_000


def is_wanted(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(5) == b"\x7fELF\x02" and path.stat().st_size < SMALL_ENOUGH
    return False


def real_files() -> list[Path]:
    """A few of each kind: programs, libraries, Python's extensions, start files."""
    folders = [("/usr/bin", "*"), ("/usr/lib/x86_64-linux-gnu", "*.so*"), ("/usr/lib/x86_64-linux-gnu", "*.o")]
    folders += [("/usr/lib64", "*.so*"), (sysconfig.get_path("platstdlib") + "/lib-dynload", "*.so")]
    found = [Path(sys.executable).resolve()]
    for folder, pattern in folders:
        paths = sorted(path for path in Path(folder).glob(pattern) if not path.is_symlink())
        found += list(filter(is_wanted, paths[:: max(1, len(paths) // 8)]))
    return found


FILES = pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
