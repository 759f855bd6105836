"""The figures of a survey: each a question in SQL, with what to call it, how to read it and how to draw it.

with Survey("survey").database() as database:
    for figure in FIGURES:
        print(figure.title, ask(database, figure).rows)

The SQL stands on the tables of `walkback.surveys.layout` alone, so whoever reads a figure can ask the same question, or
a better one, of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from walkback.base.dataclass import dataclass
from walkback.segments.database import readable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Row = tuple[Any, ...]


class ColumnUnit(StrEnum):
    """What the values of a column are, which says how they are written."""

    TEXT = "text"
    COUNT = "count"
    BYTES = "bytes"
    SHARE = "share"
    """A part of 1, written in per cent."""
    RATIO = "ratio"
    ADDRESS = "address"
    CONTENT = "content"
    """The digest of the file that a row is about."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an answer."""

    name: str
    """As SQL, JSON and CSV have it."""
    title: str
    unit: ColumnUnit = ColumnUnit.TEXT
    words: dict[str, str] = field(default_factory=dict)
    """What values are called for people."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How to draw rows: these names are columns."""

    kind: Literal["bars", "dots", "histogram", "stack"]
    label: str
    """What a bar, a line of dots or a part of a stack is called; of a histogram where a bin begins."""
    values: tuple[str, ...]
    """What is drawn; several stand beside each other."""
    panel: str | None = None
    """Rows with different values here are drawn apart."""
    span: tuple[str, str] | None = None
    """From where to where a line goes behind the last of the dots."""
    axis: str = ""
    """What the values are."""
    one: bool = False
    """Whether 1 is a line to compare with."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A question about a survey."""

    name: str
    title: str
    sentence: str
    """What is counted, and how."""
    columns: tuple[Column, ...]
    select: str
    tables: tuple[str, ...] = ()
    """What stands behind the WITH of the query: tables of this module, and of its own."""
    _: KW_ONLY
    drawing: Drawing | None = None
    says: Callable[[list[dict[str, Any]]], str] | None = None
    """What the answer comes to, in a sentence; empty if there is nothing to say."""
    single: bool = False
    """Whether the answer is one row, which reads better as a list."""
    split: bool = False
    """Whether it divides the files by its first column. A page leaves it out if there is one group."""
    shown: tuple[str, ...] = ()
    """The columns that a page shows, if not all; text, CSV and JSON have the others too."""
    empty: str = "There are none."
    """What it means if there are no rows."""

    @property
    def sql(self) -> str:
        """The whole query."""
        return (f"WITH {', '.join(self.tables)}\n" if self.tables else "") + self.select.strip()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a survey answers."""

    figure: Figure
    rows: list[Row]

    def objects(self) -> list[dict[str, Any]]:
        """The rows by the names of their columns."""
        names = [column.name for column in self.figure.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    @property
    def says(self) -> str:
        """What it comes to."""
        return self.figure.says(self.objects()) if self.figure.says and self.rows else ""


def ask(connection: DuckDBPyConnection, figure: Figure) -> Answer:
    """The answer to a figure's question."""
    with readable():
        answer = connection.execute(figure.sql)
        names = [str(column[0]) for column in answer.description or ()]
        rows = answer.fetchall()
    if names != [column.name for column in figure.columns]:
        raise AssertionError(f"the columns of {figure.name} are {', '.join(names)}")
    return Answer(figure, rows)


NAMED = """named AS (
  SELECT content, min(path || coalesce('(' || member || ')', '')) AS file
  FROM places
  GROUP BY content
)"""
"""A name for each content: of several the first."""

COMPARED = """compared AS (
  SELECT content, version, machine, producer, language, kind, files.bytes AS file_bytes, files.functions AS functions,
    eh_frame::HUGEINT + eh_frame_hdr AS call_frames, versions.bytes AS sframe
  FROM files JOIN versions USING (content)
  WHERE impossible IS NULL AND source != '.debug_frame' AND from_cfi = code_bytes
    AND eh_frame::HUGEINT + eh_frame_hdr > 0
)"""
"""The files all of whose functions are from `.eh_frame`, once for each version that can be made."""

ALIKE = """alike AS (
  SELECT content, any_value(machine) AS machine, any_value(producer) AS producer, any_value(language) AS language,
    any_value(kind) AS kind, any_value(file_bytes) AS file_bytes, any_value(functions) AS functions,
    any_value(call_frames) AS call_frames, max(sframe) FILTER (version = 1) AS v1,
    max(sframe) FILTER (version = 2) AS v2, max(sframe) FILTER (version = 3) AS v3
  FROM compared
  GROUP BY content
  HAVING count(*) FILTER (version IN (2, 3)) = 2
)"""
"""The same, once, with what each version takes; versions 2 and 3 can both be made. Stands on `compared`."""
