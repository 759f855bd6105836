"""Queries that people write: one question, which writes nothing."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from walkback.base.errors import ArgumentError
from walkback.base.text import clean
from walkback.segments.database import one_line

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_WRITING = {"copy", "delete", "insert", "merge", "update"}
_LOGGING = re.compile(r"(?:enable|disable)_logging|truncate_duckdb_logs", re.IGNORECASE)
"""Functions that change what DuckDB writes into its log; before 2.0 a locked database allows them."""


@contextlib.contextmanager
def wrong_queries() -> Iterator[None]:
    """What DuckDB says of a query that cannot be answered becomes an ArgumentError."""
    import duckdb

    try:
        yield
    except (duckdb.ParserException, duckdb.CatalogException, duckdb.BinderException) as error:
        raise ArgumentError(one_line(error)) from None


def checked_query(connection: DuckDBPyConnection, query: str) -> str:
    """The query, if it is one that only reads."""
    import duckdb

    query = clean(query)
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        message = "one query is answered, as SELECT, FROM, WITH, DESCRIBE or SUMMARIZE begins, and nothing else"
        raise ArgumentError(message)
    # A WITH may have statements that write, and the whole is a SELECT all the same.
    if writing := _WRITING & set(_keywords(query)):
        message = f"a query that could write is not answered: {min(writing)} (as a name it needs quotes)"
        raise ArgumentError(message)
    if logging := _LOGGING.search(query):
        raise ArgumentError(f"a query that changes what is logged is not answered: {logging[0]}")
    return query


def _keywords(query: str) -> Iterator[str]:
    """The words of a query that could be more than names."""
    import duckdb

    data = query.encode()
    for start, kind in duckdb.tokenize(query):
        if kind == duckdb.token_type.keyword:
            yield (re.match(rb"\w*", data[start:]) or [b""])[0].decode().lower()
