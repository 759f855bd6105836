"""What is to be surveyed: the files under some paths that are ELF files, or that may hold some.

A folder's own symbolic links are not followed, because what they lead to stands somewhere itself; a path that is given
may be one. What is no regular file is never opened. Other file systems are entered, except those that have no files of
their own but show what the kernel knows.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from walkback.base.dataclass import dataclass
from walkback.base.text import printable
from walkback.identify.names import shown
from walkback.packages.kinds import COMPRESSED, HEAD, kind_of
from walkback.packages.streams import Flow
from walkback.packages.walk import Broken, may_hold_elf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STEP: Final = 1 << 14
_PSEUDO: Final = re.compile(
    rb"binder|binfmt_misc|bpf|cgroup2?|configfs|cpuset|debugfs|devpts|devtmpfs|efivarfs|functionfs|fusectl|hugetlbfs"
    rb"|mqueue|nfsd|nsfs|proc|pstore|resctrl|rpc_pipefs|securityfs|selinuxfs|smackfs|sysfs|tracefs"
)
"""File systems that have no files of their own."""
_GONE: Final = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class SurveyUnit:
    """A regular file that is an ELF file, or that may hold some."""

    path: str
    """As the system has it; `shown` makes text of it."""
    bytes: int
    modified: int
    """When it was changed last, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that was not surveyed."""

    path: str
    """As text."""
    member: str | None
    what: str
    """`missing`: there is no such path. `unreadable`: the system does not let it be read. `not a file`: a path that is
    no regular file or folder, or in a pseudo file system. `damaged`, `unsupported`, `too large`: as `Broken` has it."""
    message: str


def find_units(paths: Sequence[str]) -> Iterator[SurveyUnit | Trouble]:
    """The files under these paths, each once and in the same order each time, and what cannot be looked into."""
    finder = _Finder()
    files = []
    for path in sorted(set(paths)):
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            yield _trouble(path, error)
            continue
        if status.st_dev in finder.pseudo:
            yield Trouble(shown(path), None, "not a file", "this is in a pseudo file system, which has no files")
        elif stat.S_ISDIR(status.st_mode):
            yield from finder.under(path)
        elif stat.S_ISREG(status.st_mode):
            files.append(path)
        else:
            yield Trouble(shown(path), None, "not a file", "this is neither a regular file nor a folder")
    for path in {os.path.realpath(path): path for path in reversed(files)}.values():
        if not finder.has_entered(os.path.dirname(os.path.realpath(path))):
            yield from finder.file(path, 0)


class _Finder:
    """One search, which enters no folder twice."""

    def __init__(self) -> None:
        self.pseudo = _pseudo_devices()
        self._entered: set[tuple[int, int]] = set()

    def has_entered(self, folder: str) -> bool:
        """Whether the files of this folder have been found."""
        try:
            status = os.stat(folder)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) in self._entered

    def under(self, top: str) -> Iterator[SurveyUnit | Trouble]:
        """What is in a folder and the folders in it, sorted by name."""
        stack: list[tuple[str, Iterator[tuple[str, bool]]]] = [("", iter([(top, True)]))]
        while stack:
            folder, entries = stack[-1]
            for name, is_folder in entries:
                path = os.path.join(folder, name)
                if not is_folder:
                    yield from self.file(path, os.O_NOFOLLOW)
                    continue
                try:
                    stack.append((path, iter(self._enter(path))))
                except OSError as error:
                    if path == top or error.errno not in _GONE:
                        yield _trouble(path, error)
                break
            else:
                stack.pop()

    def _enter(self, path: str) -> list[tuple[str, bool]]:
        """The names of files and folders in a folder, and which are folders; none of one that is not to be entered."""
        status = os.stat(path)
        key = (status.st_dev, status.st_ino)
        if key in self._entered or status.st_dev in self.pseudo:
            return []
        with os.scandir(path) as entries:
            found = [
                (entry.name, is_folder)
                for entry in entries
                if (is_folder := entry.is_dir(follow_symlinks=False)) or entry.is_file(follow_symlinks=False)
            ]
        self._entered.add(key)
        found.sort()
        return found

    def file(self, path: str, flags: int) -> Iterator[SurveyUnit | Trouble]:
        """A regular file, if it is of use; `flags` are for opening it."""
        try:
            # Not waiting, should it have become a FIFO meanwhile.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
            try:
                found = self._looked_at(descriptor, path)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno not in _GONE:
                yield _trouble(path, error)
            return
        if found:
            yield found

    def _looked_at(self, descriptor: int, path: str) -> SurveyUnit | Trouble | None:
        kind = kind_of(os.read(descriptor, HEAD), path)
        if kind is None:
            return None
        if kind in COMPRESSED:
            # Read, not mapped: a file that shrinks meanwhile does no harm.
            os.lseek(descriptor, 0, os.SEEK_SET)
            holds = may_hold_elf(Flow(iter(lambda: os.read(descriptor, _STEP), b"")), path)
            if isinstance(holds, Broken):
                return Trouble(shown(path), None, holds.what, holds.message)
            if not holds:
                return None
        status = os.fstat(descriptor)
        return SurveyUnit(path, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def _trouble(path: str, error: OSError | ValueError) -> Trouble:
    if isinstance(error, ValueError):  # a NUL in the path
        return Trouble(shown(path), None, "missing", printable(str(error)))
    what = "missing" if error.errno in _GONE else "unreadable"
    return Trouble(shown(path), None, what, printable(error.strerror or str(error)))


def _pseudo_devices() -> frozenset[int]:
    """The numbers that pseudo file systems have as devices; proc(5), "/proc/[pid]/mountinfo"."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return frozenset()
    found = set()
    for line in lines:
        front, _, back = line.partition(b" - ")
        if _PSEUDO.fullmatch(back.partition(b" ")[0]):
            major, minor = front.split()[2].split(b":")
            found.add(os.makedev(int(major), int(minor)))
    return frozenset(found)
