"""On the page about one file functions are found: by keys, search, order, filters, links and pointing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reports.binarypage import (
    FRAMED,
    chosen,
    listed,
    pick,
    search,
    several,
    text,
)
from reports.listed import program
from sframefiles import TEXT

if TYPE_CHECKING:
    from browser import Page
    from elfbuilder import ElfBuilder


def test_the_page_is_used_by_keyboard_alone(show: Callable[..., Page]) -> None:
    page = show(several())
    page.press("/")
    assert page.focus().startswith("input#search")
    page.type("lib open")
    page.wait_for("document.querySelectorAll('#functions .view .row').length === 1")
    page.press("ArrowDown")
    assert page.focus().startswith("div#functions")
    assert chosen(page) == "lib::open"
    page.press("Shift+Tab", "Shift+Tab")
    assert page.focus().startswith("input#search")
    page.press("Escape", "ArrowDown", "End")
    assert chosen(page) == "leaf"
    active = page.evaluate(
        "(() => { const grid = document.getElementById('functions');"
        " const row = document.getElementById(grid.getAttribute('aria-activedescendant'));"
        " return [...['aria-selected', 'aria-rowindex'].map((name) => row.getAttribute(name)),"
        " grid.getAttribute('aria-rowcount')]; })()"
    )
    assert active == ["true", "5", "5"]
    page.press("Home", "ArrowDown")
    assert chosen(page) == "lib::open"
    page.evaluate("document.querySelector('canvas.line').focus()")
    page.press("ArrowRight")
    assert chosen(page) == "realigns"
    page.press("Enter")
    assert text(page, "#line-description").startswith("realigns")
    page.press("0", "+", "-", "PageUp", "PageDown", "Home")
    assert chosen(page) == "main"


def test_an_address_that_was_searched_stays_when_the_list_is_entered(show: Callable[..., Page]) -> None:
    page, address = show(several()), f"{TEXT + 3:#x}"
    page.press("/")
    page.type(address)
    page.wait_for(f"location.hash === '#{address}'")
    page.press("Enter")
    assert page.focus().startswith("div#functions")
    assert page.evaluate("location.hash") == f"#{address}"


def nameless() -> ElfBuilder:
    """Functions of which the first two, and the one with the most rows, have no name."""
    fdes = [(TEXT + 16 * number, 16, "advance_loc 1; def_cfa_offset 16" * (number == 0)) for number in range(5)]
    return program(*fdes, names=[("b", TEXT + 32, 16), ("a", TEXT + 48, 16)], size=0x80)


def test_functions_without_names_do_not_come_first(show: Callable[..., Page]) -> None:
    page = show(nameless())
    assert listed(page) == ["b", "a", "no name", "no name", "no name"]
    assert chosen(page) == "b"
    address = "[...document.querySelectorAll('#functions .view .address')].map((one) => one.innerText)"
    assert page.evaluate(address) == ["0x1020", "0x1030", "0x1000", "0x1010", "0x1040"]
    page.click("#functions .head .name button")
    assert listed(page) == ["a", "b", "no name", "no name", "no name"]
    page.click("#functions .head .name button")
    assert listed(page) == ["b", "a", "no name", "no name", "no name"]
    page.click("#functions .head .address button")
    assert page.evaluate(address) == ["0x1000", "0x1010", "0x1020", "0x1030", "0x1040"]


IN_SIGHT = """
(() => {
  const {top, bottom} = document.getElementById('function-name').getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
})()
"""


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (1400, 500), (1000, 900), (390, 844)])
def test_a_clicked_function_stays_in_sight(show: Callable[..., Page], width: int, height: int) -> None:
    page = show(
        program(*((TEXT + 16 * number, 16, FRAMED) for number in range(200)), size=0x1000), width=width, height=height
    )
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    page.evaluate("document.getElementById('list').scrollIntoView({block: 'start', behavior: 'instant'})")
    if width > 1080:
        # What was read of the function before does not move the next out of sight.
        page.evaluate("document.getElementById('function').scrollTop = 9999")
    place = "document.querySelector('#functions .view').scrollTop"
    row = page.evaluate("document.querySelector('#functions .view .row').offsetHeight")
    page.evaluate(f"{place} = {60 * row}")
    page.settle()
    page.click("#functions-61")
    assert chosen(page) == f"{TEXT + 16 * 61:#x}"
    assert page.evaluate(IN_SIGHT)
    assert page.evaluate(place) == 60 * row
    # The next can be clicked without scrolling back.
    rows = "document.querySelector('#functions-61').getBoundingClientRect()"
    assert page.evaluate(f"{rows}.top >= 0 && {rows}.bottom <= innerHeight")
    if width > 1080:
        page.evaluate("document.getElementById('browse').scrollIntoView({block: 'end', behavior: 'instant'})")
        assert page.evaluate(IN_SIGHT)


def test_the_list_is_sorted_by_keyboard(show: Callable[..., Page]) -> None:
    page = show(several())
    page.evaluate("document.querySelector('#functions').focus()")
    seen = []
    while "Code" not in (focus := page.focus()):
        seen.append(focus)
        assert len(seen) < 20, seen
        page.press("Tab")
    page.press("Enter")
    assert page.evaluate("document.querySelector('#functions [aria-sort]:not([aria-sort=none])').textContent") == "Code"


def test_tab_comes_to_everything_and_the_focus_is_seen(show: Callable[..., Page]) -> None:
    page = show(several())
    walked = []
    for _ in range(30):
        page.press("Tab")
        walked.append(page.focus())
        if walked[-1] == "body":
            break
        outlined = page.evaluate(
            "(() => { const seen = (it) => getComputedStyle(it).outlineStyle !== 'none';"
            " const it = document.activeElement; return seen(it) || seen(it.closest('label') ?? it); })()"
        )
        assert outlined, walked[-1]
    names = " ".join(walked)
    for part in (
        "a# Skip to the functions",
        "button# Colours",
        "canvas#",
        "input#search",
        "select#filter",
        "div#functions",
    ):
        assert part in names
    assert "input#offset Address in the function" in names
    assert "div#rows Rows of the function" in names


def test_search_finds_names_symbols_and_addresses(show: Callable[..., Page]) -> None:
    page = show(several())
    search(page, "LIB")
    assert listed(page) == ["lib::open"]
    search(page, "_zn3")
    assert listed(page) == ["lib::open"]
    search(page, "0x1047")
    assert listed(page) == ["realigns"]
    assert text(page, "#function .where") == "0x1047 (+0x7), row 2 of 2"
    search(page, "nowhere")
    assert listed(page) == []
    assert "No function matches." in text(page, "#functions")
    assert text(page, "#list [role=status]") == "0 of 4 functions"
    page.press("Escape")
    assert len(listed(page)) == 4


def test_the_list_is_sorted_and_filtered(show: Callable[..., Page]) -> None:
    page = show(several())
    page.click("#functions .count button")
    assert listed(page)[:2] == ["main", "lib::open"]
    assert page.evaluate("document.querySelector('#functions .count').getAttribute('aria-sort')") == "descending"
    page.click("#functions .count button")
    assert listed(page)[0] == "leaf"
    page.click("#functions .name button")
    assert listed(page) == ["leaf", "lib::open", "main", "realigns"]
    pick(page, "framed")
    assert listed(page) == ["main"]
    page.click("input[value='2']")
    pick(page, "lost")
    assert listed(page) == ["realigns\nnot in V2"]


def test_a_link_leads_to_an_address(show: Callable[..., Page], tmp_path: Path) -> None:
    page = show(several())
    page.evaluate("location.hash = '#0x1049'")
    page.settle()
    assert (chosen(page), text(page, "#function .where")) == ("realigns", "0x1049 (+0x9), row 2 of 2")
    for nothing in ("#0x9999", "#%E0%A4%A", "#<img>", "#0x"):
        page.evaluate(f"location.hash = {nothing!r}")
        page.settle()
        assert chosen(page) == "realigns"


def test_a_point_on_the_line_is_a_function(show: Callable[..., Page]) -> None:
    page = show(several())
    page.click("canvas.line", 0.1 + 0.9 * (0x48 / 0x80), 0.35)
    assert chosen(page) == "realigns"
    page.click("[aria-label='Show the chosen function']")
    page.click("canvas.line", 0.98, 0.35)
    assert chosen(page) == "leaf"
