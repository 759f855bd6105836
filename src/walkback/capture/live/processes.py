"""Running processes by their names."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTERPRETER = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|php|lua|tclsh|guile|Rscript|bash|dash|sh|zsh|ksh|fish|busybox)[0-9.]*"
)


_LONGEST = 15
"""Bytes of a name that the kernel keeps."""


class Running(NamedTuple):
    """A process."""

    pid: int
    names: tuple[str, ...]
    """The kernel's name, of 15 bytes at most; that of the program where the kernel cut it; that of a script."""
    command: str
    """The command line."""


def running() -> Iterator[Running]:
    """All processes but this one."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            kept = os.fsdecode(Path("/proc", entry, "comm").read_bytes().rstrip(b"\n"))
            line = os.fsdecode(Path("/proc", entry, "cmdline").read_bytes().rstrip(b"\0"))
        except OSError:  # it has just ended
            continue
        arguments = line.split("\0")
        yield Running(int(entry), tuple(dict.fromkeys(_names(kept, arguments))), " ".join(arguments))


def _names(kept: str, arguments: list[str]) -> Iterator[str]:
    yield kept
    program = os.path.basename(arguments[0])
    if len(os.fsencode(kept)) == _LONGEST and program.startswith(kept):
        yield program
    if len(arguments) > 1 and _INTERPRETER.fullmatch(program.removeprefix("-")):
        script = os.path.basename(arguments[1])
        if script and not script.startswith("-"):
            yield script


def processes_named(name: str) -> dict[int, str]:
    """The processes with this name, and their command lines; not this one."""
    return {one.pid: one.command for one in running() if name in one.names}
