"""Files that a process left for those that look at it: read only if nobody else could have written them."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from walkback.base.errors import UnreadableError


def owners_of(pid: int, proc: str | os.PathLike[str] = "/proc") -> set[int]:
    """The users whose files are believed about a process: its own, if it still runs, root, and who asks."""
    owners = {0, os.geteuid()}
    with contextlib.suppress(OSError):
        owners.add(Path(proc, str(pid)).stat().st_uid)
    return owners


def read_owned(path: str | os.PathLike[str], owners: set[int], most: int, begin: int = 0) -> bytes:
    """The contents of a regular file that one of these users owns, and that is no symbolic link.

    From `begin` on, it reads up to `most` bytes.
    """
    name = os.fsdecode(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableError("this is not a regular file", file=name)
            if status.st_uid not in owners:
                raise UnreadableError(f"it belongs to user {status.st_uid}, who may not write it", file=name)
            return os.pread(descriptor, max(min(status.st_size - begin, most), 0), begin)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # a NUL in the path
        raise UnreadableError(getattr(error, "strerror", None) or str(error), file=name) from error
