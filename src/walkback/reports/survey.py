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
from walkback.reports.figures import Answer, ColumnUnit, Figure, Row, ask
from walkback.reports.surveyfiles import SurveyedFiles
from walkback.reports.surveyhead import CHART_TITLE, CHARTED, alike, cards, charted, is_shown, spoken, verdict
from walkback.reports.words import printable_value

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_STYLES = ("reports/common.css", "reports/survey.css")
_SCRIPT = "reports/survey.js"
_SFRAME = "sframe"
"""The chapter and the figure about files that have SFrame."""
_PROOF = "proof"
"""Those about surveys that were asked to verify."""


def write_survey_page(connection: DuckDBPyConnection, out: BinaryIO, *, title: str, finished: bool = True) -> None:
    """Write the page about a survey; about one that is not finished it says so."""
    answers = {figure.name: ask(connection, figure) for chapter in CHAPTERS for figure in chapter.figures}
    files = SurveyedFiles(connection)
    chapters = _chapters(answers, files)
    shown = {figure["name"] for chapter in chapters for figure in chapter["figures"]}
    meta = {
        "version": version("walkback"),
        "finished": finished,
        "verdict": verdict(answers),
        "chart": _head_chart(answers, files),
        "cards": cards(answers, shown),
        "chapters": chapters,
        "words": files.words,
        "list": files.list.described,
        "details": files.details.described,
        "examples": files.examples,
    }
    data = {"META": plain_data(meta), "LIST": files.list.packed(), "DETAILS": files.details.packed()}
    write_page(out, __package__, "survey.html", title=printable(title), styles=_STYLES, script=_SCRIPT, data=data)


def _chapters(answers: dict[str, Answer], files: SurveyedFiles) -> list[dict[str, Any]]:
    """What each chapter has to show. The files that have SFrame come first; where none has it, that is one line.

    A survey that was not asked to verify has no chapter about proofs.
    """
    chapters: dict[str, dict[str, Any]] = {}
    for chapter in CHAPTERS:
        asked = [answers[figure.name] for figure in chapter.figures]
        shown = [_figure(answer, files) for answer in asked if len(answer.rows) > answer.figure.split]
        empty = [answer.figure.empty for answer in asked if not answer.rows and not answer.figure.split]
        lines = [alike([answer for answer in asked if answer.figure.split and len(answer.rows) == 1]), *empty]
        chapters[chapter.name] = {
            "name": chapter.name,
            "title": chapter.title,
            "figures": shown,
            "lines": [printable(line) for line in lines if line],
        }
    if not answers[_PROOF].rows:
        del chapters[_PROOF]
    having = chapters.pop(_SFRAME)
    if answers[_SFRAME].rows:
        return [having, *chapters.values()]
    chapters["survey"]["lines"].insert(0, answers[_SFRAME].figure.empty)
    return list(chapters.values())


def _head_chart(answers: dict[str, Answer], files: SurveyedFiles) -> dict[str, Any]:
    """The chart of the head, which the figure of the same numbers does not repeat."""
    figure = answers[CHARTED].figure
    assert figure.drawing
    return {
        "title": CHART_TITLE,
        "sentence": figure.sentence,
        "columns": [asdict(column) for column in figure.columns],
        "drawing": asdict(figure.drawing) | {"panel": None},
        "rows": [_cells(row, figure, files) for row in charted(answers)],
    }


def _figure(answer: Answer, files: SurveyedFiles) -> dict[str, Any]:
    figure = answer.figure
    return {
        "name": figure.name,
        "title": figure.title,
        "says": spoken(answer),
        "sentence": figure.sentence,
        "columns": [asdict(column) | {"shown": is_shown(answer, column)} for column in figure.columns],
        "drawing": asdict(figure.drawing) if figure.drawing and figure.name != CHARTED else None,
        "single": figure.single,
        "sql": figure.sql,
        "rows": [_cells(row, figure, files) for row in answer.rows],
    }


def _cells(row: Row, figure: Figure, files: SurveyedFiles) -> list[Any]:
    return [_cell(value, column.unit, files) for value, column in zip(row, figure.columns, strict=True)]


def _cell(value: Any, unit: ColumnUnit, files: SurveyedFiles) -> Any:
    """A value as the scripts take it; a file is known by its number."""
    if value is None:
        return None
    if unit == ColumnUnit.CONTENT:
        return files.number.get(value)
    if unit == ColumnUnit.ADDRESS:
        return hex(value)
    return printable_value(value)
