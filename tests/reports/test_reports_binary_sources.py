"""The page of a file says which table each function is from, and `report` reads those that are chosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import walkback
from cli.hello import mixed
from cli.inprocess import run
from docfiles import of_go
from reports.binarypage import chosen, legend, listed, pick, text
from walkback.base.errors import ArgumentError, MissingError

if TYPE_CHECKING:
    from browser import Page


def test_each_function_has_a_mark_where_there_are_several_tables(show: Callable[..., Page], tmp_path: Path) -> None:
    page = show(mixed(tmp_path), tables="auto")
    assert [line.partition("\n")[2].split("\n")[0] for line in listed(page)] == ["cfi", "cfi", "cfi", "cfi", "code"]
    assert text(page, "#list .sources").splitlines() == [
        "cfi: call frame information, .eh_frame (4 functions, 44 bytes)",
        "code: the code itself (1 function, 4.00 KiB)",
    ]
    assert {"from call frame information", "from the code itself"} <= set(legend(page))
    assert "13 rows in .eh_frame and the code" in text(page, "#tiles")
    assert "of .eh_frame" not in text(page, "#tiles")
    assert "Rules from\ncall frame information, .eh_frame" in text(page, "#function .facts")
    assert (page.sideways(), page.unnamed()) == (0, [])
    pick(page, "source-code")
    page.click("#functions [data-row='0']")
    assert chosen(page) == "bare"
    assert "Rules from\nthe code itself" in text(page, "#function .facts")
    assert "rules from the code itself" in text(page, "#line-description")
    assert page.evaluate("document.getElementById('footer').textContent").count("--source auto") == 4


def test_colours_of_tables_differ_in_light_and_dark(show: Callable[..., Page], tmp_path: Path) -> None:
    path = mixed(tmp_path)
    for dark in (False, True):
        page = show(path, tables="auto", dark=dark)
        colours = page.evaluate(
            "[...document.querySelectorAll('#functions .swatch')].map((one) => getComputedStyle(one).background)"
        )
        assert len(set(colours)) == 2


def test_there_are_no_marks_where_all_is_from_one_table(show: Callable[..., Page], tmp_path: Path) -> None:
    page = show(mixed(tmp_path))
    assert page.evaluate("document.querySelectorAll('.source, .sources').length") == 0
    assert "from call frame information" not in legend(page)
    assert "of .eh_frame" in text(page, "#tiles")


def test_functions_of_a_stripped_program_of_go_have_the_names_of_its_table(
    show: Callable[..., Page], tmp_path: Path
) -> None:
    path = tmp_path / "hello-go"
    path.write_bytes(of_go())
    assert [line.partition("\n")[0] for line in listed(show(path))] == ["main.main", "main.init"]


def rows(*args: object) -> list[dict[str, object]]:
    return [json.loads(line) for line in run("report", *args, "--json", "--figure", "functions").stdout.splitlines()]


def test_the_list_of_functions_has_the_table_of_each(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    assert {str(row["name"]): row["source"] for row in rows(path, "--source", "auto")} == {
        **dict.fromkeys(["_start", "main", "compute", "leap"], ".eh_frame"),
        "bare": "code",
    }
    assert [row["source"] for row in rows(path)] == [".eh_frame"] * 4
    assert [row["source"] for row in rows(path, "--source", "code")] == ["code"] * 5


def test_tables_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    done = run("report", path, "--source", "go")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith("there is no table of Go's functions\n")
    with pytest.raises(MissingError, match="there is no table of Go's functions"):
        walkback.report(path, tmp_path / "page.html", tables="go")
    assert not (tmp_path / "page.html").exists()


def test_tables_of_a_survey_are_chosen_when_it_is_made(tmp_path: Path) -> None:
    walkback.survey([mixed(tmp_path)], tmp_path / "survey", jobs=1)
    done = run("report", tmp_path / "survey", "--source", "auto")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--source is for files" in done.stderr
    with pytest.raises(ArgumentError, match="tables are chosen when a survey is made"):
        walkback.report(tmp_path / "survey", tmp_path / "page.html", tables="auto")
