"""How much memory this process may have: that of the machine, or less in a control group."""

from __future__ import annotations

import os
from pathlib import Path

_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def memory() -> int:
    """In bytes."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        lines = _GROUP.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return found
    for line in lines:
        match line.split(":", 2):
            case [_, "", path]:  # of the second version
                root, name = _GROUPS, "memory.max"
            case [_, controllers, path] if "memory" in controllers.split(","):
                root, name = _GROUPS / "memory", "memory.limit_in_bytes"
            case _:
                continue
        group = root / path.lstrip("/")
        found = min([found, *(_limit(one / name) for one in (group, *group.parents) if one.is_relative_to(root))])
    return found


def _limit(file: Path) -> int:
    """What a control group allows; much where it says nothing."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # there is no such file, or it says "max"
        return 1 << 63
