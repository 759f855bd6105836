"""A report as a page: of a survey, or of one ELF file.

report("survey", "survey.html")
report("a.out", "a.html")
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.base.errors import ArgumentError, MissingError
from walkback.base.replace import Output, refuse_lost, replacing
from walkback.elf import Input
from walkback.reports.binary import write_binary_page
from walkback.reports.opening import file_of
from walkback.reports.survey import write_survey_page
from walkback.reports.surveyhead import surveyed
from walkback.sections.reading import Tables
from walkback.surveys.folder import SurveyFolder
from walkback.surveys.reading import Survey

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def report(source: Input, output: Output, *, title: str | None = None, tables: Tables | None = None) -> None:
    """Write the page of a survey, which is a folder, or of an ELF file.

    `title` is the title of a survey's page, in place of the paths that were surveyed.

    `tables` chooses what is read of an ELF file, as for `derive`; without it these are all tables that it has.

    The page needs no network. A member of an archive is named as `archive(member)`.

    >>> walkback.report("hello", "hello.html")
    """
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if path is not None and isinstance(output, str | os.PathLike):
        refuse_lost(file_of(path), output)
    with replacing(output) if isinstance(output, str | os.PathLike) else nullcontext(output) as out:
        if path is None or not Path(path).is_dir():
            write_binary_page(source, out, tables=tables)
            return
        if tables is not None:
            raise ArgumentError("tables are chosen when a survey is made", file=path)
        survey = Survey(path)
        places = SurveyFolder(path).asked.get("places")
        called = title or surveyed(places, survey.path.resolve().name)
        with asked(path) as database:
            write_survey_page(database, out, title=called, finished=survey.finished)


@contextmanager
def asked(folder: str | os.PathLike[str]) -> Iterator[DuckDBPyConnection]:
    """The database of a survey that has something to report."""
    with Survey(folder).database() as database:
        if not database.execute("FROM files LIMIT 1").fetchall():
            message = "there is no ELF file in this survey, and nothing to report"
            raise MissingError(message, file=os.fsdecode(folder))
        yield database
