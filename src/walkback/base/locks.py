"""Locks between processes: a file that one holds alone, or several together, until they end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from walkback.base.errors import UnreadableError


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Hold a lock; gives False where somebody else has it and waiting was not wanted."""
    descriptor = _open_lock(path, shared=shared)
    try:
        held = True
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)


def _open_lock(path: Path, *, shared: bool) -> int:
    """To read, a folder needs no more than to be readable; but who copied it may have left an empty file out.

    Whose folder it is may have put something else there: a link is not followed, and what is no file is refused.
    """
    try:
        descriptor = _open_own(path, shared=shared)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableError("this is a link, and no lock", file=str(path)) from None
        if not shared or error.errno not in (errno.EROFS, errno.EACCES):
            raise
        # Nobody who may not write takes anything away here.
        return os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableError("this is not a regular file", file=str(path))
    return descriptor


def _open_own(path: Path, *, shared: bool) -> int:
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    if shared:
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY | flags)
    return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
