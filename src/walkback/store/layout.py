"""How a store lies on the disk: names of files and folders, tables and their columns.

DIR/walkback-store.json                            {"version": 1}: this folder is a store
DIR/lock                                           held by readers together, and alone to take away what is replaced
DIR/compact.lock                                   held by who compacts or expires
DIR/staging/<id>/                                  what is not finished; locked while its writer lives
DIR/segment=<id>/segment.json                      what one append or compaction made, and which blocks it replaces
DIR/segment=<id>/hour=2026-11-21T13/<table>.parquet    one block: the samples of an hour, and all they refer to
DIR/segment=<id>/sums/2026-11-21/<table>.parquet   one rollup: the sums of the blocks of a day, or of a month, 2026-11
DIR/segment=<id>/names.parquet                     what code is called, by build ID: what no earlier segment had

A block refers to nothing outside of it, and a rollup neither. Its numbers of stacks, frames, modules and sources are
rows of its own tables, from 0.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from walkback.segments.protocol import Marker

VERSION: Final = 1
MARKER: Final = Marker("walkback-store.json", "store", VERSION)
LOCK: Final = "lock"
COMPACT_LOCK: Final = "compact.lock"
STAGING: Final = "staging"
SEGMENT: Final = "segment="
HOUR: Final = "hour="
SUMS: Final = "sums"
MANIFEST: Final = "segment.json"
NAMES_FILE: Final = "names.parquet"
NAMES: Final = "names"
"""Stands for an hour where a segment says that the names of others count no more."""

HOUR_NS: Final = 3600 * 10**9
LAST_NS: Final = 2**63 // HOUR_NS * HOUR_NS - 1
"""No sample is later: the last whole hour, in the year 2262, that a column can say."""
MOST_WEIGHT: Final = 2**63 - 1

COLUMNS: Final = {
    "samples": {"time": "TIMESTAMP_NS", "stack": "INTEGER", "weight": "BIGINT", "source": "INTEGER", "end": "UTINYINT"},
    "sources": {
        "host": "VARCHAR",
        "process": "VARCHAR",
        "pid": "BIGINT",
        "tid": "BIGINT",
        "event": "VARCHAR",
        "labels": "MAP(VARCHAR, VARCHAR)",
    },
    "nodes": {"depth": "INTEGER", "frame": "INTEGER"},
    "frames": {"module": "INTEGER", "address": "UBIGINT", "name": "VARCHAR"},
    "modules": {"build_id": "VARCHAR", "path": "VARCHAR"},
}
"""The tables of a block: each column and its type; `meanings` describes them."""
TABLES: Final = tuple(COLUMNS)
COLUMNS_OF_SUMS: Final = {
    "sums": {"stack": "INTEGER", "source": "INTEGER", "end": "UTINYINT", "weight": "BIGINT", "count": "BIGINT"},
    "times": {"first": "TIMESTAMP_NS", "last": "TIMESTAMP_NS"},
}
"""The tables that a rollup has in place of its samples."""
TABLES_OF_SUMS: Final = (*COLUMNS_OF_SUMS, *TABLES[1:])
EVERY_COLUMN: Final = COLUMNS | COLUMNS_OF_SUMS
COLUMNS_OF_NAMES: Final = {"build_id": "VARCHAR", "steps": "UBIGINT[]", "reaches": "UINTEGER[]", "calls": "VARCHAR"}
"""A row has all names of one file, by rising address: so they take less room than in rows of their own.

`steps` says how far each begins behind the one before it, the first behind 0; `reaches` how many bytes behind that it
goes on; `calls` has a line for each, with tabs between its calls. A line with at most one name is a function's; one
with more is of one address: the calls that are inlined there, innermost first, and the function.
"""

_ID = re.compile(r"[0-9a-f]{24}")
_HOUR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3])")
_HOUR_FORM: Final = "%Y-%m-%dT%H"
_HOUR_END: Final = len("2026-11-21T13")
_DAY_END: Final = len("2026-11-21")
_MONTH_END: Final = len("2026-11")
_SPAN = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?")


def is_id(text: object) -> bool:
    """Whether something can be the name of a segment."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def hour_name(number: int) -> str:
    """The name of an hour, in UTC; `number` counts hours since 1970."""
    return datetime.fromtimestamp(number * 3600, UTC).strftime(_HOUR_FORM)


def spans_of(hour: str) -> tuple[str, str]:
    """The day and the month of an hour."""
    return hour[:_DAY_END], hour[:_MONTH_END]


def is_span(text: object) -> bool:
    """Whether something can be the name of a day or a month."""
    return isinstance(text, str) and _SPAN.fullmatch(text) is not None


def hour_number(name: object) -> int | None:
    """Hours since 1970; None for what is no name of an hour."""
    return _number_of(name) if isinstance(name, str) and len(name) == _HOUR_END else None


@lru_cache(maxsize=1 << 13)
def _number_of(name: str) -> int | None:
    """Remembered, because a description names an hour again and again."""
    if _HOUR.fullmatch(name) is None:
        return None
    try:
        found = datetime.fromisoformat(f"{name}:00+00:00")
    except ValueError:
        return None
    return int(found.timestamp()) // 3600
