"""`walkback store DIR sql`: any other question."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from walkback.base.text import printable
from walkback.cli.choosing import SINCE, UNTIL
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINE, JSON, guarded, refuse_both
from walkback.cli.paths import opened
from walkback.cli.searching import Searching, file_options
from walkback.cli.walking import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ROWS = 10_000
"""Printed at once; columns are as wide as these need."""
_WIDEST = 80


@verb(
    "walkback store stacks sql 'SELECT process, sum(weight) FROM samples GROUP BY ALL'",
    "walkback store stacks sql 'DESCRIBE samples'",
)
@click.argument("query")
@SINCE
@UNTIL
@file_options
@click.option("--allow-files", is_flag=True, help="Let the query read files outside the store.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@JSON
@OUTPUT
@click.pass_context
def sql(
    ctx: click.Context,
    /,
    query: str,
    since: int | None,
    until: int | None,
    allow_files: bool,
    searching: Searching,
    as_csv: bool,
    as_json: bool,
    output: str | None,
) -> None:
    """Answer a query in the SQL of DuckDB.

    The tables are samples, stack_frames, frames and blocks; `DESCRIBE samples` shows the columns of one. Queries that
    write, or that read other files, are refused.
    """
    if as_csv and as_json:
        refuse_both("--json", "--csv")

    def work(folder: str) -> int:
        from walkback.store.naming import Naming
        from walkback.store.sql import Database
        from walkback.store.store import Store
        from walkback.store.sums import Wanted

        held = Store(folder).snapshot(since=since, until=until)
        wanted = Wanted(since, until)
        naming = Naming(searching.search)
        with held, Database(held.blocks, wanted, naming, allow_files=allow_files) as database:
            try:
                answer = database.ask(query)
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            names = [str(column[0]) for column in answer.description or ()]
            write = _csv if as_csv else _json if as_json else _text
            with opened(output) as out:
                out.writelines(write(names, database.rows(answer, _ROWS)))
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))


def _text(names: list[str], pieces: Iterable[list[tuple[Any, ...]]]) -> Iterator[bytes]:
    """Columns side by side; numbers to the right."""
    heads = [printable(name) for name in names]
    for number, rows in enumerate(pieces):
        cells = [[_cell(value) for value in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        right = (
            [all(isinstance(row[at], (int, float)) for row in rows) for at in range(len(names))]
            if rows
            else [False] * len(names)
        )
        for line in [*([heads] if not number else []), *cells]:
            words = [
                cell.rjust(width) if to_right else cell.ljust(width)
                for cell, width, to_right in zip(line, widths, right, strict=True)
            ]
            yield "  ".join(words).rstrip().encode("utf-8", "replace") + b"\n"


def _cell(value: object) -> str:
    text = "" if value is None else printable(_plain(value)[: _WIDEST + 1])
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _plain(value: object) -> str:
    from datetime import datetime

    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return ",".join(f"{name}={its}" for name, its in value.items())
    return str(value)


def _csv(names: list[str], pieces: Iterable[list[tuple[Any, ...]]]) -> Iterator[bytes]:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for rows in pieces:
        writer.writerows(["" if value is None else _plain(value) for value in row] for row in rows)
        yield text.getvalue().encode("utf-8", "replace")
        text.seek(0)
        text.truncate()


def _json(names: list[str], pieces: Iterable[list[tuple[Any, ...]]]) -> Iterator[bytes]:
    import json

    for rows in pieces:
        for row in rows:
            yield json.dumps(dict(zip(names, map(_value, row), strict=True)), default=_plain).encode() + b"\n"


def _value(value: Any) -> Any:
    """What JSON has a word for: it has none for what is no number, and names are text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name if isinstance(name, str) else _plain(name): _value(its) for name, its in value.items()}
    return [_value(one) for one in value] if isinstance(value, (list, tuple)) else value
