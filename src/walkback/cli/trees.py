"""The ELF files and archives of a folder and the folders below it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAGICS = (b"\x7fELF", b"!<arch>\n", b"!<thin>\n")


class Binary(NamedTuple):
    """A file, by all its names in a folder."""

    names: list[str]
    """Hard links; the first is the one to work on."""
    device: int
    inode: int
    links: int
    """How many names it has in the whole file system."""

    def is_at(self, status: os.stat_result) -> bool:
        """Whether this is the status of the file that was listed."""
        return (status.st_dev, status.st_ino) == (self.device, self.inode)

    def listed_again(self) -> Binary:
        """The file that has the first name now, if that is one."""
        try:
            status = os.lstat(self.names[0])
        except OSError:
            return self
        return self._replace(device=status.st_dev, inode=status.st_ino) if stat.S_ISREG(status.st_mode) else self


def binaries(folder: str, problem: Callable[[OSError], None]) -> Iterator[Binary]:
    """The regular files in a folder that begin like an ELF file or an archive; symbolic links are not followed.

    `problem` gets the error of each folder that cannot be listed.
    """
    found: dict[tuple[int, int], Binary] = {}
    for parent, folders, names in os.walk(folder, onerror=problem):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            with contextlib.suppress(FileNotFoundError):  # gone since
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    key = (status.st_dev, status.st_ino)
                    found.setdefault(key, Binary([], *key, status.st_nlink)).names.append(path)
    return (binary for binary in found.values() if _is_binary(binary))


def _is_binary(binary: Binary) -> bool:
    """Whether it begins like one; what cannot be opened or read is for the verb to report."""
    try:
        descriptor = os.open(binary.names[0], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(8).startswith(_MAGICS)
    except OSError:
        return True


def link_again(binary: Binary) -> None:
    """Make the other names of a file stand for it again after its first name was given to a new file.

    Nothing is done if the first name still stands for the former file, and a name that stands for another by now is
    left alone.
    """
    first, *others = binary.names
    if not others or binary.is_at(os.lstat(first)):
        return
    for other in others:
        temporary = Path(other).with_name(f".walkback-{os.urandom(6).hex()}")
        try:
            temporary.hardlink_to(first)
            if binary.is_at(os.lstat(other)):
                temporary.rename(other)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
