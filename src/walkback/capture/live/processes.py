"""Running processes by their names, as `ps` shows them."""

from __future__ import annotations

import os
from pathlib import Path

_LONGEST = 15
"""Bytes of a name that the kernel keeps; the rest is in the command line."""


def processes_named(name: str) -> dict[int, str]:
    """The processes with this name, and their command lines; not this one."""
    commands = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            kept = Path("/proc", entry, "comm").read_bytes().rstrip(b"\n")
            if not os.fsencode(name).startswith(kept):
                continue
            arguments = Path("/proc", entry, "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        except OSError:  # it has just ended
            continue
        whole = os.path.basename(arguments[0]) if len(kept) == _LONGEST else kept
        if whole == os.fsencode(name):
            commands[int(entry)] = os.fsdecode(b" ".join(arguments))
    return commands
