"""Writing a file whole or not at all.

The contents go to a temporary file beside the target, are synced, and take the target's name in one step. Whoever has
the former file open or runs it keeps it. Killed at any moment, the target is either the old file or the new one.

Others may write in the target's folder, and swap what stands at a path while we work. So the folder is held open, and
nothing in it is looked up through a link. A file that is written anew in place has to be the one that was read: owner,
mode and attributes come from the descriptor it was read through, and another file under its name is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from walkback.base.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHANGED = "it changed while it was read"
_NEW_FILE = 0o666
STDOUT = frozenset({"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
"""Names of standard output."""
_DESCRIPTOR = re.compile(r"/dev/(?:stdin|stderr|fd/\d+)|/proc/[^/]+/(?:task/\d+/)?fd/\d+")
"""Names of what is open already, which is written to as it is."""
_PREFIX = ".walkback-"
_PRIVILEGES = stat.S_ISUID | stat.S_ISGID
_CAPABILITY = "security.capability"
_OF_CONTENTS = frozenset({"security.ima", "security.evm"})
"""Attributes that sign the former contents."""
_NOT_SET = frozenset({errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENODATA})
"""Why an attribute may be passed over: only the system sets it, or it is gone."""


class Held(Protocol):
    """A file that was read and is still open."""

    @property
    def name(self) -> str:
        """Its path."""
        ...

    @property
    def descriptor(self) -> int:
        """What it was read through."""
        ...

    @property
    def status(self) -> os.stat_result:
        """As it was when it was opened."""
        ...


Output = str | os.PathLike[str] | BinaryIO
"""Where a result goes: a path, or what is open for bytes."""


def write_output(output: Output | None, parts: Iterable[bytes | memoryview], *, read: Held | None = None) -> None:
    """Write these parts to what is open, or by `replace_file` to a path, or without an output to the file `read`."""
    if output is None or isinstance(output, str | os.PathLike):
        replace_file(output, parts, read=read)
        return
    for part in parts:
        rest = memoryview(part).cast("B")
        while len(rest):
            written = output.write(rest)
            if written is None:  # as of a pipe that is full and does not wait
                raise BlockingIOError(errno.EAGAIN, "the output takes nothing now")
            rest = rest[written:]


def refuse_lost(source: str | os.PathLike[str], output: str | os.PathLike[str]) -> None:
    """Refuse to write over what is read, a file or one in a folder. A pipe or a terminal loses nothing."""
    read, written = Path(source), Path(output)
    if not written.is_file():
        return
    inside = read.is_dir() and written.resolve().is_relative_to(read.resolve())
    if inside or (read.is_file() and read.samefile(written)):
        raise ArgumentError(f"{os.fsdecode(output)} is what is read, and would be lost")


def replace_file(
    path: str | os.PathLike[str] | None, parts: Iterable[bytes | memoryview], *, read: Held | None = None
) -> None:
    """Make these parts, one after the other, the contents of a file.

    Without a path it is the file that was `read`, written anew in place: it keeps its owner where that is allowed, its
    mode and its extended attributes. If it changed meanwhile, or its name now stands for another file, it is left
    alone.

    Another existing file keeps these too, except for the privileges that a program has by set-user-ID,
    set-group-ID and capabilities: these were for other contents. A new one gets the mode of the file that was read, or
    that of any new file, less the umask. A symbolic link stays one, and what it leads to is replaced; it has to lead to
    something. What is no regular file, such as a pipe or a device, is written to, and so is what a name such as
    /dev/stdout stands for.
    Raises OSError, which names the path.
    """
    replace_files([(path, parts)], read=read)


def replace_files(
    files: Iterable[tuple[str | os.PathLike[str] | None, Iterable[bytes | memoryview]]], *, read: Held | None = None
) -> None:
    """The same for several files: none takes its name before all are written."""
    with contextlib.ExitStack() as stack:
        ready = []
        for path, parts in files:
            name = _name(path, read)
            with _naming(name):
                target = _found(name) if path is not None else None
                if isinstance(target, int):
                    with os.fdopen(target, "ab", buffering=0):
                        _write(target, parts)
                    continue
                new = _New(name, target, read)
                stack.callback(new.close)
                new.begin()
                _write(new.descriptor, parts)
                new.finish()
                ready.append(new)
        for new in ready:
            new.take_name()


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """The same for contents that are written piece by piece to the file that this gives.

    The file takes its name at the end; if there is an exception it never does.
    """
    name = os.fsdecode(path)
    with _naming(name):
        target = _found(name)
    if isinstance(target, int):
        with _naming(name, only_nameless=True), os.fdopen(target, "ab") as out:
            yield out
        return
    new = _New(name, target)
    with contextlib.closing(new):
        new.begin()
        with _naming(name, only_nameless=True), os.fdopen(os.dup(new.descriptor), "wb") as out:
            yield out
        new.finish()
        new.take_name()


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise OSError, which names the path, if its contents could not be replaced now."""
    name = os.fsdecode(path)
    if Path(name).is_fifo():  # whose reader waits for what the first writer has
        return
    with _naming(name):
        target = _found(name)
    if isinstance(target, int):
        os.close(target)
        return
    with contextlib.closing(_New(name, target)) as new:
        new.begin()


def _name(path: str | os.PathLike[str] | None, read: Held | None) -> str:
    if path is not None:
        return os.fsdecode(path)
    if read is None:
        raise ArgumentError("what is in memory has no place to be written to; an output is needed")
    return read.name


@contextlib.contextmanager
def _naming(name: str, *, only_nameless: bool = False) -> Iterator[None]:
    """Errors of the system name the target, whatever temporary file or folder they are about.

    With `only_nameless` those that name a file stay: they are of whoever makes the contents.
    """
    try:
        yield
    except OSError as error:
        if only_nameless and error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, name) from None


