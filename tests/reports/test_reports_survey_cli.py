"""`walkback report` of a survey: what is printed, what is written, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from reports.madesurvey import HOSTILE, Made
from walkback.base.text import printable
from walkback.reports.chapters import FIGURES
from walkback.reports.figures import ColumnUnit, ask
from walkback.reports.words import in_words
from walkback.surveys.reading import Survey
from walkback.surveys.run import survey

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Made(60).write(tmp_path_factory.mktemp("surveys") / "survey")


def report(*args: Path | str, status: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "walkback", "report", *map(str, args)], capture_output=True, check=False
    )
    assert done.returncode == status, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done.stdout.decode(), done.stderr.decode()


def test_every_figure_is_printed_and_long_ones_say_so(folder: Path) -> None:
    out, err = report(folder)
    assert err == ""
    for figure in FIGURES.values():
        assert f"\n{figure.title} ({figure.name})\n" in f"\n{out}"
    assert "more rows: --figure shows all\n" in out
    assert "\x1b" not in out


def test_a_chosen_figure_has_all_rows_and_its_question(folder: Path) -> None:
    out, _ = report(folder, "--figure", "largest", "--figure", "reasons")
    with Survey(folder).database() as database:
        for row in ask(database, FIGURES["largest"]).rows:
            assert printable(row[0])[-40:] in out
    for name in ("largest", "reasons"):
        assert "\n".join(f"  {line}" for line in FIGURES[name].sql.splitlines()) in out
    assert "more rows" not in out
    assert out.index("(largest)") < out.index("(reasons)")


@pytest.mark.parametrize("options", [[], ["--json"], ["-o", "page.html"]])
def test_a_survey_without_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none.a").write_bytes(b"!<arch>\n")
    survey([tmp_path / "none.a"], tmp_path / "survey", jobs=1)
    out, err = report("survey", *options, status=1)
    assert (out, err) == ("", "walkback: survey: there is no ELF file in this survey, and nothing to report\n")
    assert not (tmp_path / "page.html").exists()


def test_what_is_json_is_what_the_survey_says(folder: Path) -> None:
    out, _ = report(folder, "--json")
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["figure"] for one in told] == list(FIGURES)
    with Survey(folder).database() as database:
        for one in told:
            figure = FIGURES[one["figure"]]
            assert one["sql"] == figure.sql
            assert one["columns"] == [column.name for column in figure.columns]
            assert one["rows"] == [list(row) for row in ask(database, figure).rows]


def test_the_question_beside_a_figure_can_be_asked_by_anybody(folder: Path) -> None:
    told = json.loads(report(folder, "--json", "--figure", "versions")[0])
    with Survey(folder).database() as database:
        assert [list(row) for row in database.execute(told["sql"]).fetchall()] == told["rows"]


def test_what_is_csv_has_a_heading_and_every_row(folder: Path, tmp_path: Path) -> None:
    out, _ = report(folder, "--csv", "--figure", "errors")
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == [column.name for column in FIGURES["errors"].columns]
    assert [row[0] for row in rows[1:]] == [HOSTILE]
    report(folder, "--csv", "--figure", "errors", "-o", tmp_path / "errors.csv")
    assert (tmp_path / "errors.csv").read_text() == out


def test_a_page_is_written_whole_and_has_the_title(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert report(folder, "-o", page) == ("", "")
    assert "<title>Stack-trace tables in survey</title>" in page.read_text()
    report(folder, "-o", page, "--title", "All <b>of</b> it")
    text = page.read_text()
    assert "<title>All &lt;b&gt;of&lt;/b&gt; it</title>" in text
    assert "fail()</script>" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    _, err = report(folder, "-o", tmp_path / "none" / "page.html", status=3)
    assert err.count("\n") == 1


def test_a_dash_is_standard_output_for_pages_too(folder: Path, tmp_path: Path) -> None:
    report(folder, "-o", tmp_path / "page.html")
    assert report(folder, "-o", "-")[0] == (tmp_path / "page.html").read_text()


def test_terminals_get_printable_text_only(folder: Path) -> None:
    out, _ = report(folder, "--figure", "errors")
    assert in_words(HOSTILE, FIGURES["errors"].columns[0])[:40] in out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_a_survey_that_is_not_finished_is_told_as_such(tmp_path: Path) -> None:
    folder = Made(5).write(tmp_path / "survey", finished=False)
    out, err = report(folder, "--figure", "survey", status=1)
    assert "Different ELF files" in out
    assert "not finished" in err
    report(folder, "-o", tmp_path / "page.html", status=1)
    assert '"finished":false' in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    "args",
    [
        ("--json", "--csv", "--figure", "versions"),
        ("--csv",),
        ("--csv", "--figure", "versions", "--figure", "parts"),
        ("--figure", "nothing"),
        ("--figure", "versions", "-o", "page.html"),
        ("--title", "T"),
        ("--title", "T", "--json", "-o", "out.json"),
    ],
)
def test_what_does_not_go_together_is_refused(folder: Path, tmp_path: Path, args: tuple[str, ...]) -> None:
    given = [tmp_path / one if "." in one else one for one in args]
    out, err = report(folder, *given, status=2)
    assert out == ""
    assert "Error:" in err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_is_answered_with_those_that_there_are(folder: Path) -> None:
    _, err = report(folder, "--figure", "version", status=2)
    assert "size-by-machine" in " ".join(err.split())


def test_what_is_no_survey_and_no_file_is_told_in_a_line(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        _, err = report(path, status=3)
        assert err.count("\n") == 1
        assert str(path) in err


def test_damage_is_told_with_its_file(tmp_path: Path) -> None:
    folder = Made(20).write(tmp_path / "survey")
    table = max(folder.glob("*/versions.parquet"))
    data = bytearray(table.read_bytes())
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    table.write_bytes(data)
    for args in ((), ("--json",), ("-o", tmp_path / "page.html")):
        _, err = report(folder, *args, status=3)
        assert err.count("\n") == 1
        assert "versions.parquet" in err
    assert not (tmp_path / "page.html").exists()


def test_columns_about_contents_are_for_programs_alone(folder: Path) -> None:
    out, _ = report(folder, "--figure", "largest")
    with Survey(folder).database() as database:
        answer = ask(database, FIGURES["largest"])
    place = [column.unit for column in answer.figure.columns].index(ColumnUnit.CONTENT)
    assert not any(row[place] in out for row in answer.rows)


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    source = tmp_path / "source.s"
    source.write_text(".cfi_startproc\nret\n.cfi_endproc\n")
    subprocess.run(["gcc", "-c", "-o", tmp_path / "one.o", source], check=True)
    subprocess.run(["ar", "rc", tmp_path / "lib.a", tmp_path / "one.o"], check=True)
    for subject, file in (("one.o", "one.o"), ("lib.a(one.o)", "lib.a")):
        before = (tmp_path / file).read_bytes()
        report(tmp_path / subject, "-o", tmp_path / file, status=2)
        assert (tmp_path / file).read_bytes() == before
