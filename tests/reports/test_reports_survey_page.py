"""The page of a survey in a real browser: it fits, prints, has two colours, and takes any names and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reports.madesurvey import HOSTILE, Made
from reports.surveypage import show_file
from walkback.base.text import printable
from walkback.reports.chapters import CHAPTERS
from walkback.reports.survey import write_survey_page
from walkback.surveys import layout

if TYPE_CHECKING:
    from browser import Page


LOOKS = [(1280, 900, False), (1280, 900, True), (390, 844, False), (390, 844, True)]


def _enormous(made: Made) -> Any:
    """Every number the largest that there is."""
    for table in ("files", "versions", "functions"):
        kinds = layout.COLUMNS[table].values()
        made.rows[table] = [
            tuple(
                2**64 - 1 if kind == "UBIGINT" and value is not None else value
                for kind, value in zip(kinds, row, strict=True)
            )
            for row in made.rows[table]
        ]
    return made


@pytest.mark.parametrize(("width", "height", "dark"), LOOKS)
def test_the_page_fits_and_all_of_it_has_names(page: Page, written: Path, width: int, height: int, dark: bool) -> None:
    page.look(width=width, height=height, dark=dark)
    page.open(written)
    page.wait_for("document.documentElement.dataset.ready")
    assert page.sideways() == 0
    assert page.unnamed() == []
    headings = [name for role, name in page.accessible() if role == "heading"]
    assert {chapter.title for chapter in CHAPTERS} < set(headings)
    roles = {role for role, _ in page.accessible()}
    assert {"banner", "navigation", "main", "search", "contentinfo", "status"} <= roles
    show_file(page, "library-20")
    assert page.sideways() == 0
    assert page.unnamed() == []
    assert page.evaluate("document.getElementById('file').scrollWidth <= document.getElementById('file').clientWidth")


def test_names_are_never_more_than_text(opened: Page) -> None:
    assert opened.evaluate("document.title") == printable(f"A survey {HOSTILE}")
    assert opened.evaluate("document.querySelector('h1').textContent") == printable(f"A survey {HOSTILE}")
    assert opened.evaluate("document.querySelectorAll('main b, body > b').length") == 0
    assert opened.evaluate("typeof fail") == "undefined"
    show_file(opened, "fail()")
    assert "script" in opened.evaluate("document.getElementById('file-title').textContent")
    assert opened.evaluate("document.querySelectorAll('dialog script, dialog b').length") == 0
    assert opened.evaluate("document.querySelector('.places').textContent").count(printable(HOSTILE)) == 1


def test_colours_follow_the_reader_and_the_button(opened: Page) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light = opened.evaluate(background)
    assert opened.evaluate("document.querySelector('#theme button').textContent") == "Colours: Auto"
    opened.click("#theme button")
    assert opened.evaluate(background) == light
    opened.click("#theme button")
    dark = opened.evaluate(background)
    assert dark != light
    opened.click("#theme button")
    opened.look(dark=True)
    assert opened.evaluate(background) == dark


def test_the_page_prints(opened: Page) -> None:
    assert opened.printed().startswith(b"%PDF")
    opened.look(media="print")
    assert opened.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert opened.evaluate("getComputedStyle(document.getElementById('files')).display") == "none"
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    opened.look(width=680, media="print")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.sideways() == 0
    wide = "[...document.querySelectorAll('figure .scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
    assert opened.evaluate(wide) == 0
    assert "These are the first 10 of 50 rows." in opened.evaluate(
        "document.querySelector('#figure-largest').innerText"
    )
    scales = "[...document.querySelectorAll('svg[role=img]')].map((one) => one.clientWidth / one.viewBox.baseVal.width)"
    assert all(0.7 < scale < 1.3 for scale in opened.evaluate(scales))
    opened.look()
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert all(0.95 < scale < 1.05 for scale in opened.evaluate(scales))


def test_without_a_script_nothing_is_shown_that_needs_one(page: Page, written: Path) -> None:
    page.ask("Emulation.setScriptExecutionDisabled", value=True)
    page.open(written)
    told = page.accessible()
    page.ask("Emulation.setScriptExecutionDisabled", value=False)
    roles = {role for role, _ in told}
    assert roles.isdisjoint({"searchbox", "search", "button", "navigation"})
    assert "All files" not in {name for _, name in told}
    assert any("This page needs JavaScript." in name for _, name in told)


def test_letters_with_hundreds_of_marks_make_no_file_wide(page: Page, tmp_path: Path) -> None:
    made = Made(3)
    names = list(layout.COLUMNS["places"])
    marked = "e\u0301" * 50 + "a" + "\u0336" * 200
    made.rows["places"] = [
        tuple((dict(zip(names, row, strict=True)) | {"member": marked}).values()) for row in made.rows["places"]
    ]
    path = tmp_path / "page.html"
    with made.connection() as connection, path.open("wb") as out:
        write_survey_page(connection, out, title=marked)
    for width in (1280, 390):
        page.look(width=width)
        page.open(path)
        page.wait_for("document.documentElement.dataset.ready")
        page.evaluate("location.hash = '#file=0'")
        page.wait_for("document.getElementById('file').open")
        assert page.sideways() == 0
        assert (
            page.evaluate("document.getElementById('file').scrollWidth - document.getElementById('file').clientWidth")
            == 0
        )


def test_a_survey_of_nothing_has_a_page(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with Made(0).connection() as connection, path.open("wb") as out:
        write_survey_page(connection, out, title="nothing", finished=False)
    page.open(path)
    page.wait_for("document.documentElement.dataset.ready")
    assert "not finished" in page.evaluate("document.getElementById('lead').textContent")
    assert page.evaluate("document.getElementById('matched').textContent") == "0 files"
    assert "NaN" not in page.evaluate("document.body.innerText")
    assert page.unnamed() == []


def test_numbers_beyond_all_sense_have_a_page(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with _enormous(Made(3)).connection() as connection, path.open("wb") as out:
        write_survey_page(connection, out, title="huge")
    page.look(width=390)
    page.open(path)
    page.wait_for("document.documentElement.dataset.ready")
    assert page.sideways() == 0
    page.evaluate("location.hash = '#file=0'")
    page.wait_for("document.getElementById('file').open")
    assert "NaN" not in page.evaluate("document.body.innerText")
