"""Arrays kept on disk, ready to use: entries of a folder, under names that say what they were made from.

Entries are written beside and renamed, so that processes can share a folder; what cannot be read is made again. The
folder is bounded: the entries that were not used for longest go first. It can be removed at any time. A folder that
somebody else can write keeps nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_MAGIC = b"walkback table\n"
_DEFAULT_LIMIT = 1 << 30
_ENTRY = re.compile(r"[0-9a-f]{40}\.(?:table|lines)|\.[0-9a-f]{12}\.part")
_ALIGNMENT = 64


def default_folder() -> Path:
    """Where entries are kept: `WALKBACK_CACHE`, else by the XDG conventions."""
    chosen = os.environ.get("WALKBACK_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "walkback" if base and base.startswith("/") else Path("~/.cache/walkback").expanduser()


class ArrayCache:
    """A folder of entries."""

    def __init__(self, folder: Path, *, limit: int = _DEFAULT_LIMIT) -> None:
        """`limit` is to how many bytes the entries may come."""
        self._folder = folder
        self._limit = limit

    def write(self, name: str, arrays: Mapping[str, np.ndarray], rest: Mapping[str, Any]) -> None:
        """Keep an entry, with what else JSON can say of it; a folder that cannot be written keeps nothing."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _held(self._folder) as held:
                temporary = f".{os.urandom(6).hex()}.part"
                try:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                    with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=held), "wb") as out:
                        out.writelines(_contents(arrays, rest))
                    os.rename(temporary, name, src_dir_fd=held, dst_dir_fd=held)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary, dir_fd=held)
                    raise
                self._shrink(held)

    def read(self, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The arrays of an entry and what else it says, or None if there is none that is whole."""
        import hashlib
        import json

        try:
            data = _entry(self._folder, name)
            if hashlib.blake2b(data[:-20], digest_size=20).digest() != bytes(data[-20:]):
                return None
            end = bytes(data[: 1 << 16]).index(b"\n", len(_MAGIC)) + 1
            head = json.loads(bytes(data[len(_MAGIC) : end]))
            place = -(-end // _ALIGNMENT) * _ALIGNMENT
            arrays: dict[str, np.ndarray] = {}
            for column, (dtype, count) in head.pop("arrays").items():
                arrays[column] = np.frombuffer(data, np.dtype(dtype), count, place)
                place += -(-arrays[column].nbytes // _ALIGNMENT) * _ALIGNMENT
        except (OSError, ValueError, KeyError, TypeError, OverflowError, AttributeError, MemoryError):
            return None
        return arrays, head

    def _shrink(self, folder: int) -> None:
        """Take away what was not used for longest, until the rest is within the limit."""
        entries = []
        for name in os.listdir(folder):
            # Whatever else is in the folder is not ours.
            if _ENTRY.fullmatch(name):
                with contextlib.suppress(OSError):
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        entries.append((status.st_mtime_ns, status.st_size, name))
        size = sum(one for _, one, _ in entries)
        for _, one, name in sorted(entries):
            if size <= self._limit:
                break
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
                size -= one


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[int]:
    """The folder, open, so that it stays the one that nobody else can write, whatever its name stands for."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(errno.EPERM, "others can write there", os.fspath(folder))
        yield descriptor
    finally:
        os.close(descriptor)


# What an entry is: the magic, a line of JSON with the shape of every array, and the arrays, aligned.


def _contents(arrays: Mapping[str, np.ndarray], rest: Mapping[str, Any]) -> list[bytes]:
    """An entry, piece by piece."""
    import hashlib
    import json

    shapes = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
    head = _MAGIC + json.dumps({"arrays": shapes, **rest}).encode() + b"\n"
    parts = [head, bytes(-len(head) % _ALIGNMENT)]
    for array in arrays.values():
        parts += [array.tobytes(), bytes(-array.nbytes % _ALIGNMENT)]
    digest = hashlib.blake2b(digest_size=20)
    for part in parts:
        digest.update(part)
    return [*parts, digest.digest()]


def _entry(folder: Path, name: str) -> memoryview:
    """The bytes of an entry, which is a file of our own and no link."""
    with _held(folder) as held:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=held)
        try:
            if os.fstat(descriptor).st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "this is not ours", name)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "this is no regular file", name)
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(_DEFAULT_LIMIT)
            with contextlib.suppress(OSError):
                os.utime(descriptor)
        finally:
            os.close(descriptor)
    return memoryview(data)
