"""The database of queries: what it puts on the disk, and what it does after an error."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from walkback.segments.database import Reopened, connect

LARGE = "CREATE TABLE large AS SELECT range AS number, hash(range) AS other FROM range(2000000)"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_nobody_else_reads_what_is_too_large_for_memory(temporary: Path) -> None:
    with connect(memory_limit="30MB", threads="1") as one, connect(memory_limit="30MB", threads="1") as other:
        for database in (one, other):
            database.execute(LARGE)
        folders = list(temporary.iterdir())
        assert len(folders) == 2
        assert all(list(folder.iterdir()) for folder in folders)
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
        for database in (one, other):
            found = database.execute("SELECT sum(number), count(*) FROM large WHERE hash(number) = other").fetchall()
            assert found == [(1999999000000, 2000000)]
    assert list(temporary.iterdir()) == []


def test_without_a_place_for_its_folder_it_works_as_far_as_memory_goes(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    with connect() as database:
        assert database.execute("SELECT 42").fetchall() == [(42,)]
    assert list(temporary.iterdir()) == []


def test_after_an_error_it_is_another_one(temporary: Path) -> None:
    with Reopened() as database:
        with database.use() as one:
            one.execute("CREATE TABLE here (number INTEGER)")
        with database.use() as one:
            assert one.execute("SELECT count(*) FROM here").fetchall() == [(0,)]
        with pytest.raises(ZeroDivisionError), database.use():
            raise ZeroDivisionError
        with database.use() as one:
            assert one.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]
        assert len(list(temporary.iterdir())) == 1
    assert list(temporary.iterdir()) == []
