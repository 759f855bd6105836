"""The ELF files and archives of folders: what a verb works on when it is given a whole tree."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.base.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGICS = (b"\x7fELF", b"!<arch>\n")


def binaries(folder: str) -> Iterator[list[str]]:
    """The regular files below a folder that begin like an ELF file or an archive, each with all its hard links.

    Symbolic links are not followed. A folder that cannot be listed raises UnreadableError.
    """

    def refused(error: OSError) -> None:
        raise UnreadableError(error.strerror or str(error), file=os.fsdecode(error.filename)) from error

    links: dict[tuple[int, int], list[str]] = {}
    for parent, folders, names in os.walk(folder, onerror=refused):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            with contextlib.suppress(FileNotFoundError):  # gone since
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    links.setdefault((status.st_dev, status.st_ino), []).append(path)
    return (names for names in links.values() if _is_binary(names[0]))


def _is_binary(path: str) -> bool:
    """Whether a file begins like one; what cannot be opened is for the verb to report."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True
    with os.fdopen(descriptor, "rb") as file:
        return file.read(8).startswith(_MAGICS)


def link_again(path: str, *others: str) -> None:
    """Make other names stand for a file that was written anew, as they did for the former."""
    for other in others:
        temporary = Path(other).with_name(f".walkback-{os.urandom(6).hex()}")
        temporary.hardlink_to(path)
        try:
            temporary.rename(other)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