class _Target(NamedTuple):
    """What an output replaces, as it was when its name was looked up, which happens once."""

    path: str
    status: os.stat_result | None
    """Of the existing file, if there is one."""


def _found(name: str) -> int | _Target:
    """A descriptor of what is written to and not replaced; or the file that is replaced."""
    # At its end: an output that is redirected to a file may hold something already.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY
    if name in STDOUT:  # even where it is a socket, or a file that may not be opened again
        return os.dup(1)
    if _DESCRIPTOR.fullmatch(name):
        return os.open(name, flags)
    try:
        place = os.open(name, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        # A link that was put there since, or that leads to nothing, is followed nowhere.
        return _Target(name, None)
    try:
        status = os.fstat(place)
        opened = Path(f"/proc/self/fd/{place}")
        return _Target(str(opened.readlink()), status) if stat.S_ISREG(status.st_mode) else os.open(opened, flags)
    finally:
        os.close(place)


class _New:
    """A file that is being written beside the one whose name it will take, in a folder that is held open."""

    def __init__(self, name: str, target: _Target | None, read: Held | None = None) -> None:
        """Without a target it is the file that was read."""
        self.name = name
        self._read = read
        self._in_place = target is None
        self._target = _Target(os.path.realpath(name), None) if target is None else target
        self._closing = contextlib.ExitStack()
        self._temporary: str | None = None

    def begin(self) -> None:
        """Make the temporary file; whatever happens from now on, `close` takes it away."""
        with _naming(self.name):
            folder, self._base = os.path.split(self._target.path)
            self._folder = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            self._closing.callback(os.close, self._folder)
            if self._in_place:
                self._check_is_read()
            self._former = self._find_former()
            self.descriptor = self._open_temporary()
            self._closing.callback(os.close, self.descriptor)

    def close(self) -> None:
        """Take the temporary file away, unless it has its name."""
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder)
        self._closing.close()

    def _check_is_read(self) -> None:
        """Raise an error unless the name still stands for the file that was read, and that is as it was."""
        read = self._read
        assert read is not None
        try:
            here = os.stat(self._base, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            here = None
        if here is None or not os.path.samestat(here, read.status):
            message = "another file took its place while it was read, and is left alone"
            raise OSError(errno.ESTALE, message, self.name)
        now = os.fstat(read.descriptor)
        if (now.st_ctime_ns, now.st_size) != (read.status.st_ctime_ns, read.status.st_size):
            raise OSError(errno.ESTALE, CHANGED, self.name)

    def _find_former(self) -> int | None:
        """A descriptor of the file whose owner, mode and attributes stay, if there is one."""
        if self._in_place:
            assert self._read is not None
            return self._read.descriptor
        try:
            former = os.open(self._base, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
        except FileNotFoundError:
            if self._target.status is None:
                return None
            raise OSError(errno.ESTALE, "it was taken away", self.name) from None
        self._closing.callback(os.close, former)
        status, looked_up = os.fstat(former), self._target.status
        if stat.S_ISLNK(status.st_mode) and looked_up is None:
            raise OSError(errno.ENOENT, "this symbolic link leads to nothing", self.name)
        if not stat.S_ISREG(status.st_mode) or (looked_up is not None and not os.path.samestat(status, looked_up)):
            raise OSError(errno.ESTALE, "another file took its place", self.name)
        return former

    def _open_temporary(self) -> int:
        """A new file that nobody else can read."""
        while True:
            # Known before it is there: a signal can come as soon as it is.
            self._temporary = f"{_PREFIX}{os.urandom(6).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                return os.open(self._temporary, flags, 0o600, dir_fd=self._folder)
            except FileExistsError:
                self._temporary = None

    def finish(self) -> None:
        """Give the new file what the former one has, and bring it to the disk."""
        with _naming(self.name):
            if self._former is not None:
                _dress(self.descriptor, self._former, privileged=self._in_place)
            else:
                mode = _NEW_FILE if self._read is None else self._read.status.st_mode & 0o777
                os.fchmod(self.descriptor, mode & ~_umask())
            os.fsync(self.descriptor)

    def take_name(self) -> None:
        """The one step. What is renamed over is only ever an entry of the folder that is held, and no link's target."""
        assert self._temporary is not None
        with _naming(self.name):
            if self._in_place:
                self._check_is_read()
            os.rename(self._temporary, self._base, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._temporary = None
        _sync_folder(".", self._folder)


def _write(descriptor: int, parts: Iterable[bytes | memoryview]) -> None:
    for part in parts:
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _dress(descriptor: int, former: int, *, privileged: bool) -> None:
    """Make the new file what the former one is, apart from its contents."""
    status = os.fstat(former)
    try:
        os.fchown(descriptor, status.st_uid, status.st_gid)
    except OSError:
        privileged = False  # of another owner these would mean something else
    place = f"/proc/self/fd/{former}"  # which also works for a descriptor that is for nothing but looking
    attributes: list[str] = []
    with contextlib.suppress(OSError):  # a file system without them
        attributes = os.listxattr(place)
    for attribute in attributes:
        if attribute in _OF_CONTENTS or (attribute == _CAPABILITY and not privileged):
            continue
        try:
            os.setxattr(descriptor, attribute, os.getxattr(place, attribute))
        except OSError as error:
            if error.errno not in _NOT_SET:
                raise
    mode = stat.S_IMODE(status.st_mode)
    os.fchmod(descriptor, mode if privileged else mode & ~_PRIVILEGES)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def sync_file(path: Path) -> None:
    """Bring a file to the disk that others have written."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """The new name has to reach the disk too; where folders cannot be synced, it will in time."""
    _sync_folder(folder, None)


def _sync_folder(path: Path | str, folder: int | None) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
