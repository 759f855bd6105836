"""How a folder comes by its parts, and says which of them count.

A marker makes a folder a store or a survey. A part is made out of sight, brought to the disk and renamed to its place,
so it is there as a whole or not at all. A description in it says what it has and which others it replaces; these do
not count from that moment on, and are taken away when nobody reads. So there is no state between "before" and "after",
wherever a writer is killed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.replace import replace_file, sync_file, sync_folder
from walkback.segments.database import check_regular, is_text, plain_path

T = TypeVar("T")

_LARGEST = 16 << 20
"""Bytes of a marker or a description: of hundreds of thousands of parts."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The file that says what a folder is."""

    name: str
    noun: str
    """What it makes of a folder, as in "not a store"."""
    version: int

    def read(self, folder: Path) -> dict[str, Any]:
        """What it says; an error if the folder is something else."""
        self._check_name(folder)
        name = str(folder) or "''"
        file = folder / self.name
        try:
            return self.parse(_small(file), name, str(file))
        except (FileNotFoundError, NotADirectoryError):
            what = f"not a {self.noun}" if os.path.lexists(folder) else os.strerror(errno.ENOENT)
            raise UnreadableError(what, file=name) from None
        except OSError as error:
            raise unreadable(error, file) from None

    def parse(self, data: bytes, name: str, file: str) -> dict[str, Any]:
        """What the contents of the file say of a folder of this name."""
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise UnreadableError(f"not JSON: {error}", file=file) from None
        version = found.get("version") if isinstance(found, dict) else None
        if version != self.version:
            message = f"a {self.noun} of version {version!r} is not read here, but of version {self.version}"
            raise UnreadableError(message, file=name)
        return dict(found)

    def _check_name(self, folder: Path) -> None:
        # DuckDB, which reads what is in it, takes text only.
        if not is_text(plain_path(folder)):
            raise UnreadableError(f"a {self.noun} is not in a folder whose name is no UTF-8", file=str(folder))

    def write(self, folder: Path, described: Mapping[str, Any]) -> None:
        """Say of a folder that it is one, and more."""
        replace_file(folder / self.name, [self.contents(described)])

    def contents(self, described: Mapping[str, Any]) -> bytes:
        """The contents of the file."""
        text = json.dumps({"version": self.version, **described}, indent=1 if described else None)
        return text.encode() + b"\n"

    def make(
        self,
        folder: Path,
        described: Mapping[str, Any],
        *,
        own: frozenset[str] = frozenset(),
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a folder one that is not; its parent must be there, and several may do so at once.

        Beside the names of its `own` nothing may be in it. `prepare` makes these.
        """
        self._check_name(folder)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        if not folder.is_dir():
            raise UnreadableError("not a folder", file=str(folder))
        names = {path.name for path in folder.iterdir()}
        if self.name in names:
            return
        if strange := sorted(name for name in names - own if not name.startswith(".walkback-")):
            message = f"not a {self.noun}, and cannot become one: {strange[0]!r} is in it"
            raise UnreadableError(message, file=str(folder))
        prepare()
        self.write(folder, described)
        sync_folder(folder.parent)


def publish(making: Path, place: Path) -> None:
    """Bring a part to the disk, and let it appear: from here on it is there whatever happens."""
    for folder, _, names in os.walk(making):
        for name in names:
            sync_file(Path(folder, name))
        sync_folder(Path(folder))
    making.rename(place)
    sync_folder(place.parent)


def read_description(file: Path, noun: str, parse: Callable[[Any], T]) -> T | None:
    """What a part says of itself; None if it is gone by now."""
    try:
        return parse_description(_small(file), str(file), noun, parse)
    except FileNotFoundError:
        if file.parent.is_dir():
            raise UnreadableError(f"this {noun} does not say what it is", file=str(file)) from None
        return None
    except OSError as error:
        raise unreadable(error, file) from None


def parse_description(data: bytes, file: str, noun: str, parse: Callable[[Any], T]) -> T:
    """What a description says. What `parse` cannot use is an error in one line."""
    try:
        return parse(json.loads(data))
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"this does not describe a {noun}: {error!r}", file=file) from None


def _small(file: Path) -> bytes:
    """The contents of a regular file that is not large; whose folder it is may have put anything there."""
    check_regular(file)
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as stream:
        found = stream.read(_LARGEST + 1)
    if len(found) > _LARGEST:
        raise UnreadableError(f"this is more than {_LARGEST} bytes, and was not written by walkback", file=str(file))
    return found


def unreadable(error: OSError, path: Path) -> UnreadableError:
    """What the system says of a file, as an error of walkback."""
    return UnreadableError(error.strerror or str(error), file=str(error.filename or path))
