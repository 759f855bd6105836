"""Processes of a survey."""

from __future__ import annotations

import subprocess


def children(process: int) -> set[int]:
    """The processes under another."""
    found = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in found.splitlines())}
    below = {process}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return below - {process}
