"""The objects below an address: listed, read, created once, and deleted.

What fails or does not answer is tried again, since nothing here does harm if it is done twice; what goes on failing is
an error in one line that names the address.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, UnreadableError, WalkbackError

T = TypeVar("T")

SCHEMES: Final = ("s3", "gs", "az")
_ANSWER: Final = 60
"""Seconds within which a service has to answer."""
_TRANSFER: Final = 1800
"""The same where files come or go."""
_WAITS = (0.1, 0.4, 1.6)
"""Seconds before each further try."""
_LONGEST_ERROR = 500
_MODIFIED = ("LastModified", "last_modified", "mtime", "updated")
"""Where lists say when an object was written."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What a list says of an object."""

    size: int
    """Bytes."""
    modified: datetime
    """When it was written, by the clock of the service."""


class Objects:
    """All objects whose keys begin as an address does."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        rest = rest.strip("/")
        self.url = f"{scheme}://{rest}"
        """The address."""
        if scheme not in SCHEMES or not rest or set(rest) & set("*?[") or "::" in rest:
            begin = ", ".join(f"{one}://" for one in SCHEMES)
            raise ArgumentError(f"{url!r} is not the address of a store: {begin} and the name of a bucket are")
        # Some log what they raise as well.
        for name in ("adlfs", "gcsfs", "s3fs"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            from fsspec.core import url_to_fs

            self._service, self._root = self._tried(lambda: url_to_fs(self.url, use_listings_cache=False))
        except ImportError as error:
            message = f"{_in_one_line(error)}: pip install 'walkback[cloud]'"
            raise UnreadableError(message, file=self.url) from None

    def find(self, folder: str) -> dict[str, Listed]:
        """The objects below a folder, by the rest of their keys."""
        top = f"{self._path(folder)}/"

        def listed() -> Mapping[str, Any]:
            self._service.invalidate_cache()
            with contextlib.suppress(FileNotFoundError):
                return dict(self._service.find(top, detail=True))
            return {}

        found = self._tried(listed)
        return {path.removeprefix(top): Listed(int(its["size"]), _modified(its)) for path, its in found.items()}

    def modified(self, key: str) -> datetime:
        """When an object was written, by the clock of the service."""
        return _modified(self._tried(lambda: self._service.info(self._path(key))))

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder."""

        def names() -> Iterable[str]:
            self._service.invalidate_cache()
            with contextlib.suppress(FileNotFoundError):
                return list(self._service.ls(self._path(folder), detail=False))
            return []

        return sorted({path.rstrip("/").rpartition("/")[2] for path in self._tried(names)})

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The contents of those objects that exist."""
        found: dict[str, bytes] = {}
        wanted = {self._path(key): key for key in keys}

        def read() -> None:
            paths = [path for path, key in wanted.items() if key not in found]
            answers = self._service.cat(paths, on_error="return") if paths else {}
            found.update((wanted[path], answer) for path, answer in answers.items() if isinstance(answer, bytes))
            for answer in answers.values():
                if not isinstance(answer, bytes | FileNotFoundError):
                    raise answer

        self._tried(read)
        return found

    def read_small(self, key: str, most: int) -> bytes | None:
        """The contents of an object; None if it does not exist. One of more bytes is an error."""

        def read() -> bytes | None:
            with contextlib.suppress(FileNotFoundError):
                if self._service.info(self._path(key))["size"] <= most:
                    return bytes(self._service.cat_file(self._path(key)))
                raise UnreadableError(f"this is more than {most} bytes", file=f"{self.url}/{key}")
            return None

        return self._tried(read)

    def create(self, key: str, contents: bytes) -> bool:
        """Put an object that does not exist; False if one with other contents does."""

        def put() -> bool:
            try:
                self._service.pipe_file(self._path(key), contents, mode="create")
            except FileExistsError:
                # Nobody else writes this: so if it is there an earlier try did it, and only the answer was lost.
                return self.read([key]).get(key) == contents
            return True

        return self._tried(put)

    def upload(self, files: Mapping[str, Path]) -> None:
        """Put files as objects."""
        paths = [self._path(key) for key in files]
        if paths:
            self._tried(lambda: self._service.put([str(file) for file in files.values()], paths), _TRANSFER)

    def download(self, files: Mapping[str, tuple[Path, int]]) -> None:
        """Have objects as files, each of the size that is given; a file appears as a whole or not at all."""
        for file, _ in files.values():
            file.parent.mkdir(parents=True, exist_ok=True)
        parts = {key: file.with_name(f".{os.urandom(6).hex()}.part") for key, (file, _) in files.items()}

        def get() -> None:
            # What a try that failed has left of a file is not the file.
            came = {key for key, part in parts.items() if part.exists() and part.stat().st_size == files[key][1]}
            missing = {key: part for key, part in parts.items() if key not in came}
            try:
                self._service.get([self._path(key) for key in missing], [str(part) for part in missing.values()])
            except OSError as error:
                if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                    raise
                folder = next(iter(missing.values())).parent
                raise UnreadableError(os.strerror(error.errno), file=str(folder)) from None

        try:
            self._tried(get, _TRANSFER)
            for key, (file, size) in files.items():
                if (came := parts[key].stat().st_size) != size:
                    raise UnreadableError(f"this has {came} bytes, and {size} were written", file=f"{self.url}/{key}")
                parts[key].replace(file)
        finally:
            for part in parts.values():
                part.unlink(missing_ok=True)

    def delete(self, keys: Sequence[str]) -> None:
        """Let objects go, if they exist."""

        def delete() -> None:
            with contextlib.suppress(FileNotFoundError):
                self._service.rm([self._path(key) for key in keys])

        if keys:
            self._tried(delete)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}".rstrip("/")

    def _tried(self, work: Callable[[], T], seconds: float = _ANSWER) -> T:
        """Do it, and again if it fails, as long as there is time."""
        waits = iter(_WAITS)
        end = time.monotonic() + seconds
        while True:
            try:
                return _answer(work, end - time.monotonic())
            except (ImportError, WalkbackError):
                raise
            except Exception as error:
                # The libraries raise whatever comes, and what they say of it is all that is known.
                wait = None if isinstance(error, FileNotFoundError | PermissionError) else next(waits, None)
                if wait is None or time.monotonic() + wait > end:
                    raise UnreadableError(_in_one_line(error), file=self.url) from None
            time.sleep(wait)


def _answer(work: Callable[[], T], seconds: float) -> T:
    """What it gives; not every library ends by itself when no answer comes."""
    answers: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

    def do() -> None:
        try:
            answers.put(work())
        except Exception as error:
            answers.put(error)

    threading.Thread(target=do, daemon=True).start()
    try:
        answer = answers.get(timeout=max(seconds, 0))
    except queue.Empty:
        raise TimeoutError("the service does not answer") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_LONGEST_ERROR] or type(error).__name__


def _modified(its: Mapping[str, Any]) -> datetime:
    found = next((its[name] for name in _MODIFIED if its.get(name)), None)
    found = datetime.fromisoformat(found) if isinstance(found, str) else found
    if not isinstance(found, datetime):
        raise UnreadableError("its list does not say when an object was written", file=str(its.get("name")))
    return found if found.tzinfo else found.replace(tzinfo=UTC)
