"""The folder of a survey: which parts it has, as `segments.protocol` has them, and which of these count."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.locks import locked
from walkback.segments.protocol import publish, read_description, unreadable
from walkback.surveys import layout

_NUMBER = re.compile(r"[0-9]{8}")


@dataclass(frozen=True, slots=True)
class SurveyPart:
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


class SurveyFolder:
    """Finds what is in a survey, and lets parts appear in it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a survey."""
        self.path = Path(path)
        self.asked: Mapping[str, Any] = layout.MARKER.read(self.path)
        """What the survey is of."""

    def ask(self, asked: Mapping[str, Any]) -> None:
        """Change what the survey is of."""
        layout.MARKER.write(self.path, asked)
        self.asked = asked

    def parts(self) -> list[SurveyPart]:
        """Those that count, the oldest first."""
        found = self.all_parts()
        replaced = frozenset[int]().union(*(part.replaces for part in found))
        return [part for part in found if part.number not in replaced]

    def all_parts(self) -> list[SurveyPart]:
        """All parts, the oldest first."""
        try:
            names = sorted(entry.name for entry in os.scandir(self.path) if entry.name.startswith(layout.PART))
        except OSError as error:
            raise unreadable(error, self.path) from None
        return [part for name in names if (part := _read_part(self.path / name)) is not None]

    @contextlib.contextmanager
    def being_made(self, number: int) -> Iterator[Path]:
        """A folder for the tables of a part, which appears as a whole at the end; not if there is an exception."""
        making = self.path / f"{layout.MAKING}{number:08}"
        making.mkdir()
        try:
            yield making
            publish(making, self.path / f"{layout.PART}{number:08}")
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise

    def clean(self) -> None:
        """Take away what a killed run left, and what is replaced if nobody reads."""
        with locked(self.path / layout.READERS, wait=False) as alone:
            if alone:
                live = {part.number for part in self.parts()}
                for part in self.all_parts():
                    if part.number not in live:
                        # In one step, so that no part is ever seen with some of its files.
                        part.path.rename(self.path / f"{layout.MAKING}{part.number:08}")
        for path in self.path.glob(".walkback-*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def made(path: str, asked: Mapping[str, Any]) -> SurveyFolder:
    """A survey, which is made if it is not there; its parent must be there."""
    layout.MARKER.make(Path(path), asked)
    return SurveyFolder(path)


def _read_part(path: Path) -> SurveyPart | None:
    number = path.name.removeprefix(layout.PART)
    if _NUMBER.fullmatch(number) is None:
        raise UnreadableError("this is not the name of a part", file=str(path))

    def part(described: dict[str, Any]) -> SurveyPart:
        replaces = frozenset(described["replaces"])
        if not all(isinstance(one, int) for one in replaces) or not isinstance(described["finished"], bool):
            raise TypeError("replaces")
        return SurveyPart(path, int(number), replaces, described["finished"])

    return read_description(path / layout.MANIFEST, "part", part)
