"""The page about one file looks right: in every width and colour, and printed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from reports.binarypage import (
    FRAMED,
    several,
    text,
)
from reports.listed import program
from sframefiles import TEXT, small

if TYPE_CHECKING:
    from browser import Page


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_width_needs_scrolling_sideways_and_everything_has_a_name(show: Callable[..., Page], width: int) -> None:
    page = show(several(sframe=small(3).bytes()), width=width)
    assert page.sideways() == 0
    assert page.unnamed() == []
    roles = [role for role, _ in page.accessible()]
    assert {"banner", "main", "contentinfo", "grid", "columnheader", "slider", "search"} <= set(roles)
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map((one) => Number(one.localName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour[4:-1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


COLOURS = """
[...document.querySelectorAll('main *, header *')]
  .filter((it) => it.checkVisibility() && !it.closest('svg'))
  .filter((it) => [...it.childNodes].some((one) => one.nodeType === 3 && one.data.trim()))
  .map((it) => {
    const clear = (one) => /rgba\\(.*, 0\\)/.test(getComputedStyle(one).backgroundColor);
    let ground = it;
    while (ground && clear(ground)) ground = ground.parentElement;
    return [getComputedStyle(it).color, getComputedStyle(ground ?? document.body).backgroundColor, it.textContent];
  })
"""
"""Ink, ground and words of everything that has text."""


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_in_light_and_dark(show: Callable[..., Page], dark: bool) -> None:
    page = show(several(sframe=small(3).bytes()), dark=dark)
    page.click("input[value='2']")
    pairs = page.evaluate(COLOURS)
    assert len(pairs) > 60
    for ink, ground, words in pairs:
        if not ground.startswith("rgb("):  # mixed by the browser in another colour space
            continue
        high, low = sorted((luminance(ink), luminance(ground)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground, words)


def test_the_colours_follow_the_button(show: Callable[..., Page]) -> None:
    page = show(several(), dark=True)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme button")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert luminance(dark) < 0.1
    assert luminance(light) > 0.8


def test_a_page_prints_its_first_functions_and_is_then_as_before(show: Callable[..., Page]) -> None:
    page = show(program(*((TEXT + 16 * number, 16, FRAMED) for number in range(200))), dark=True)
    page.press("/", "ArrowDown", "End")
    assert page.printed().startswith(b"%PDF")
    assert text(page, "#functions-199 .address") == "0x1c70"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert text(page, "#list [role=status]") == "The first 25 of 200 functions"
    assert text(page, "#functions-0 .address") == "0x1000"
    assert page.evaluate("document.querySelectorAll('#functions .view .row').length") == 25
    assert page.evaluate("document.querySelector('canvas.line').width") > 2000  # for printers
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert text(page, "#list [role=status]") == "200 functions"
    assert text(page, "#functions-199 .address") == "0x1c70"


def test_the_rows_of_a_function_are_printed_as_far_as_they_are_told(show: Callable[..., Page]) -> None:
    rows = "; ".join(f"advance_loc 1; def_cfa_offset {16 + 8 * number}" for number in range(40))
    page = show(program((TEXT, 64, rows), names=[("main", TEXT, 64)]))
    page.look(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert "Rows: the first 25 of 41" in text(page, "#function")
    assert page.evaluate("document.querySelectorAll('#rows .view .row').length") == 25
    assert page.evaluate("document.querySelector('#rows .view').clientHeight") == 25 * 30
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert "Rows: the first" not in text(page, "#function")
