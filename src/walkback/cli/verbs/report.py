"""`walkback report`: what a survey found, or what one file has, for people to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from walkback.cli.command import verb
from walkback.cli.completion import figures
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, complain, guarded, refuse_both
from walkback.cli.paths import INPUT_FILE, OUTPUT_FILE, opened, refuse_input
from walkback.cli.sources import MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from walkback.reports.figures import Answer, Column, Row
    from walkback.sections.reading import Tables

_MANY = 10_000
"""Rows whose widths are measured together."""
_SHOWN = 10
"""Rows of a figure that are printed if it was not asked for by name."""
_WIDEST = 72


@verb(
    "walkback report hello",
    "walkback report hello -o hello.html",
    exit_1="the survey is not finished, or the file has no unwind tables.",
)
@click.argument("subject", metavar="SURVEY|FILE", type=INPUT_FILE)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    help="Write a page of HTML; with --json or --csv, write that.",
)
@click.option("--title", metavar="TEXT", help="Title of a survey's page. [default: the name of the folder]")
@click.option(
    "--figure",
    "names",
    metavar="NAME",
    multiple=True,
    help="Show only this figure: all its rows, and for a survey its SQL; may be repeated.",
    shell_complete=figures,
)
@MEASURED
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows of one figure, selected with --figure, as CSV.")
@JSON
@click.pass_context
def report(
    ctx: click.Context,
    subject: str,
    output: str | None,
    title: str | None,
    names: tuple[str, ...],
    tables: Tables | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show the results of a survey, or of one ELF file, as a page.

    With -o it writes one page of HTML that needs no network. Without, it prints the figures as text, CSV or JSON; with
    --figure also the SQL behind each.
    """
    if as_csv and as_json:
        refuse_both("--json", "--csv")
    if as_csv and len(names) != 1:
        message = "--csv is for one figure: choose it with --figure NAME"
        raise click.UsageError(message)
    page = output is not None and not as_csv and not as_json
    if page and names:
        message = "a page has all figures; --figure is for text, --json and --csv"
        raise click.UsageError(message)
    is_survey = Path(subject).is_dir()
    if title is not None and not (page and is_survey):
        message = "--title is for the page of a survey, which -o writes"
        raise click.UsageError(message)
    if tables is not None and is_survey:
        message = "--source is for files; for a survey it is chosen when that is made"
        raise click.UsageError(message)
    if output is not None and not is_survey:
        from walkback.reports.opening import file_of

        refuse_input(file_of(subject), output)
    form = "csv" if as_csv else "json" if as_json else "text"

    def work(name: str) -> int:
        if page:
            from walkback.reports.page import report as write_report

            with opened(output) as out:
                write_report(name, out, title=title, tables=tables)
        elif is_survey:
            _survey(name, form, output, names)
        else:
            _file(name, form, output, names, tables)
        return _finished(name) if is_survey else EXIT_FINE

    ctx.exit(guarded(work, subject, subject))


def _finished(folder: str) -> int:
    """Complain of a survey that broke off."""
    from walkback.surveys.reading import Survey

    if Survey(folder).finished:
        return EXIT_FINE
    complain(f"{folder}: this survey is not finished, the report shows what it has so far")
    return EXIT_FINDINGS


def _survey(folder: str, form: str, output: str | None, names: tuple[str, ...]) -> None:
    from walkback.reports.chapters import FIGURES
    from walkback.reports.figures import ask
    from walkback.reports.page import asked

    _check(names, FIGURES)
    with asked(folder) as database, opened(output) as out:
        for name in names or FIGURES:
            out.writelines(_answer(ask(database, FIGURES[name]), form, chosen=bool(names)))


def _file(file: str, form: str, output: str | None, names: tuple[str, ...], tables: Tables | None) -> None:
    from walkback.reports.listings import binary_figures

    found = {listing.name: listing for listing in binary_figures(file, tables=tables)}
    _check(names, found)
    with opened(output) as out:
        for name in names or found:
            listing = found[name]
            if form == "csv":
                out.writelines(_csv(listing.columns, listing.rows))
            elif form == "json":
                out.writelines(_row_lines(name, listing.columns, listing.rows))
            else:
                out.write(f"{listing.title} ({listing.name})\n".encode())
                out.writelines(_table(listing.columns, listing.rows, None if names else _SHOWN))
                out.write(b"\n")


