"""Rows of a survey on their way from who finds them to the database: as columns of NumPy, packed."""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from walkback.segments.database import object_column
from walkback.surveys import layout

Rows = Mapping[str, Sequence[tuple[Any, ...]]]
Columns = dict[str, Any]
"""Columns of one table by name; `name?` marks where a number is missing, and is left out if none is."""

_NUMBERS: Mapping[str, type[np.generic]] = {
    "UBIGINT": np.uint64,
    "BIGINT": np.int64,
    "UTINYINT": np.uint8,
    "BOOLEAN": np.bool_,
}
_FAST = 1
_NO_TEXT = {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}
"""How Python has bytes in a text that are none."""
_MISSING = "{}?"


def packed(rows: Rows) -> bytes:
    """Rows by table, in the order of the tables' columns; a value that a column cannot hold is an error."""
    tables = {table: _columns(table, its) for table, its in rows.items() if its}
    return zlib.compress(pickle.dumps(tables, pickle.HIGHEST_PROTOCOL), _FAST)


def unpacked(data: bytes) -> dict[str, Columns]:
    """Columns by table, of those that have rows."""
    tables: dict[str, Columns] = pickle.loads(zlib.decompress(data))  # noqa: S301 - from our own workers
    return tables


def _columns(table: str, rows: Sequence[tuple[Any, ...]]) -> Columns:
    found: Columns = {}
    for (name, kind), values in zip(layout.COLUMNS[table].items(), zip(*rows, strict=True), strict=True):
        number = _NUMBERS.get(kind)
        if number is None:
            found[name] = texts(values if kind == "VARCHAR" else map(_as_json, values))
            continue
        missing = np.array([value is None for value in values])
        if missing.any():
            found[_MISSING.format(name)] = missing
        found[name] = np.array([value or 0 for value in values], number)
    return found


def texts(values: Iterable[str | None]) -> Any:
    """A column of text."""
    return object_column([value if value is None else plain_text(value) for value in values])


def plain_text(text: str) -> str:
    """As it is written: what is no text, as in some names, is spelled out."""
    return text if text.isascii() else text.translate(_NO_TEXT).encode(errors="backslashreplace").decode()


def _as_json(values: Sequence[Any] | None) -> str | None:
    return None if values is None else json.dumps(values)


def selected(table: str, columns: Columns) -> str:
    """What stands behind SELECT to have these columns as the table has them; text must be read as text."""
    return ", ".join(_selected(name, kind, columns) for name, kind in layout.COLUMNS[table].items())


def _selected(name: str, kind: str, columns: Columns) -> str:
    if kind.endswith("[]"):
        return f'CAST(CAST("{name}" AS JSON) AS {kind}) AS "{name}"'
    missing = _MISSING.format(name)
    value = f'CASE WHEN "{missing}" THEN NULL ELSE "{name}" END' if missing in columns else f'"{name}"'
    return f'CAST({value} AS {kind}) AS "{name}"'
