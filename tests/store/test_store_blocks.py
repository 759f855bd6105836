"""Blocks of a store whose tables or files are damaged are told."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from store.plainstore import FRAMES, KERNEL, STRANGER, Sample, write_segment
from walkback.base.errors import UnreadableError
from walkback.store.store import Store


def damage(path: Path, table: str, query: str) -> None:
    """Write a table of a block again."""
    file = next(path.glob(f"segment=*/hour=*/{table}.parquet"))
    rows = duckdb.sql(f"SELECT * FROM '{file}'")
    assert rows is not None
    made = file.with_suffix(".new")
    duckdb.sql(f"COPY ({query.format(file)}) TO '{made}' (FORMAT parquet)")
    made.rename(file)


@pytest.mark.parametrize(
    ("table", "query"),
    [
        ("samples", """SELECT * REPLACE (99::INTEGER AS stack) FROM '{}'"""),
        ("samples", """SELECT * REPLACE (-7::INTEGER AS stack) FROM '{}'"""),
        ("samples", """SELECT * REPLACE (5::INTEGER AS source) FROM '{}'"""),
        ("samples", """SELECT * REPLACE (NULL::INTEGER AS source) FROM '{}'"""),
        ("samples", """SELECT * REPLACE (-1::BIGINT AS weight) FROM '{}'"""),
        ("samples", """SELECT * REPLACE (NULL::BIGINT AS weight) FROM '{}'"""),
        ("samples", """SELECT * REPLACE ('x' AS stack) FROM '{}'"""),
        ("samples", """SELECT time FROM '{}'"""),
        ("nodes", """SELECT * REPLACE (1::INTEGER AS depth) FROM '{}'"""),
        ("nodes", """SELECT * REPLACE (NULL::INTEGER AS depth) FROM '{}'"""),
        ("nodes", """SELECT * REPLACE (77::INTEGER AS frame) FROM '{}'"""),
        ("nodes", """SELECT * REPLACE (-1::INTEGER AS frame) FROM '{}'"""),
        ("frames", """SELECT * REPLACE (3::INTEGER AS module) FROM '{}'"""),
        ("frames", """SELECT * REPLACE (NULL::UBIGINT AS address) FROM '{}'"""),
        ("frames", """SELECT * FROM '{}' LIMIT 0"""),
        ("modules", """SELECT * FROM '{}' LIMIT 0"""),
        ("sources", """SELECT * FROM '{}' LIMIT 0"""),
        ("sources", """SELECT 1 AS a FROM '{}'"""),
    ],
)
def test_damaged_tables_are_told(tmp_path: Path, table: str, query: str) -> None:
    path = tmp_path / "store"
    write_segment(path, [Sample((FRAMES[0], KERNEL, STRANGER)), Sample((FRAMES[1],))])
    damage(path, table, query)
    with pytest.raises(UnreadableError) as caught:
        Store(path).select().profile()
    assert "\n" not in str(caught.value)


@pytest.mark.whole
@pytest.mark.parametrize("table", ["samples", "sources", "nodes", "frames", "modules"])
@pytest.mark.parametrize("how", ["missing", "empty", "cut", "changed"])
def test_damaged_files_are_told(tmp_path: Path, table: str, how: str) -> None:
    path = tmp_path / "store"
    write_segment(path, [Sample((FRAMES[0], STRANGER), weight=number) for number in range(200)])
    file = next(path.glob(f"segment=*/hour=*/{table}.parquet"))
    data = file.read_bytes()
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "changed": bytes(len(data))}[how])
    with pytest.raises(UnreadableError) as caught:
        Store(path).select().profile()
    assert "\n" not in str(caught.value)
