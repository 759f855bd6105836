"""The memory that a process may have is that of its control group, or of one around it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from walkback.base import memory

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of control groups; this process is in the one that `own` names."""
    monkeypatch.setattr(memory, "_GROUP", tmp_path / "own")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    (tmp_path / "groups/memory/a/b").mkdir(parents=True)
    (tmp_path / "groups/a/b").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("own", "file", "text", "expected"),
    [
        ("0::/a/b\n", "a/b/memory.max", "1000000\n", 1000000),
        ("0::/a/b\n", "a/memory.max", "2000000\n", 2000000),
        ("0::/\n", "memory.max", "3000000\n", 3000000),
        ("0::/a/b\n", "a/b/memory.max", "max\n", MACHINE),
        ("0::/a/b\n", "a/b/memory.max", f"{MACHINE + 1}\n", MACHINE),
        ("0::/a\n", "a/b/memory.max", "1000000\n", MACHINE),
        ("0::/../../a\n", "a/memory.max", "nonsense", MACHINE),
        ("3:cpu:/\n9:hugetlb,memory:/a/b\n", "memory/a/memory.limit_in_bytes", "4000000\n", 4000000),
        ("nothing", "memory.max", "5000000\n", MACHINE),
        ("", "memory.max", "5000000\n", MACHINE),
    ],
)
def test_the_least_limit_counts(own: str, file: str, text: str, expected: int, groups: Path) -> None:
    (groups / "own").write_text(own)
    (groups / "groups" / file).write_text(text)
    assert memory.memory() == expected


def test_without_control_groups_it_is_the_machine(groups: Path) -> None:
    assert memory.memory() == MACHINE
