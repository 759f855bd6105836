"""Opening a survey to ask it: one view for each of its tables, whether it is finished or not.

survey = Survey("debian")
survey.sql("SELECT machine, count(*) AS files FROM files GROUP BY machine")
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.base.columns import NamedColumns
from walkback.base.errors import UnreadableError
from walkback.base.locks import locked
from walkback.segments.database import connect, lock, readable
from walkback.segments.queries import answer_columns, checked_query, readable_query, wrong_queries
from walkback.surveys import layout
from walkback.surveys.folder import SurveyFolder
from walkback.surveys.views import first_wrong, make_views

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "2GB"
"""What the database takes; more goes to a temporary file."""


class Survey:
    """The folder of a survey, as `survey` made it.

    >>> done = walkback.survey(["hello", "one.o"], "tables", jobs=1)
    >>> survey = walkback.Survey("tables")
    >>> answer = survey.sql("SELECT kind, bytes FROM files ORDER BY kind")
    >>> answer["kind"].tolist()
    ['object', 'program']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder = SurveyFolder(path)

    def __repr__(self) -> str:
        return f"Survey({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._folder.path

    @property
    def finished(self) -> bool:
        """Whether it has all that was asked for, and did not break off."""
        parts = self._folder.parts()
        return len(parts) == 1 and parts[0].finished

    def sql(self, query: str) -> NamedColumns:
        """The columns of the answer to one query over its tables."""
        with self.database() as database, readable(), wrong_queries():
            return answer_columns(database, readable_query(database, checked_query(database, query)))

    @contextlib.contextmanager
    def database(self) -> Iterator[DuckDBPyConnection]:
        """A database with its tables as views; it reads nothing else, and what it reads stays until the end.

        What is wrong with a file is an UnreadableError, also where it is noticed by a query inside the `with`.
        """
        folder = self._folder
        with locked(folder.path / layout.READERS, shared=True), connect(memory_limit=MEMORY) as db:
            parts = folder.parts()
            try:
                with readable():
                    make_views(db, parts)
                    # Strings in a file could make a query that is put together without care read others.
                    lock(db, (part.path for part in parts))
                    yield db
            except UnreadableError as error:
                raise error.within(file=first_wrong(parts) or str(self.path)) from None
