"""What is said at the end of a survey."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import walkback
from cli.hello import mixed
from docfiles import of_go
from walkback.base.errors import UnreadableError
from walkback.cli.verbs.survey import _print
from walkback.reports.chapters import FIGURES
from walkback.reports.figures import ask
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
            "INSERT INTO files (content, bytes, outcome, source, eh_frame, eh_frame_hdr, code_bytes, from_cfi) "
            "VALUES (?, 1000, ?, ?, ?, 0, 10, 10)",
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
    for one in (*found.versions, *found.shared):
        assert (one.compared.files, one.compared.bytes) == (one.files, one.bytes)
    _print(Surveyed("x", 2, 2), found)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.partition(": ")[0] == "Ratios over the 1 file that every version can be made for"
    assert last.partition(": ")[2] == "version 1 0.800, version 2 0.900, version 3 1.000"


def test_figures_of_one_line_are_of_the_same_files(capsys: pytest.CaptureFixture[str]) -> None:
    db = database(("one", 100, {3: 60}), ("other", 40, {3: 90_000}))
    db.execute("UPDATE files SET source = '.gopclntab', from_cfi = 4 WHERE content = 'other'")
    found = summary(db)
    [one] = found.versions
    assert (one.files, one.bytes, one.functions, one.covered) == (2, 90_060, 4, 2)
    assert (one.compared.files, one.compared.bytes, one.compared.call_frames) == (1, 60, 100)
    _print(Surveyed("x", 2, 2), found)
    assert [line.split() for line in capsys.readouterr().out.splitlines()[-6:]] == [
        *(["files", "bytes", "covered"], ["version", "3", "2", "90,060", "50.000", "%"], []),
        ["Of", "the", "files", "that", "have", ".eh_frame", "and", "no", "other", "table:"],
        *(["files", "bytes", ".eh_frame+hdr", "ratio"], ["version", "3", "1", "60", "100", "0.600"]),
    ]


def test_code_that_is_not_described_is_listed_by_reason(capsys: pytest.CaptureFixture[str]) -> None:
    db = database(("one", 100, {3: 60}), ("other", 40, {3: 90}))
    db.execute("UPDATE files SET text_bytes = 60 WHERE content = 'one'")
    db.execute("UPDATE files SET text_bytes = 8 WHERE content = 'other'")  # damaged tables describe more
    for version, code, message, size in (
        *((3, "signal", "a signal frame", 20), (3, "expression", "an expression: of rax", 30)),
        *((3, "expression", "an expression: of rbx", 40), (2, "cfa-base", "a base", 9), (3, "unreadable", "FDE 1", 0)),
    ):
        db.execute(
            "INSERT INTO functions (content, about, version, code, message, size, count) "
            "VALUES ('one', 'uncovered', ?, ?, ?, ?, 1)",
            [version, code, message, size],
        )
    found = summary(db)
    assert [(one.code, one.reason, one.functions, one.bytes) for one in found.left_out] == [
        ("expression", "an expression", 2, 70),
        ("no-table", "no table that was read describes the code", None, 50),
        ("signal", "a signal frame", 1, 20),
    ]
    _print(Surveyed("x", 2, 2), found)
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[-4:]] == [
        "bytes functions reason",
        "70 2 an expression (expression)",
        "50 - no table that was read describes the code (no-table)",
        "20 1 a signal frame (signal)",
    ]


def test_without_call_frame_information_there_is_no_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    db = database(("one", 0, {1: 80, 2: 90, 3: 100}), ("two", 0, {1: None, 2: 50, 3: 60}))
    _print(Surveyed("x", 2, 2), summary(db))
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1].split() == ["version", "3", "2", "160", "50.000", "%"]
    assert "ratio" not in shown.casefold()


def test_what_describes_the_code_is_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hello-go").write_bytes(of_go())
    survey = tmp_path / "survey"
    done = walkback.survey([mixed(tmp_path), tmp_path / "hello-go"], survey, jobs=1, tables="auto")
    with walkback.Survey(survey).database() as its:
        found = summary(its)
        rows = ask(its, FIGURES["code-by-source"]).objects()
    assert (found.code, found.described) == (4399, {"cfi": 44, "go": 128, "code": 4099})
    assert [(row["source"], row["files"], row["code"]) for row in rows] == [
        *(("code", 1, 4099), ("go", 1, 128), ("none", 1, 128), ("cfi", 1, 44)),
    ]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    _print(done, found)
    assert (
        "Code: 4,399 bytes, described 1.000 % by call frame information, 2.910 % by Go's table, 93.180 % by the code\n"
    ) in capsys.readouterr().out


def test_a_survey_keeps_the_tables_that_it_was_made_with(tmp_path: Path) -> None:
    path, survey = mixed(tmp_path), tmp_path / "survey"
    walkback.survey([path], survey, jobs=1, tables="auto")
    assert walkback.survey([path], survey, jobs=1, tables="auto").done == 0
    with pytest.raises(UnreadableError, match="this survey was made with another --source: use another folder"):
        walkback.survey([path], survey, jobs=1)


def test_nothing_is_said_of_them_where_they_are_all_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    for sizes in ({1: 80, 2: 90, 3: 100}, {1: None, 2: 90, 3: 100}):
        _print(Surveyed("x", 1, 1), summary(database(("one", 100, sizes))))
        assert "version 3" in capsys.readouterr().out.splitlines()[-1]
