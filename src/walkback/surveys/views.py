"""The tables of a survey as views of DuckDB over the parts that count.

Each content is in the tables about contents once: who writes a part leaves out what is in another. A file that was
looked through again, because it had changed, is in several parts, and of these the last one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from walkback.segments.database import cast_columns, first_unreadable, sql_path
from walkback.surveys import layout

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from walkback.surveys.folder import SurveyPart

_BY_PATH = ("units", "places", "troubles")


def make_views(db: DuckDBPyConnection, parts: Sequence[SurveyPart], *, only: str | None = None) -> None:
    """Make a view of each table; with `only` of those paths alone that the table of this name has."""
    if not parts:
        for table in layout.TABLES:
            columns = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in layout.COLUMNS[table].items())
            db.execute(f"CREATE VIEW {table} AS SELECT {columns} WHERE false")
        return
    if len(parts) == 1 and parts[0].finished and only is None:
        for table in layout.TABLES:
            db.execute(f"CREATE VIEW {table} AS SELECT {_names(table)} FROM {scan(table, parts)}")
        return
    some = f"WHERE path IN (SELECT path FROM {only})" if only else ""
    # Whatever happened to a file, it is in one of these two.
    mentions = " UNION ALL ".join(f"SELECT path, part FROM {scan(table, parts)}" for table in ("units", "troubles"))
    db.execute(f"CREATE TEMP TABLE live AS SELECT path, max(part) AS part FROM ({mentions}) {some} GROUP BY path")
    for table in _BY_PATH:
        source = scan(table, parts)
        db.execute(f"CREATE VIEW {table} AS SELECT {_names(table)} FROM {source} SEMI JOIN live USING (path, part)")
    db.execute("CREATE TEMP TABLE contents AS SELECT DISTINCT content FROM places")
    for table in layout.KEYED:
        source = scan(table, parts)
        db.execute(f"CREATE VIEW {table} AS SELECT {_names(table)} FROM {source} SEMI JOIN contents USING (content)")


def first_wrong(parts: Sequence[SurveyPart]) -> str | None:
    """The first file that is not what it should be, after something could not be read."""
    return first_unreadable(
        (part.file(table), columns, scan(table, [part])) for part in parts for table, columns in layout.COLUMNS.items()
    )


def _names(table: str) -> str:
    return ", ".join(f'"{name}"' for name in layout.COLUMNS[table])


def scan(table: str, parts: Sequence[SurveyPart]) -> str:
    """What stands behind FROM: the rows of a table with the number of their part. Other types are an error."""
    columns = cast_columns(layout.COLUMNS[table])
    numbers = f"[{', '.join(str(part.number) for part in parts)}]"
    files = ", ".join(sql_path(part.file(table)) for part in parts)
    source = f"read_parquet([{files}], hive_partitioning = false)"
    return f"(SELECT {numbers}[file_index::BIGINT + 1] AS part, {columns} FROM {source})"
