"""What is said at the end of a survey."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from walkback.cli.verbs.survey import _print
from walkback.surveys import layout
from walkback.surveys.run import Surveyed
from walkback.surveys.summary import summary


def database(*files: Any) -> duckdb.DuckDBPyConnection:
    """Tables with files: their content, the bytes of their call frames and those of each version that can be made."""
    db = duckdb.connect()
    for table, columns in layout.COLUMNS.items():
        described = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        db.execute(f"CREATE TABLE {table} ({described})")
    for content, frames, versions in files:
        db.execute("INSERT INTO places (content, path) VALUES (?, ?)", [content, content])
        db.execute(
            "INSERT INTO files (content, bytes, outcome, source, eh_frame, eh_frame_hdr) VALUES (?, 1000, ?, ?, ?, 0)",
            [content, "measured", ".eh_frame", frames],
        )
        for version, size in versions.items():
            why = "no such machine" if size is None else None
            db.execute(
                "INSERT INTO versions (content, version, impossible, bytes, functions, covered) "
                "VALUES (?, ?, ?, ?, 2, 1)",
                [content, version, why, size],
            )
    return db


def test_versions_are_compared_over_the_same_files(capsys: pytest.CaptureFixture[str]) -> None:
    found = summary(database(("one", 100, {1: 80, 2: 90, 3: 100}), ("two", 100, {1: None, 2: 50, 3: 60})))
    assert [(one.version, one.files, one.bytes) for one in found.versions] == [(1, 1, 80), (2, 2, 140), (3, 2, 160)]
    assert [(one.version, one.files, one.bytes) for one in found.shared] == [(1, 1, 80), (2, 1, 90), (3, 1, 100)]
    _print(Surveyed("x", 2, 2), found)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.partition(": ")[0] == "Ratios over the 1 file that every version can be made for"
    assert last.partition(": ")[2] == "version 1 0.800, version 2 0.900, version 3 1.000"


def test_nothing_is_said_of_them_where_they_are_all_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    for sizes in ({1: 80, 2: 90, 3: 100}, {1: None, 2: 90, 3: 100}):
        _print(Surveyed("x", 1, 1), summary(database(("one", 100, sizes))))
        assert "version 3" in capsys.readouterr().out.splitlines()[-1]