def _check(names: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            message = f"there is no figure {name!r}; there are {', '.join(known)}"
            raise click.UsageError(message)


class FigureObject(TypedDict):
    """A figure of a survey, as JSON."""

    figure: str
    """Its name."""
    title: str
    """Its title."""
    sentence: str
    """What is counted."""
    says: str
    """The result."""
    sql: str
    """The query that makes it."""
    columns: list[str]
    """The names of its columns."""
    rows: Sequence[Sequence[Any]]
    """Its rows, with a value for each column."""


def _answer(answer: Answer, form: str, *, chosen: bool) -> Iterator[bytes]:
    """A figure of a survey."""
    import json

    figure = answer.figure
    if form == "csv":
        yield from _csv(figure.columns, answer.rows)
    elif form == "json":
        value: FigureObject = {
            "figure": figure.name,
            "title": figure.title,
            "sentence": figure.sentence,
            "says": answer.says,
            "sql": figure.sql,
            "columns": [column.name for column in figure.columns],
            "rows": answer.rows,
        }
        yield json.dumps(value).encode() + b"\n"
    else:
        yield from _text(answer, chosen=chosen)


def _text(answer: Answer, *, chosen: bool) -> Iterator[bytes]:
    import textwrap

    figure = answer.figure
    yield f"{figure.title} ({figure.name})\n".encode()
    for words in filter(None, (answer.says, figure.sentence if chosen else "")):
        yield (textwrap.fill(words, 118, initial_indent="  ", subsequent_indent="  ") + "\n").encode()
    if not answer.rows:
        yield f"  {figure.empty}\n".encode()
    elif figure.single:
        yield from _facts(figure.columns, answer.rows[0])
    else:
        yield from _table(figure.columns, iter(answer.rows), None if chosen else _SHOWN)
    if chosen:
        yield b"\n" + textwrap.indent(figure.sql, "  ").encode() + b"\n"
    yield b"\n"


def _facts(columns: Sequence[Column], row: Row) -> Iterator[bytes]:
    """One row, a line for each column."""
    from walkback.reports.words import in_words

    widest = max(len(column.title) for column in columns)
    for column, value in zip(columns, row, strict=True):
        yield f"  {column.title:<{widest}}  {in_words(value, column)}\n".encode()


def _table(columns: Sequence[Column], rows: Iterator[Row], most: int | None) -> Iterator[bytes]:
    """Columns side by side; numbers to the right."""
    from itertools import islice

    from walkback.reports.figures import ColumnUnit
    from walkback.reports.words import in_words

    shown = [place for place, column in enumerate(columns) if column.unit != ColumnUnit.CONTENT]
    right = {place for place in shown if columns[place].unit != ColumnUnit.TEXT}
    head = [columns[place].title for place in shown]
    while piece := list(islice(rows, _MANY if most is None else most)):
        words = [[in_words(row[place], columns[place]) for place in shown] for row in piece]
        lines = words if most is None else [[_short(cell) for cell in cells] for cells in words]
        widths = [max(map(len, cells)) for cells in zip(head, *lines, strict=True)]
        for line in [head, *lines]:
            cells = [
                cell.rjust(width) if place in right else cell.ljust(width)
                for cell, width, place in zip(line, widths, shown, strict=True)
            ]
            yield f"  {'  '.join(cells).rstrip()}\n".encode("utf-8", "surrogateescape")
        if most is not None:
            if more := sum(1 for _ in rows):
                yield f"  and {more:,} more {'row' if more == 1 else 'rows'}: --figure shows all\n".encode()
            return


def _short(text: str) -> str:
    """The end of what is long: the end of a path says most."""
    return text if len(text) <= _WIDEST else f"...{text[3 - _WIDEST :]}"


def _csv(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[bytes]:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in columns])
    for row in rows:
        writer.writerow(map(_plain, row))
        if text.tell() > 1 << 16:
            yield text.getvalue().encode("utf-8", "backslashreplace")
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode("utf-8", "backslashreplace")


def _plain(value: object) -> object:
    """A value of CSV: nothing for what is not there, and the words of JSON for yes and no."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value


def _row_lines(name: str, columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[bytes]:
    """A row a line: a file may have a million."""
    import json

    names = [column.name for column in columns]
    for row in rows:
        yield json.dumps({"figure": name, **dict(zip(names, row, strict=True))}).encode() + b"\n"
