"""The flame graph in a real browser: what it says of frames, to those who search, click and press keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from profiles import Recording
from walkback.export import flamegraph

if TYPE_CHECKING:
    from browser import Page


def recording(*weights: int) -> Recording:
    stacks = [("app", [0, 1, 2]), ("app", [3, 1, 2]), ("app", [4, 2])]
    return Recording(
        ["leaf", "middle", "main", "other", "sys_read"],
        ["/bin/app"] * 4 + ["[kernel.kallsyms]"],
        stacks,
        list(weights),
        kernel=[False] * 4 + [True],
    )


@pytest.fixture
def opened(page: Page, tmp_path: Path) -> Page:
    with (tmp_path / "page.html").open("wb") as out:
        flamegraph.write(recording(6, 3, 1).profile(title="A graph"), out)
    page.open(tmp_path / "page.html")
    page.evaluate("document.getElementById('graph').focus()")
    return page


def told(page: Page) -> list[str]:
    told: list[str] = page.evaluate("['name', 'numbers'].map((id) => document.getElementById(id).textContent)")
    return told


def search(page: Page, words: str) -> str:
    page.press("/", *words)
    page.wait_for("document.getElementById('matched').textContent")
    told: str = page.evaluate("document.getElementById('matched').textContent")
    return told


def test_it_tells_of_everything_first(opened: Page) -> None:
    assert told(opened) == ["all", "10 samples, 100.00 % of all"]
    legend = opened.evaluate("[...document.querySelectorAll('#legend li')].map((one) => one.textContent)")
    assert legend == ["function", "kernel", "program"]


def test_keys_go_from_frame_to_frame_and_zoom(opened: Page) -> None:
    opened.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert told(opened) == ["middle", "9 samples, 90.00 % of all \u00b7 app"]
    opened.press("Enter", "ArrowDown")
    assert told(opened) == [
        "leaf",
        "6 samples, 60.00 % of all \u00b7 66.67 % of the zoomed \u00b7 6 samples of its own \u00b7 app",
    ]
    opened.press("ArrowRight")
    assert told(opened)[0] == "other"
    opened.press("Escape")
    assert told(opened)[0] == "middle"
    opened.press("ArrowRight")
    assert told(opened)[0] == "sys_read"
    assert "kernel" in told(opened)[1]


def test_a_click_zooms_and_reset_zooms_out(opened: Page) -> None:
    # The fourth of five rows of 20 pixels.
    opened.click("#graph", 0.2, 0.7)
    assert told(opened)[0] == "middle"
    assert not opened.evaluate("document.getElementById('reset').disabled")
    opened.click("#reset")
    assert told(opened)[0] == "all"
    assert opened.evaluate("document.getElementById('reset').disabled")


def test_a_search_tells_how_much_it_found(opened: Page) -> None:
    before = opened.screenshot()
    assert search(opened, "leaf|sys") == "70.00 % matched"
    assert opened.screenshot() != before
    opened.press("Escape")
    assert opened.evaluate("document.getElementById('matched').textContent") == ""
    assert opened.focus().startswith("canvas#graph")


def test_inverted_it_begins_with_the_innermost(opened: Page) -> None:
    opened.click("#invert")
    opened.evaluate("document.getElementById('graph').focus()")
    opened.press("ArrowDown")
    assert told(opened) == ["leaf", "6 samples, 60.00 % of all \u00b7 app"]


def test_a_difference_tells_both_sides(page: Page, tmp_path: Path) -> None:
    with (tmp_path / "page.html").open("wb") as out:
        flamegraph.write_difference(recording(5, 4, 1).profile(), recording(6, 3, 1).profile(), out)
    page.open(tmp_path / "page.html")
    page.evaluate("document.getElementById('graph').focus()")
    page.press(*["ArrowDown"] * 4)
    assert told(page)[1].startswith("6 samples, 60.00 % of all \u00b7 before 50.00 % \u00b7 +10.00 points")
    page.click("#side")
    page.evaluate("document.getElementById('graph').focus()")
    page.press(*["ArrowDown"] * 4)
    assert told(page)[1].startswith("5 samples, 50.00 % of all \u00b7 after 60.00 % \u00b7 +10.00 points")


def test_nothing_of_the_script_is_global(opened: Page) -> None:
    assert opened.evaluate("[typeof calls, typeof tree, typeof callTree, typeof $modules]") == ["undefined"] * 4
