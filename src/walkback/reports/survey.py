"""The report of a survey: its figures as text, CSV or JSON, and all of it as one page.

with Survey("survey").database() as database, open("page.html", "wb") as out:
    write_survey_page(database, out, title="Debian 12")

The page has the rows of each figure once, and of every file the numbers that its part of the page shows.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, BinaryIO

from walkback.base.text import printable
from walkback.pages.page import plain_data, write_page
from walkback.reports.chapters import CHAPTERS
from walkback.reports.figures import Answer, ColumnUnit, ask
from walkback.reports.surveyfiles import SurveyedFiles
from walkback.reports.words import printable_value

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_STYLES = ("common.css", "survey.css")
_SCRIPT = "reports/survey.js"

_LEAD = ("survey", "code-by-machine", "undescribed", "versions")
"""Figures whose answers the page begins with."""
_CARDS = (
    ("versions", "ratio", "the bytes of .eh_frame and .eh_frame_hdr, in version 3", "versions"),
    ("versions", "growth", "larger files with version 3 beside what they have", "versions"),
    ("survey", "described", "of the code has call frame information", "code-by-machine"),
    ("versions", "left_out", "of the functions that have it are left out by version 3", "reasons"),
    ("survey", "based", "of the functions count the CFA from the frame pointer", "frame-pointers-by-machine"),
    ("survey", "measured", "different ELF files measured", "outcomes"),
)
"""A column of a figure that has one row, or one for each version; its words; and the figure that shows more."""


def write_survey_page(connection: DuckDBPyConnection, out: BinaryIO, *, title: str, finished: bool = True) -> None:
    """Write the page about a survey; about one that is not finished it says so."""
    answers = {figure.name: ask(connection, figure) for chapter in CHAPTERS for figure in chapter.figures}
    files = SurveyedFiles(connection)
    meta = {
        "version": version("walkback"),
        "finished": finished,
        "lead": [answer.says for name in _LEAD if (answer := answers[name]).says],
        "cards": _cards(answers),
        "chapters": [
            {
                "name": chapter.name,
                "title": chapter.title,
                "figures": [_figure(answers[figure.name], files) for figure in chapter.figures],
            }
            for chapter in CHAPTERS
        ],
        "words": files.words,
        "list": files.list.described,
        "details": files.details.described,
        "examples": files.examples,
    }
    data = {"META": plain_data(meta), "LIST": files.list.packed(), "DETAILS": files.details.packed()}
    write_page(out, __package__, "survey.html", title=printable(title), styles=_STYLES, script=_SCRIPT, data=data)


def _figure(answer: Answer, files: SurveyedFiles) -> dict[str, Any]:
    figure = answer.figure
    return {
        "name": figure.name,
        "title": figure.title,
        "says": "" if figure.name in _LEAD else answer.says,
        "sentence": figure.sentence,
        "empty": figure.empty,
        "columns": [asdict(column) for column in figure.columns],
        "drawing": asdict(figure.drawing) if figure.drawing else None,
        "single": figure.single,
        "sql": figure.sql,
        "rows": [
            [_cell(value, column.unit, files) for value, column in zip(row, figure.columns, strict=True)]
            for row in answer.rows
        ],
    }


def _cell(value: Any, unit: ColumnUnit, files: SurveyedFiles) -> Any:
    """A value as the scripts take it; a file is known by its number."""
    if value is None:
        return None
    if unit == ColumnUnit.CONTENT:
        return files.number.get(value)
    if unit == ColumnUnit.ADDRESS:
        return hex(value)
    return printable_value(value)


def _cards(answers: dict[str, Answer]) -> list[dict[str, Any]]:
    """The figures that everybody asks for first."""
    versions = {row["version"]: row for row in answers["versions"].objects() if row["among"] == "all"}
    rows = {"survey": answers["survey"].objects()[0], "versions": versions.get(3, {})}
    cards = []
    for name, column, words, figure in _CARDS:
        unit = next(one.unit for one in answers[name].figure.columns if one.name == column)
        cards.append({"value": rows[name].get(column), "unit": unit, "words": words, "figure": figure})
    return cards
