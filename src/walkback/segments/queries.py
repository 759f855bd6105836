"""Queries that people write: one question, which writes nothing, and its answer as columns."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from walkback.base.columns import NamedColumns
from walkback.base.errors import ArgumentError
from walkback.base.text import clean, one_line, sql_name
from walkback.segments.database import done_apart

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_WRITING = {"copy", "delete", "insert", "merge", "update"}
_LOGGING = re.compile(r"(?:enable|disable)_logging|truncate_duckdb_logs", re.IGNORECASE)
"""Functions that change what DuckDB writes into its log; before 2.0 a locked database allows them."""

_WIDE = {"HUGEINT", "UHUGEINT"}
"""Types of integers, as of a sum, that NumPy does not have."""
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*\d+\)")


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
        message = f"queries may only read: {min(writing)} could write (as a name it needs quotes)"
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


def readable_query(connection: DuckDBPyConnection, query: str, *, times_as_text: bool = False) -> str:
    """A query with the same answer, whose columns have different names and types that Python reads.

    As text times keep their nanoseconds, which Python's own have not.
    """
    plain = connection.sql(query)
    names = _different(plain.columns)
    kinds = [str(kind) for kind in plain.types]
    types = [_readable_type(kind, times_as_text=times_as_text) for kind in kinds]
    if names == plain.columns and types == kinds:
        return query
    columns = [f"#{number}" for number in range(1, len(names) + 1)]
    for at, (kind, wanted) in enumerate(zip(kinds, types, strict=True)):
        if wanted != kind:
            columns[at] = f"CAST({columns[at]} AS {wanted})"
        if wanted == "VARCHAR" != kind:
            columns[at] = f"replace({columns[at]}, ' ', 'T')"  # as other times are written
    named = ", ".join(f"{column} AS {sql_name(name)}" for column, name in zip(columns, names, strict=True))
    return f"SELECT {named} FROM (\n{_without_end(query)}\n)"


def answer_columns(connection: DuckDBPyConnection, query: str) -> NamedColumns:
    """The columns of the answer to a readable query; numbers that NumPy has no type for are those of Python."""
    plain = connection.sql(query)
    kinds = dict(zip(plain.columns, map(str, plain.types), strict=True))
    exact = {name: kind for name, kind in kinds.items() if kind in _WIDE or _DECIMAL.fullmatch(kind)}
    if exact:
        replaced = ", ".join(f"CAST({sql_name(name)} AS VARCHAR) AS {sql_name(name)}" for name in exact)
        query = f"SELECT * REPLACE ({replaced}) FROM (\n{_without_end(query)}\n)"
    columns = done_apart(connection, lambda: connection.execute(query).fetchnumpy())
    for name, kind in exact.items():
        columns[name] = _integers(columns[name]) if kind in _WIDE else _numbers(columns[name], Decimal)
    return NamedColumns(columns)


def _integers(texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers of 64 bits, or of Python if one is wider."""
    numbers = _numbers(texts, int)
    limits = np.iinfo(np.int64)
    if all(limits.min <= number <= limits.max for number in np.ma.compressed(numbers)):
        return numbers.astype(np.int64)
    return numbers


def _numbers(texts: np.ndarray[Any, Any], kind: type[int | Decimal]) -> np.ndarray[Any, Any]:
    """Numbers of Python; where there is none the mask stays."""
    missing = np.ma.getmaskarray(texts)
    values = [kind(0) if none else kind(text) for text, none in zip(np.ma.getdata(texts), missing, strict=True)]
    numbers = np.fromiter(values, object, len(values))
    return np.ma.array(numbers, mask=missing) if missing.any() else numbers


def _different(names: Sequence[str]) -> list[str]:
    """Names with a number where there was the same before."""
    different: dict[str, str] = {}
    """By themselves in small letters, since names that differ in these alone are the same in SQL."""
    small = {name.lower() for name in names}
    for name in names:
        numbered = (f"{name}_{number}" for number in range(1, len(names) + 1))
        free = (new for new in numbered if new.lower() not in small | different.keys())
        new = name if name.lower() not in different else next(free)
        different[new.lower()] = new
    return list(different.values())


def _readable_type(kind: str, *, times_as_text: bool) -> str:
    """The type to have a column as."""
    # Python reads these only with a package for time zones.
    kind = kind.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMP")
    return kind.replace("TIMESTAMP_NS", "VARCHAR") if times_as_text else kind


def _without_end(query: str) -> str:
    """A query without the semicolon that ends it."""
    import duckdb

    data = query.encode()
    ends = [start for start, _ in duckdb.tokenize(query) if data[start : start + 1] == b";"]
    return data[: ends[0]].decode() if ends else query
