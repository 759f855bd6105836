"""The folder of a survey: what is no survey or damaged is refused, and who shares it comes to no harm."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from surveys.surveyed import elf, names, tables, write
from walkback import UnreadableError
from walkback.base.errors import MissingError
from walkback.base.locks import locked
from walkback.surveys import layout
from walkback.surveys.folder import SurveyFolder
from walkback.surveys.reading import Survey
from walkback.surveys.run import survey


def test_a_folder_with_something_else_is_refused_and_left_alone(files: Path, tmp_path: Path) -> None:
    write(tmp_path / "full", {"mine": b"x"})
    with pytest.raises(UnreadableError, match="'mine' is in it"):
        survey([files], tmp_path / "full")
    assert names(tmp_path / "full") == {"mine"}
    with pytest.raises(UnreadableError, match="not a survey"):
        tables(tmp_path / "full")


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b'{"version": 99}', b"3", b"\xff"])
def test_a_damaged_marker_is_an_error(whole: Path, tmp_path: Path, text: bytes) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    (tmp_path / "survey" / layout.MARKER.name).write_bytes(text)
    with pytest.raises(UnreadableError):
        tables(tmp_path / "survey")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"replaces": 3, "finished": true}', b'{"replaces": ["x"], "finished": 1}']
)
def test_a_part_that_does_not_say_what_it_is_is_an_error(whole: Path, tmp_path: Path, text: bytes) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    [part] = SurveyFolder(tmp_path / "survey").parts()
    (part.path / layout.MANIFEST).write_bytes(text)
    with pytest.raises(UnreadableError, match="does not describe a part"):
        tables(tmp_path / "survey")


@pytest.mark.whole
@pytest.mark.parametrize("table", layout.TABLES)
@pytest.mark.parametrize("damage", ["cut", "zeros", "gone", "other"])
def test_a_damaged_table_is_named(files: Path, whole: Path, tmp_path: Path, table: str, damage: str) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    [part] = SurveyFolder(tmp_path / "survey").parts()
    file = part.file(table)
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    elif damage == "other":
        shutil.copy(part.file("units" if table != "units" else "places"), file)
    else:
        file.write_bytes(data[: len(data) // 2] if damage == "cut" else bytes(len(data)))
    for attempt in (
        lambda: tables(tmp_path / "survey"),
        lambda: survey([files / "lib", files], tmp_path / "survey", jobs=1),
    ):
        with pytest.raises(UnreadableError) as caught:
            attempt()
        assert str(file) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_a_damaged_table_says_is_an_error_in_a_query_too(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    [part] = SurveyFolder(tmp_path / "survey").parts()
    data = bytearray(part.file("places").read_bytes())
    data[200:1200] = bytes(1000)
    part.file("places").write_bytes(data)
    with pytest.raises(UnreadableError, match=r"places\.parquet"), Survey(tmp_path / "survey").database() as db:
        db.execute("SELECT content, path, member FROM places ORDER BY ALL").fetchall()


def test_a_database_of_a_survey_reads_nothing_else(whole: Path, tmp_path: Path) -> None:
    write(tmp_path, {"secret": b"text"})
    for query in (
        f"FROM read_text('{tmp_path}/secret')",
        f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ):
        with pytest.raises(UnreadableError), Survey(whole).database() as db:
            db.execute(query).fetchall()
    assert names(tmp_path) == {"secret"}


def test_two_surveys_do_not_work_in_one_folder(files: Path, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "survey")
    folder = SurveyFolder(tmp_path / "survey")
    with locked(folder.path / layout.LOCK) as held:
        assert held
        with pytest.raises(UnreadableError, match="another survey is at work"):
            survey([files], tmp_path / "survey", jobs=1)


def test_what_somebody_reads_stays_until_nobody_does(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", {f"{number}.so": elf(number) for number in range(20)})
    survey([folder], tmp_path / "survey", jobs=1)
    former = tables(tmp_path / "survey")
    with Survey(tmp_path / "survey").database() as db:
        write(folder, {"more.so": elf(50)})
        survey([folder], tmp_path / "survey", jobs=1)
        assert {table: db.execute(f"FROM {table}").fetchall() for table in layout.TABLES} == former
        assert len(tables(tmp_path / "survey")["files"]) == 21
    assert len(list((tmp_path / "survey").glob("part=*"))) == 3
    survey([folder], tmp_path / "survey", jobs=1)
    assert len(list((tmp_path / "survey").glob("part=*"))) == 1


def test_a_survey_of_nothing_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "files", {"readme": b"text"})
    with pytest.raises(MissingError, match=f"^{tmp_path}/files: there is no ELF file, package or archive here"):
        survey([tmp_path / "files"], tmp_path / "survey", jobs=1)
    assert not (tmp_path / "survey").exists()
