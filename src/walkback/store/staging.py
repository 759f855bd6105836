"""Where a segment is made, out of sight, until one renaming puts it into the store.

Who makes one holds a lock as long as it lives. What a killed writer left is known by the lock that nobody holds, and
anybody may take it away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from walkback.store import layout

if TYPE_CHECKING:
    from walkback.store.folder import StoreFolder, Turn

_ALIVE = "alive"
"""The file whose lock says that the writer lives."""
_CONTENTS = "segment"


class Staging:
    """A segment in the making.

    with Staging(folder) as staging:
        ...                     # write into staging.path
        staging.publish()
    """

    def __init__(self, folder: StoreFolder) -> None:
        self._folder = folder
        folder.staging.mkdir(exist_ok=True)
        self.id, self._own, self._lock = _begin(folder.staging)
        self.path = self._own / _CONTENTS
        try:
            self.path.mkdir()
        except BaseException:
            self.close()
            raise

    @property
    def spilled(self) -> Path:
        """Where what is too large for memory may be put; it goes with what was not published."""
        return self._own

    @property
    def published(self) -> Path:
        """Where the segment is once it has appeared."""
        return self._folder.path / f"{layout.SEGMENT}{self.id}"

    def publish(self, turn: Turn | None = None) -> None:
        """Bring all to the disk, and let it appear: from here on it is there whatever happens."""
        self._folder.publish(self.path, self.id, turn)

    def take(self, path: Path, name: str) -> None:
        """Have what is at a path as a part of this, in one step; it goes when this does."""
        path.rename(self.path / name)

    def close(self) -> None:
        """Take away what was not published."""
        try:
            shutil.rmtree(self._own)
        finally:
            os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def new_id() -> str:
    """A name that no other segment has; names are in the order of time."""
    return f"{time.time_ns():016x}{os.urandom(4).hex()}"


def begun(number: str) -> int:
    """When a segment was begun, in nanoseconds since 1970, by the clock of its writer."""
    return int(number[:16], 16)


def _begin(staging: Path) -> tuple[str, Path, int]:
    """A new folder, and the lock in it."""
    while True:
        number = new_id()
        own = staging / number
        own.mkdir()
        with contextlib.suppress(FileNotFoundError):  # somebody who cleans up was faster
            lock = os.open(own / _ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(lock), (own / _ALIVE).stat()):
                    return number, own, lock
            except (BlockingIOError, FileNotFoundError):
                pass
            os.close(lock)


def clean(folder: StoreFolder) -> list[str]:
    """Take away what killed writers left; returns the names of what that was."""
    try:
        left = sorted(folder.staging.iterdir())
    except FileNotFoundError:
        return []
    return [own.name for own in left if _remove_dead(own)]


def _remove_dead(own: Path) -> bool:
    try:
        lock = os.open(own / _ALIVE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        # Its writer was killed, or is just about to make the lock: then it will take another name.
        try:
            own.rmdir()
        except OSError:
            return False
        return True
    except NotADirectoryError:
        return False  # no writer makes a file here
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        # The lock's own file goes last, so that what is left of this in a crash is still known as dead.
        shutil.rmtree(own / _CONTENTS, ignore_errors=True)
        shutil.rmtree(own, ignore_errors=True)
        return True
    finally:
        os.close(lock)
