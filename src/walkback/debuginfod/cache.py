"""The folder that all clients of debuginfod share: CACHE/<build ID>/debuginfo and CACHE/<build ID>/executable.

An empty file says that no server had it when it was made. Files `cache_miss_s`, `cache_clean_interval_s` and
`max_unused_age_s` in the folder say for how many seconds that counts, how often files are removed that nobody used, and
after how long.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_SECONDS = {"cache_miss_s": 600, "cache_clean_interval_s": 24 * 3600, "max_unused_age_s": 7 * 24 * 3600}
_BUILD_ID = re.compile(r"[0-9a-f]{2,128}")
_KEPT = re.compile(r"(debuginfo|executable|source|section|\.new-).*")


class FileCache:
    """One such folder, which is made when something comes into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, build_id: bytes, kind: str) -> Path:
        """Where the file is, if it is there."""
        return self.folder / build_id.hex() / kind.replace("/", "-")

    def find(self, build_id: bytes, kind: str) -> Path | None:
        """The file, if it is there."""
        path = self.path(build_id, kind)
        with contextlib.suppress(OSError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode) and status.st_size:
                with contextlib.suppress(OSError):  # another user's cache, or one that nobody can write to
                    os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))  # it is in use
                return path
        return None

    def is_missing(self, build_id: bytes, kind: str) -> bool:
        """Whether no server had it a short time ago."""
        with contextlib.suppress(OSError):
            status = self.path(build_id, kind).stat()
            return not status.st_size and time.time() - status.st_mtime < self._seconds("cache_miss_s")
        return False

    def note_missing(self, build_id: bytes, kind: str) -> None:
        """Note that no server has it."""
        with contextlib.suppress(OSError), self.writing(build_id, kind):
            pass

    @contextlib.contextmanager
    def writing(self, build_id: bytes, kind: str) -> Iterator[BinaryIO]:
        """What is written gets its name when all of it is there, and is gone if that fails."""
        path = self.path(build_id, kind)
        self._make(self.folder)
        self._make(path.parent)
        number, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        try:
            with os.fdopen(number, "w+b") as file:
                yield file
                os.fchmod(file.fileno(), 0o400)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def clean(self) -> None:
        """Remove what nobody used for long, if that was not done lately."""
        interval = self.folder / "cache_clean_interval_s"
        now = time.time()
        with contextlib.suppress(OSError):
            if not interval.exists():
                self._make(self.folder)
                for name, seconds in _SECONDS.items():
                    (self.folder / name).write_text(str(seconds))
            elif now - interval.stat().st_mtime > self._seconds(interval.name):
                os.utime(interval)
                self._remove_unused(now - self._seconds("max_unused_age_s"))

    def _remove_unused(self, before: float) -> None:
        with os.scandir(self.folder) as entries:
            folders = [one.path for one in entries if _BUILD_ID.fullmatch(one.name) and _is_own_folder(one.path)]
        for folder in folders:
            with os.scandir(folder) as entries:
                old = [one.path for one in entries if _KEPT.fullmatch(one.name) and one.stat().st_atime < before]
            for path in old:
                os.unlink(path)
            with contextlib.suppress(OSError):  # something is left in it
                os.rmdir(folder)

    def _seconds(self, name: str) -> int:
        with contextlib.suppress(OSError, ValueError), open(self.folder / name, "rb") as file:
            return int(file.read(16))
        return _SECONDS[name]

    def _make(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_own_folder(folder):
            raise PermissionError(0, "this is a link, or others can write there", str(folder))


def _is_own_folder(path: str | os.PathLike[str]) -> bool:
    """Whether only this user and his own group can write into a folder; a link to one does not count."""
    status = os.lstat(path)
    others = 0o002 if status.st_gid == os.getegid() else 0o022
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & others
