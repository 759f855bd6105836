"""Files made to do harm, and the moments at which others change a file."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_armed: list[Callable[[], None]] = []
_hooked = False


def when_writing_begins(act: Callable[[], None]) -> None:
    """Do something once, as soon as the next temporary file for an output is about to be made."""
    global _hooked  # noqa: PLW0603 - a hook can never be taken away
    if not _hooked:
        sys.addaudithook(_on_event)
        _hooked = True
    _armed[:] = [act]


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if _armed and event == "open" and str(arguments[0]).startswith(".walkback-"):
        _armed.pop()()


def sparse(path: Path, contents: bytes, size: int) -> Path:
    """A file that claims more than it has on the disk."""
    path.write_bytes(contents)
    os.truncate(path, size)
    return path
