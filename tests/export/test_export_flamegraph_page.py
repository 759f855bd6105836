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
        "6 samples, 60.00 % of all \u00b7 66.67 % of the zoomed part \u00b7 6 samples in itself \u00b7 app",
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


SEEN = "[location.hash, document.getElementById('search').value, document.getElementById('name').textContent]"
TOOLS = """
['search', 'invert', 'files', 'reset'].map((id) => {
  const {x, y, width, height} = document.getElementById(id).getBoundingClientRect();
  return [x, y, width, height];
})
"""


def gone_to(page: Page, step: str) -> list[str]:
    """The address, the search and the frame after going through the history."""
    before = page.evaluate("location.hash")
    page.evaluate(step)
    page.wait_for(f"location.hash !== {before!r}")
    page.settle()
    seen: list[str] = page.evaluate(SEEN)
    return seen


def test_zoom_and_search_are_in_the_address(opened: Page) -> None:
    search(opened, "leaf|sys")
    assert opened.evaluate(SEEN) == ["#find=leaf%7Csys", "leaf|sys", "all"]
    opened.click("#graph", 0.2, 0.7)
    address, _, name = opened.evaluate(SEEN)
    assert name == "middle"
    assert gone_to(opened, "history.back()") == ["#find=leaf%7Csys", "leaf|sys", "all"]
    assert gone_to(opened, "history.forward()") == [address, "leaf|sys", "middle"]
    # Whoever opens the address sees the same.
    opened.evaluate("document.isOld = true, location.reload()")
    opened.wait_for("!document.isOld && document.getElementById('matched')?.textContent === '70.00 % matched'")
    assert opened.evaluate(SEEN) == [address, "leaf|sys", "middle"]
    opened.click("#reset")
    assert opened.evaluate(SEEN) == ["", "", "all"]
    assert gone_to(opened, "history.back()") == [address, "leaf|sys", "middle"]


@pytest.mark.parametrize("address", ["#frame=99999", "#frame=-1", "#frame=0.5", "#frame=x&inverted", "#%", "#find=("])
def test_an_address_that_names_nothing_shows_everything(opened: Page, address: str) -> None:
    opened.evaluate(f"location.hash = {address!r}")
    opened.settle()
    assert told(opened) == ["all", "10 samples, 100.00 % of all"]
    assert opened.errors == []


def test_the_inverted_graph_and_its_frames_are_in_the_address(opened: Page) -> None:
    opened.click("#invert")
    opened.evaluate("document.getElementById('graph').focus()")
    opened.press("ArrowDown", "Enter")
    assert opened.evaluate(SEEN) == ["#frame=1&inverted=1", "", "leaf"]
    opened.press("Escape")
    assert gone_to(opened, "history.back()") == ["#frame=1&inverted=1", "", "leaf"]
    assert opened.evaluate("document.getElementById('invert').ariaPressed") == "true"


def test_the_side_of_a_difference_is_in_the_address(page: Page, tmp_path: Path) -> None:
    with (tmp_path / "page.html").open("wb") as out:
        flamegraph.write_difference(recording(5, 4, 1).profile(), recording(3, 6, 1).profile(), out)
    page.open(tmp_path / "page.html")
    assert page.evaluate("document.getElementById('files').hidden")
    page.evaluate("location.hash = '#frame=1&inverted=1'")
    page.settle()
    after = told(page)
    # The numbers of frames are the same if the other side is shown first.
    page.open(tmp_path / "page.html")
    page.evaluate("location.hash = '#before=1'")
    page.settle()
    page.evaluate("location.hash = '#frame=1&inverted=1&before=1'")
    page.settle()
    assert page.evaluate("document.getElementById('side').ariaPressed") == "true"
    assert told(page)[0] == after[0] == "other"
    assert "before 40.00 %" in after[1]
    assert "after 60.00 %" in told(page)[1]


def test_functions_are_coloured_by_file_on_request(opened: Page) -> None:
    before = opened.screenshot()
    opened.click("#files")
    legend = "[...document.querySelectorAll('#legend li')].map((one) => one.textContent)"
    assert opened.evaluate(legend) == ["app", "[kernel.kallsyms]"]
    assert opened.evaluate("location.hash") == "#files=1"
    assert opened.screenshot() != before
    assert opened.evaluate("document.getElementById('files').ariaPressed") == "true"
    opened.click("#files")
    assert opened.evaluate(legend) == ["function", "kernel", "program"]


def test_one_file_needs_no_colours_by_file(page: Page, tmp_path: Path) -> None:
    with (tmp_path / "page.html").open("wb") as out:
        flamegraph.write(Recording(["f"], ["/bin/app"], [("app", [0])]).profile(), out)
    page.open(tmp_path / "page.html")
    assert page.evaluate("document.getElementById('files').hidden")


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_the_toolbar_stays_at_the_edge(opened: Page, width: int, height: int) -> None:
    opened.look(width=width, height=height)
    tools = opened.evaluate(TOOLS)
    graph = "document.getElementById('scroll').getBoundingClientRect().toJSON()"
    place = opened.evaluate(graph)
    assert opened.sideways() == 0
    if width > 1000:
        x, _, size, _ = tools[-1]
        assert x + size == width - 14
    search(opened, "leaf|sys")
    opened.click("#graph", 0.2, 0.7)
    opened.click("#files")
    opened.evaluate("scrollTo(0, 9999); document.getElementById('scroll').scrollTop = 9999")
    opened.settle()
    assert opened.evaluate(TOOLS) == tools
    assert opened.evaluate(graph) == place


def test_what_has_the_focus_has_an_outline(opened: Page, tmp_path: Path) -> None:
    opened.open(tmp_path / "page.html")
    seen = []
    for _ in range(4):
        opened.press("Tab")
        seen.append(opened.focus().split(" ")[0])
        style, size, colour, page = opened.evaluate(
            "(() => { const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(document.activeElement);"
            " return [outlineStyle, outlineWidth, outlineColor, getComputedStyle(document.body).backgroundColor]; })()"
        )
        assert (style, size) == ("solid", "3px")
        assert colour != page
    assert seen == ["input#search", "button#invert", "button#files", "canvas#graph"]


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
