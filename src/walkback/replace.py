"""Writing a file whole or not at all.

The contents go to a temporary file beside the target, are synced, and take the target's name in one step. Whoever has
the former file open or runs it keeps it. Killed at any moment, the target is either the old file or the new one.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NEW_FILE = 0o666
_PREFIX = ".walkback-"


def replace_file(
    path: str | os.PathLike[str], parts: Iterable[bytes | memoryview], *, like: str | os.PathLike[str] | None = None
) -> None:
    """Make these parts, one after the other, the contents of a file.

    A file that is there keeps its mode, its owner where that is allowed, and its extended attributes. A new one gets
    the mode of `like`, or that of any new file, less the umask. A symbolic link stays one, and what it leads to is
    replaced. What is no regular file, such as a pipe or a device, is written to, and so is what a name such as
    /dev/stdout stands for. Raises OSError, which names the path.
    """
    replace_files([(path, parts)], like=like)


def replace_files(
    files: Iterable[tuple[str | os.PathLike[str], Iterable[bytes | memoryview]]],
    *,
    like: str | os.PathLike[str] | None = None,
) -> None:
    """The same for several files: none takes its name before all are written."""
    ready: list[tuple[Path, Path]] = []
    try:
        for path, parts in files:
            name = os.fsdecode(path)
            try:
                if _is_stream(name):
                    _write_stream(name, parts)
                else:
                    ready.append(_prepare(Path(os.path.realpath(name)), parts, like))
            except OSError as error:
                raise OSError(error.errno, error.strerror, name) from None
        for temporary, target in ready:
            temporary.replace(target)
            sync_folder(target.parent)
    except BaseException:
        for temporary, _ in ready:
            with contextlib.suppress(OSError):
                temporary.unlink()
        raise


def _is_stream(name: str) -> bool:
    """Whether something is written to and not replaced."""
    if name.startswith(("/dev/", "/proc/")):
        return True
    try:
        return not stat.S_ISREG(Path(name).stat().st_mode)
    except FileNotFoundError:
        return False


def _write_stream(name: str, parts: Iterable[bytes | memoryview]) -> None:
    # At its end: an output that is redirected to a file may hold something already.
    descriptor = os.open(name, os.O_WRONLY | os.O_APPEND)
    try:
        _write(descriptor, parts)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """The same for contents that are written piece by piece to the file that this gives.

    The file takes its name at the end; if there is an exception it never does.
    """
    name = os.fsdecode(path)
    try:
        with _replacing(name) as out:
            yield out
    except OSError as error:
        if error.filename not in {None, name} and not Path(error.filename).name.startswith(_PREFIX):
            raise
        raise OSError(error.errno, error.strerror, name) from None


@contextlib.contextmanager
def _replacing(name: str) -> Iterator[BinaryIO]:
    if _is_stream(name):
        with Path(name).open("ab") as out:
            yield out
        return
    target = Path(os.path.realpath(name))
    descriptor, temporary = _temporary(target.parent)
    try:
        with os.fdopen(descriptor, "wb") as out:
            yield out
            out.flush()
            _finish(descriptor, target, None)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(target.parent)


def _prepare(
    target: Path, parts: Iterable[bytes | memoryview], like: str | os.PathLike[str] | None
) -> tuple[Path, Path]:
    """Write a temporary file beside the target; returns both."""
    descriptor, temporary = _temporary(target.parent)
    try:
        try:
            _write(descriptor, parts)
            _finish(descriptor, target, like)
        finally:
            os.close(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return temporary, target


def _finish(descriptor: int, target: Path, like: str | os.PathLike[str] | None) -> None:
    """Give the new file what the target has, and bring it to the disk."""
    try:
        former = target.stat()
    except FileNotFoundError:
        mode = _NEW_FILE if like is None else Path(like).stat().st_mode & 0o777
        os.fchmod(descriptor, mode & ~_umask())
    else:
        _keep(descriptor, former, target)
    os.fsync(descriptor)


def _temporary(folder: Path) -> tuple[int, Path]:
    """A new file that nobody else can read."""
    while True:
        path = folder / f"{_PREFIX}{os.urandom(6).hex()}"
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), path


def _write(descriptor: int, parts: Iterable[bytes | memoryview]) -> None:
    for part in parts:
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _keep(descriptor: int, former: os.stat_result, target: Path) -> None:
    """Make the new file what the former one was, apart from its contents."""
    mode = stat.S_IMODE(former.st_mode)
    try:
        os.fchown(descriptor, former.st_uid, former.st_gid)
    except OSError:
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # of another owner these would mean something else
    with contextlib.suppress(OSError):  # a file system without them
        for attribute in os.listxattr(target):
            with contextlib.suppress(OSError):  # one that only the system may set
                os.setxattr(descriptor, attribute, os.getxattr(target, attribute))
    os.fchmod(descriptor, mode)


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
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
