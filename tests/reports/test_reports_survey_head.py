"""What the page of a survey begins with, and what it leaves out because there is nothing to compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from elfbuilder import ElfBuilder
from reports.madesurvey import Made
from reports.surveypage import rows_of
from sframefiles import written
from walkback.reports.chapters import FIGURES
from walkback.reports.figures import Answer, ask
from walkback.reports.page import report
from walkback.reports.survey import write_survey_page
from walkback.reports.surveyhead import surveyed, verdict
from walkback.reports.words import percent
from walkback.surveys import layout
from walkback.surveys.run import survey

if TYPE_CHECKING:
    from browser import Page

pytestmark = pytest.mark.whole


def answers(made: Made) -> dict[str, Answer]:
    with made.connection() as connection:
        return {name: ask(connection, figure) for name, figure in FIGURES.items()}


def chosen(made: Made, keep: Callable[[dict[str, Any]], bool]) -> Made:
    """The survey with some of its files alone."""
    contents = {row["content"] for row in rows_of(made, "files") if keep(row)}
    for table in layout.KEYED:
        made.rows[table] = [row for row in made.rows[table] if row[0] in contents]
    return made


def without_sframe(made: Made) -> Made:
    made.rows["sframe"] = []
    made.rows["functions"] = [
        row for row, values in zip(made.rows["functions"], rows_of(made, "functions"), strict=True)
        if values["about"] == "uncovered"
    ]  # fmt: skip
    return made


@pytest.fixture
def shown(page: Page, tmp_path: Path) -> Callable[[Made], Page]:
    def show(made: Made) -> Page:
        with made.connection() as connection, (tmp_path / "page.html").open("wb") as out:
            write_survey_page(connection, out, title="T")
        page.look()
        page.open(tmp_path / "page.html")
        page.wait_for("document.documentElement.dataset.ready")
        return page

    return show


def test_the_title_is_what_was_surveyed() -> None:
    assert surveyed(["/usr/bin"], "tables") == "/usr/bin"
    assert surveyed(["/a/x", "/b"], "tables") == "/a/x, /b"
    assert surveyed(["/a/1", "/a/2", "/a/3", "/a/4"], "tables") == "4 paths in /a"
    assert surveyed(["/a", "/b", "/c", "/d", "/e"], "tables") == "/a, /b and 3 more paths"
    for unknown in (None, [], [1], "text"):
        assert surveyed(unknown, "tables") == "Stack-trace tables in tables"


def test_a_page_has_the_paths_as_its_title(tmp_path: Path) -> None:
    program = ElfBuilder()
    program.code()
    path = written(tmp_path, program)
    survey([path], tmp_path / "tables", jobs=1)
    report(tmp_path / "tables", tmp_path / "page.html")
    assert f"<h1>{path}</h1>" in (tmp_path / "page.html").read_text()


def test_the_verdict_is_one_sentence_and_mentions_files_with_sframe_first() -> None:
    made = Made(60)
    told = answers(made)
    newest = next(row for row in told["versions"].objects() if (row["among"], row["version"]) == ("all", 3))
    files, having = len(made.rows["files"]), len(made.rows["sframe"])
    # The sizes of files that have SFrame already do not show how much it adds.
    claim = f"SFrame V3 would take {newest['ratio']:.2f} times the bytes of .eh_frame and .eh_frame_hdr and describe "
    claim += f"{percent(1 - newest['left_out'])} of "
    # Files by Go have code without unwind tables.
    assert verdict(told) == (
        f"{having} of these {files} files have SFrame already. {claim}the functions with unwind tables."
    )
    described = without_sframe(chosen(Made(60), lambda file: file["text_bytes"] != 1 << 24))
    assert verdict(answers(described)).endswith("% of their functions.")
    assert verdict(answers(described)).startswith("SFrame V3 would add ")


def test_the_verdict_says_what_cannot_be_made() -> None:
    none = chosen(Made(3), lambda file: file["outcome"] == "debug")
    assert verdict(answers(none)) == "SFrame V3 cannot be made for this file."
    assert verdict(answers(Made(0))) == "SFrame V3 cannot be made for any of these files."
    only_debug = without_sframe(chosen(Made(400), lambda file: file["source"] == ".debug_frame"))
    told = verdict(answers(only_debug))
    assert told.startswith("SFrame V3 would describe ")
    assert " add " not in told


def test_the_head_has_a_verdict_a_chart_and_three_cards(opened: Page, made: Made) -> None:
    assert opened.evaluate("document.querySelectorAll('#lead p').length") == 1
    assert opened.evaluate("document.querySelectorAll('#head-chart svg[role=img]').length") == 1
    cards = opened.evaluate("[...document.querySelectorAll('#cards dd')].map((one) => one.textContent)")
    (one,) = answers(made)["survey"].objects()
    assert cards == [percent(one["described"]), percent(one["based"]), f"{one['measured']:,}"]
    lead = opened.evaluate("document.getElementById('lead').textContent")
    assert not any(card in lead for card in cards)
    for link in opened.evaluate("[...document.querySelectorAll('#cards a')].map((one) => one.getAttribute('href'))"):
        assert opened.evaluate(f"document.querySelector('{link}') !== null")


def test_files_that_have_sframe_come_first(opened: Page) -> None:
    assert opened.evaluate("document.querySelector('#chapters > section').id") == "chapter-sframe"
    assert opened.evaluate("document.querySelector('#contents a').textContent") == "SFrame in files"


def test_where_no_file_has_sframe_that_is_one_line(shown: Callable[[Made], Page]) -> None:
    page = shown(without_sframe(Made(30)))
    assert page.evaluate("document.getElementById('chapter-sframe')") is None
    assert "SFrame in files" not in page.evaluate("document.getElementById('contents').textContent")
    lines = page.evaluate("[...document.querySelectorAll('#chapter-survey .lines li')].map((one) => one.textContent)")
    assert lines[0] == "No file has SFrame."


def test_splits_with_one_value_are_a_line(shown: Callable[[Made], Page]) -> None:
    page = shown(chosen(Made(60), lambda file: file["machine"] == "AMD64" and file["producer"] == "GCC"))
    for name in ("size-by-machine", "size-by-producer", "coverage-by-machine", "frame-pointers-by-producer"):
        assert page.evaluate(f"document.getElementById('figure-{name}')") is None
    assert page.evaluate("document.querySelector('#chapter-coverage .lines li').textContent") == (
        "All files counted here have the same architecture (AMD64) and producer (GCC)."
    )
    assert page.evaluate("document.getElementById('figure-size-by-language') !== null")
    assert page.evaluate("document.querySelector('#cards a[href*=by-machine]')") is None


def test_captions_open_behind_a_button(opened: Page) -> None:
    figure = "document.getElementById('figure-parts')"
    caption, button = f"{figure}.querySelector('.sentence')", f"{figure}.querySelector('button.ask')"
    height = f"{caption}.getBoundingClientRect().height"
    assert opened.evaluate(f"{button}.getAttribute('aria-label')") == f"About {FIGURES['parts'].title}"
    assert opened.evaluate(f"{button}.getAttribute('aria-controls') === {caption}.id")
    assert (opened.evaluate(f"{button}.ariaExpanded"), opened.evaluate(height)) == ("false", 0)
    opened.evaluate(f"{button}.focus()")
    opened.press("Enter")
    assert opened.evaluate(f"{button}.ariaExpanded") == "true"
    assert opened.evaluate(height) > 0
    opened.press("Space")
    assert (opened.evaluate(f"{button}.ariaExpanded"), opened.evaluate(height)) == ("false", 0)
    opened.look(media="print")
    assert opened.evaluate(height) > 0


def test_findings_are_one_table_with_the_most_severe_first(shown: Callable[[Made], Page]) -> None:
    made = Made(60)
    content = made.rows["sframe"][0][0]
    for severity in ("odd", "broken", "stops"):
        made.add(
            "functions",
            content=content,
            about="finding",
            code=f"{severity}-rule",
            severity=severity,
            message="m",
            count=9,
        )
    page = shown(made)
    assert page.evaluate("document.querySelectorAll('#figure-findings svg').length") == 0
    column = "[...document.querySelectorAll('#figure-findings tbody tr')].map((row) => row.children[%d].textContent)"
    heads = page.evaluate("[...document.querySelectorAll('#figure-findings thead th')].map((one) => one.textContent)")
    found = list(dict.fromkeys(page.evaluate(column % heads.index("Severity"))))
    assert found == ["broken", "stops", "wrong", "odd"]
