"""Opening a survey to ask it: one view for each of its tables, whether it is finished or not.

with open_survey("survey") as db:
    db.execute("SELECT machine, count(*) FROM files GROUP BY machine").fetchall()
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from walkback.database import apart, lock, readable
from walkback.errors import UnreadableError
from walkback.survey import layout
from walkback.survey.folder import Folder
from walkback.survey.views import first_wrong, make_views

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "2GB"
"""What the database takes; more goes to a temporary file."""


@contextlib.contextmanager
def open_survey(path: str | os.PathLike[str]) -> Iterator[DuckDBPyConnection]:
    """A database with the tables of a survey as views; it reads nothing else, and what it reads stays until the end.

    What is wrong with a file is an UnreadableError, also where it is noticed by a query inside the `with`.
    """
    folder = Folder(path)
    with folder.locked(layout.READERS, shared=True), apart(memory_limit=MEMORY) as db:
        parts = folder.parts()
        try:
            with readable():
                make_views(db, parts)
                # Strings in a file could make a query that is put together without care read others.
                lock(db, (part.path for part in parts))
                yield db
        except UnreadableError as error:
            raise error.within(file=first_wrong(parts) or str(path)) from None


def is_finished(path: str | os.PathLike[str]) -> bool:
    """Whether a survey has all that was asked for, and did not break off."""
    parts = Folder(path).parts()
    return len(parts) == 1 and parts[0].finished
