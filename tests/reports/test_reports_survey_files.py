"""The files on the page of a survey: by keys, search and order, and one that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from reports.madesurvey import Made
from reports.surveypage import Richest, names_of, rows_of, show_file
from walkback.base.text import printable
from walkback.reports.figures import Column, ColumnUnit
from walkback.reports.words import in_words
from walkback.surveys import layout

if TYPE_CHECKING:
    from browser import Page


def test_keys_lead_from_the_top_into_a_file_and_back(opened: Page) -> None:
    opened.press("Tab")
    assert opened.focus() == "a# Skip to the list of files"
    opened.press("/")
    assert opened.focus().startswith("input#search")
    opened.type("c-program")
    opened.wait_for("document.getElementById('matched').textContent.includes(' of ')")
    opened.press("ArrowDown")
    first = opened.focus()
    assert "c-program" in first
    opened.press("ArrowDown", "ArrowDown", "ArrowUp")
    second = opened.focus()
    assert second != first
    opened.press("End")
    assert opened.focus() not in {first, second}
    opened.press("PageUp", "Home")
    assert opened.focus() == first
    opened.press("ArrowDown", "Enter")
    opened.wait_for("document.getElementById('file').open")
    assert opened.focus().startswith("h2#file-title")
    assert opened.evaluate("document.querySelector('dialog h2').textContent") in second
    opened.press("Escape")
    opened.wait_for("!document.getElementById('file').open")
    assert opened.focus() == second
    assert opened.evaluate("location.hash") == ""


def test_the_back_button_closes_a_file(opened: Page) -> None:
    opened.evaluate("document.querySelector('#figure-largest tbody a').click()")
    opened.wait_for("document.getElementById('file').open")
    opened.evaluate("history.back()")
    opened.wait_for("!document.getElementById('file').open")


def test_search_and_choices_find_what_they_should(opened: Page, made: Made) -> None:
    files = rows_of(made, "files")
    rust = [one for one in files if one["producer"] == "rustc"]
    opened.evaluate(
        "(() => { const one = document.querySelector('select[name=producer]');"
        " one.value = [...one.options].find((option) => option.text.startsWith('rustc')).value;"
        " one.dispatchEvent(new Event('change')); })()"
    )
    told = "document.getElementById('matched').textContent"
    assert opened.evaluate(told) == f"{len(rust)} of {len(files)} files"
    assert opened.evaluate("document.querySelector('table.files').getAttribute('aria-rowcount')") == str(len(rust) + 1)
    opened.click("#clear")
    assert opened.evaluate(told) == f"{len(files)} files"
    both = sum("package8" in str(names) and "again" in str(names) for names in names_of(made).values())
    assert both
    # A build ID, two words that need not stand side by side, and nothing.
    for wanted, expected in ((rust[0]["build_id"], 1), ("package8 AGAIN", both), ("no such file", 0)):
        opened.evaluate("document.getElementById('search').value = ''; document.getElementById('search').focus()")
        opened.type(wanted)
        opened.wait_for("new Promise((done) => setTimeout(() => done(true), 200))")
        assert opened.evaluate(told) == f"{expected} of {len(files)} files"


@pytest.mark.parametrize(("head", "column"), [(3, "call_frames"), (5, "v3"), (6, "left")])
def test_the_list_is_sorted_by_any_column(opened: Page, made: Made, head: int, column: str) -> None:
    button = f"document.querySelectorAll('table.files thead button')[{head}]"
    rows = "[...document.querySelectorAll('table.files tbody tr:not(.space)')]"
    shown = f"{rows}.map((row) => row.children[{head}].textContent)"
    if opened.evaluate(f"{button}.closest('th').getAttribute('aria-sort')") != "descending":
        opened.evaluate(f"{button}.click()")
    falling = opened.evaluate(shown)
    opened.evaluate(f"{button}.click()")
    rising = opened.evaluate(shown)
    assert opened.evaluate(f"{button}.closest('th').getAttribute('aria-sort')") == "ascending"
    files = {file["content"]: file for file in rows_of(made, "files")}
    values = []
    for version in rows_of(made, "versions"):
        file = files[version["content"]]
        frames = (file["eh_frame"] + file["eh_frame_hdr"]) if file["source"] == ".eh_frame" else 0
        if version["version"] == 3:
            ratio = version["bytes"] / frames if frames else None
            left = version["functions"] - version["covered"]
            values.append({"call_frames": frames, "v3": ratio, "left": left}[column])
    unit = {"call_frames": ColumnUnit.BYTES, "v3": ColumnUnit.RATIO, "left": ColumnUnit.COUNT}[column]
    # Files without such a number come last either way.
    known = sorted(value for value in values if value is not None)
    words = [in_words(value, Column("", "", unit)) for value in known]
    if column == "call_frames":
        words = [in_words(0, Column("", "", unit))] * 6 + words
    assert rising[:12] == words[:12]
    assert falling[:12] == words[:-13:-1]


def test_only_rows_that_are_seen_are_in_the_page(opened: Page) -> None:
    rows = "document.querySelectorAll('table.files tbody tr').length"
    assert opened.evaluate(rows) < 40
    opened.evaluate("document.querySelector('.rows').scrollTop = 9000")
    opened.settle()
    assert opened.evaluate(rows) < 40
    seen = opened.evaluate("Number(document.querySelectorAll('table.files tbody tr')[8].getAttribute('aria-rowindex'))")
    assert abs(seen - 9000 / 54) < 12


@pytest.fixture
def richest(made: Made) -> Richest:
    """The file with the most places, and of these the most functions that version 3 leaves out; and these."""
    lost: dict[Any, Any] = {}
    for one in rows_of(made, "functions"):
        if one["about"] == "uncovered" and one["version"] == 3:
            lost.setdefault(one["content"], []).append(one)
    names = names_of(made)
    content = max(lost, key=lambda one: (len(names[one]), len(lost[one]), one))
    return next(file for file in rows_of(made, "files") if file["content"] == content), lost[content]


def test_a_file_has_all_its_numbers_and_places(opened: Page, made: Made, richest: Richest) -> None:
    file, _ = richest
    content = file["content"]
    show_file(opened, file["build_id"])
    text = opened.evaluate("document.getElementById('file').innerText")
    names = names_of(made)[content]
    assert opened.evaluate("document.querySelectorAll('.places li').length") == len(names) == 2
    assert all(printable(name) in text and package in text for name, package in names)
    sizes = [file[name] for name in ("bytes", "text_bytes", "eh_frame", "eh_frame_hdr", "debug_frame", "code_bytes")]
    for version in rows_of(made, "versions"):
        if version["content"] == content:
            sizes += [version[name] for name in ("bytes", *layout.WHAT_IFS)]
    assert f"Made by {file['producer']}" in text
    assert [size for size in sizes if size and in_words(size, Column("", "", ColumnUnit.BYTES)) not in text] == []
    assert content in opened.evaluate("document.querySelector('dialog code').textContent")


def test_a_file_has_the_reasons_of_its_functions(opened: Page, richest: Richest) -> None:
    file, lost = richest
    show_file(opened, file["build_id"])
    headings = opened.evaluate("[...document.querySelectorAll('dialog h4')].map((one) => one.textContent)")
    assert {heading for heading in headings if heading.startswith("Version 3 leaves out")} == {
        f"Version 3 leaves out: {one['message']}" for one in lost
    }
    text = opened.evaluate("document.getElementById('file').innerText")
    assert all(printable(one["name"]) in text and f"{one['address']:#x}" in text for one in lost)


def test_a_file_that_is_open_is_printed_over_all_its_sheets(opened: Page, richest: Richest) -> None:
    file, lost = richest
    show_file(opened, file["build_id"])
    opened.look(media="print")
    assert opened.printed().count(b"/Type /Page\n") > 1
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown = opened.evaluate("document.body.innerText")
    assert shown.startswith(opened.evaluate("document.querySelector('dialog h2').textContent"))
    assert all(f"{one['address']:#x}" in shown for one in lost)
    assert "What each version takes" not in shown
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.evaluate("document.getElementById('printed')") is None
    assert opened.evaluate("document.getElementById('file').open")
