"""The folder of a survey: whether it is one, which parts it has, and which of these count.

A part appears by the renaming of a finished folder, so it is there as a whole or not at all. One that sums others up
names them, and from that moment on they do not count and are taken away when nobody reads. So there is no state between
"before" and "after", wherever a survey is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from walkback.database import is_text, plain_path
from walkback.errors import UnreadableError
from walkback.locks import locked
from walkback.replace import replace_file, sync_file, sync_folder
from walkback.survey import layout

_NUMBER = re.compile(r"[0-9]{8}")


@dataclass(frozen=True, slots=True)
class Part:
    """What was found in some time of work, or all of it."""

    path: Path
    number: int
    """Later parts have higher ones."""
    replaces: frozenset[int]
    finished: bool
    """Whether it is all that was asked for."""

    def file(self, table: str) -> Path:
        """Where one of its tables is."""
        return self.path / f"{table}.parquet"


class Folder:
    """Finds what is in a survey, and lets parts appear in it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Of a survey that is there."""
        self.path = Path(path)
        if not is_text(plain_path(self.path)):
            raise UnreadableError("a survey is not in a folder whose name is no UTF-8", file=str(path))
        file = self.path / layout.MARKER
        try:
            asked = json.loads(file.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise UnreadableError("this is no survey", file=str(path) or "''") from None
        except OSError as error:
            raise _unreadable(error, file) from None
        except (ValueError, RecursionError) as error:
            raise UnreadableError(f"this is no JSON: {error}", file=str(file)) from None
        version = asked.get("version") if isinstance(asked, dict) else None
        if version != layout.VERSION:
            message = f"a survey of version {version!r} is not read here, but of version {layout.VERSION}"
            raise UnreadableError(message, file=str(path))
        self.asked: Mapping[str, Any] = asked
        """What the survey is of, as its marker tells."""

    def ask(self, asked: Mapping[str, Any]) -> None:
        """Change what the survey is of."""
        _mark(self.path, asked)
        self.asked = asked

    def parts(self) -> list[Part]:
        """Those that count, the oldest first."""
        found = self.all_parts()
        replaced = frozenset[int]().union(*(part.replaces for part in found))
        return [part for part in found if part.number not in replaced]

    def all_parts(self) -> list[Part]:
        """All that are there, the oldest first."""
        try:
            names = sorted(entry.name for entry in os.scandir(self.path) if entry.name.startswith(layout.PART))
        except OSError as error:
            raise _unreadable(error, self.path) from None
        return [_read_part(self.path / name) for name in names]

    @contextlib.contextmanager
    def being_made(self, number: int) -> Iterator[Path]:
        """A folder for the tables of a part, which appears as a whole at the end; not if there is an exception."""
        making = self.path / f"{layout.MAKING}{number:08}"
        making.mkdir()
        try:
            yield making
            for path in making.iterdir():
                sync_file(path)
            sync_folder(making)
            making.rename(self.path / f"{layout.PART}{number:08}")
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        sync_folder(self.path)

    def clean(self) -> None:
        """Take away what a killed run left, and what is replaced if nobody reads."""
        with self.locked(layout.READERS, wait=False) as alone:
            if alone:
                live = {part.number for part in self.parts()}
                for part in self.all_parts():
                    if part.number not in live:
                        # In one step, so that no part is ever seen with some of its files.
                        part.path.rename(self.path / f"{layout.MAKING}{part.number:08}")
        for path in self.path.glob(".walkback-*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def locked(self, name: str, *, shared: bool = False, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold one of the locks; gives False where somebody else has it and waiting was not wanted."""
        return locked(self.path / name, shared=shared, wait=wait)


def made(path: str, asked: Mapping[str, Any]) -> Folder:
    """A survey, which is made if it is not there; its parent must be there."""
    folder = Path(path)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
    names = {entry.name for entry in os.scandir(folder)}
    if layout.MARKER not in names:
        if strange := sorted(name for name in names if not name.startswith(".walkback-")):
            message = f"this is no survey, and is not made one because {strange[0]!r} is in it"
            raise UnreadableError(message, file=path)
        _mark(folder, asked)
        sync_folder(folder.parent)
    return Folder(path)


def _mark(folder: Path, asked: Mapping[str, Any]) -> None:
    text = json.dumps({"version": layout.VERSION, **asked}, indent=1)
    replace_file(folder / layout.MARKER, [text.encode() + b"\n"])


def _read_part(path: Path) -> Part:
    number = path.name.removeprefix(layout.PART)
    if _NUMBER.fullmatch(number) is None:
        raise UnreadableError("this is not the name of a part", file=str(path))
    file = path / layout.MANIFEST
    try:
        told = json.loads(file.read_bytes())
        replaces = frozenset(told["replaces"])
        if not all(isinstance(one, int) for one in replaces) or not isinstance(told["finished"], bool):
            raise TypeError("replaces")
    except FileNotFoundError:
        raise UnreadableError("this part does not say what it is", file=str(file)) from None
    except OSError as error:
        raise _unreadable(error, file) from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"this does not describe a part: {error!r}", file=str(file)) from None
    return Part(path, int(number), replaces, told["finished"])


def _unreadable(error: OSError, path: Path) -> UnreadableError:
    return UnreadableError(error.strerror or str(error), file=str(error.filename or path))
