"""The work of a survey: some files from the disk are examined, and become rows.

It runs in other processes, perhaps on other machines, so all that it takes and gives can be sent.
"""

from __future__ import annotations

import stat
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.replace import CHANGED
from walkback.elf import Contents, is_elf
from walkback.identify.names import shown
from walkback.packages.walk import Again, Broken, FoundFile, elf_files_in
from walkback.sections.reading import Tables
from walkback.surveys import layout
from walkback.surveys.columns import packed
from walkback.surveys.digest import content_digest, file_digest
from walkback.surveys.examine import Rows, examine
from walkback.workers.versions import check_version

if TYPE_CHECKING:
    import os

_MOST_ROWS = 50_000
"""Packed at once."""
_NOT_NOW = "unreadable"
"""What is wrong where the system is at fault, and perhaps only once, or only on this machine."""
_NO_MEMORY = "there is not enough memory for this file"
_SECTOR = 512
"""Bytes that a file takes on the disk are counted in these, whatever the disk is."""


@dataclass(frozen=True, slots=True)
class UnitBatch:
    """Files to be examined."""

    paths: tuple[str, ...]
    folder: str
    """Where these paths count from."""
    debug_roots: tuple[str, ...]
    version: str
    """Of whoever asks: rows of two versions are not to be mixed."""
    verify: bool = False
    """Whether tables are proved against the code."""
    tables: Tables | None = None
    """What is read of the files, if that is not all tables that they have."""


def work(batch: UnitBatch) -> list[bytes]:
    """The rows of some files, packed."""
    check_version(batch.version)
    looking = _Looking(batch)
    for path in batch.paths:
        looking.through(shown(path), Path(batch.folder, path))
    return looking.all_packed()


def trouble(path: str, what: str, message: str) -> bytes:
    """The packed row of a file that was not examined."""
    return packed({"troubles": [(path, None, what, message)]})


class _Looking:
    def __init__(self, batch: UnitBatch) -> None:
        self._batch = batch
        self._seen: set[str] = set()
        """Contents that need not be examined again: their rows go where these go."""
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in layout.TABLES}
        self._packed: list[bytes] = []

    def through(self, path: str, place: Path) -> None:
        """Look through a file. If that could not be done well it is tried again in the next run."""
        try:
            before = place.stat()
            if not stat.S_ISREG(before.st_mode):
                self._trouble(path, None, "not a file", "it was a file, and is none any more")
                return
            fine = True
            contents: list[str] = []
            for found in elf_files_in(str(place)):
                match found:
                    case Broken():
                        self._trouble(path, found.member, found.what, found.message)
                        fine &= found.what != _NOT_NOW
                    case Again():
                        self._place(path, found, contents[found.index])
                    case FoundFile():
                        contents.append(_digest(place, before, found))
                        fine &= self._add(path, found, contents[-1])
            after = place.stat()
        except (OSError, UnreadableError) as error:
            self._trouble(path, None, _NOT_NOW, getattr(error, "strerror", None) or str(error))
            return
        except MemoryError:
            self._trouble(path, None, _NOT_NOW, _NO_MEMORY)
            return
        if _stamp(before) != _stamp(after):
            self._trouble(path, None, "changed", CHANGED)
            return
        if fine:
            self._rows["units"].append((path, *_stamp(before)))

    def _examined(self, data: Contents, content: str) -> Rows:
        its = self._batch
        return examine(data, content, debug_roots=its.debug_roots, verify=its.verify, tables=its.tables)

    def _add(self, path: str, found: FoundFile, content: str) -> bool:
        """Returns whether nothing went wrong that is not the file's fault."""
        if content not in self._seen:
            try:
                rows = self._examined(found.data, content)
            except MemoryError:
                self._trouble(path, found.member, _NOT_NOW, _NO_MEMORY)
                return False
            except Exception as error:  # a fault of ours in one file is not the end of others
                self._trouble(path, found.member, "internal", f"{type(error).__name__}: {error}")
                return False
            self._seen.add(content)
            for table, its in rows.items():
                self._rows[table] += its
        self._place(path, found, content)
        return True

    def _place(self, path: str, found: FoundFile | Again, content: str) -> None:
        """Where a content is, unless it could not be examined."""
        if content not in self._seen:
            return
        package = (None,) * 4 if found.package is None else astuple(found.package)
        self._rows["places"].append((content, path, found.member, *package))
        if sum(map(len, self._rows.values())) > _MOST_ROWS:
            self._pack()

    def _trouble(self, path: str, member: str | None, what: str, message: str) -> None:
        self._rows["troubles"].append((path, member, what, message))

    def _pack(self) -> None:
        self._packed.append(packed(self._rows))
        for its in self._rows.values():
            its.clear()

    def all_packed(self) -> list[bytes]:
        """All that was found."""
        self._pack()
        return self._packed


def _digest(place: Path, status: os.stat_result, found: FoundFile) -> str:
    """The holes of a sparse file are not read; of one that was decompressed they are none of this file."""
    if found.member is None and status.st_blocks * _SECTOR < status.st_size:
        with place.open("rb") as file:
            if is_elf(file.read(4)):
                return file_digest(str(place))
    return content_digest(found.data)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
