"""The page of a server in a real browser: what it shows, and what people do there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cli.inprocess import run
from serving.madestore import fill, samples
from serving.served import Served, served
from store.made import HOUR, NOON, put
from walkback.store.store import Store

if TYPE_CHECKING:
    from browser import Browser, Page

READY = "document.body?.ariaBusy === 'false'"
TABLE = """
[...document.querySelectorAll('#functions tbody tr')].filter((row) => !row.hidden)
  .map((row) => [...row.children].map((cell) => cell.textContent))
"""


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    """The page as whoever opens the printed address sees it; one that complains, or asks others, fails its test."""
    one = browser.page(width=1400)
    one.open(server.url)
    one.wait_for(READY)
    yield one
    one.settle()
    one.close()
    assert one.errors == []
    assert {address for address in one.requests if not address.startswith(f"http://127.0.0.1:{server.port}/")} == set()


def text(page: Page, name: str) -> str:
    found: str = page.evaluate(f"document.getElementById({name!r}).textContent")
    return found


def query(page: Page) -> dict[str, str]:
    found: dict[str, str] = page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")
    return found


def click(page: Page, selector: str) -> None:
    page.click(selector)
    page.wait_for(READY)


def write(page: Page, name: str, words: str) -> None:
    page.evaluate(f"(() => {{ const one = document.getElementById({name!r}); one.focus(); one.select(); }})()")
    page.press(*words, "Enter")
    page.wait_for(READY)


def graph(page: Page) -> bytes:
    """A picture of the flame graph."""
    page.evaluate("document.getElementById('graph').focus()")
    found: str = page.evaluate("document.getElementById('graph').toDataURL()")
    return found.encode()


def test_it_shows_the_store_and_hides_the_token(page: Page, server: Served, store: Path) -> None:
    assert text(page, "title") == str(store)
    found = server.found("stacks")
    assert text(page, "about") == f"{found['title']}: {found['about']}"
    assert text(page, "numbers").startswith(f"{found['whole']:,} weight, 100.00 % of all")
    assert page.evaluate("location.href") == f"http://127.0.0.1:{server.port}/"
    assert page.evaluate("document.cookie") == ""


def test_a_link_opens_in_another_tab_without_the_token(page: Page, server: Served) -> None:
    link = f"http://127.0.0.1:{server.port}/?process=server&since=2025-11-24T17:00#find=main"
    page.open(link)
    page.wait_for(READY)
    pairs = (("process", "server"), ("since", "2025-11-24T17:00"))
    assert text(page, "about").endswith(server.found("stacks", *pairs)["about"])
    assert page.evaluate("document.getElementById('search').value") == "main"
    assert page.evaluate("location.href") == link


def test_a_range_is_dragged(page: Page, server: Served) -> None:
    everything, before = text(page, "about"), graph(page)
    page.drag("#timeline", 0.25, 0.5)
    page.wait_for(READY)
    chosen = query(page)
    assert set(chosen) == {"since", "until"}
    assert chosen["since"].startswith("2025-11-24T16:4")
    assert chosen["until"].startswith("2025-11-24T17:3")
    found = server.found("stacks", *chosen.items())
    assert text(page, "about") == f"{found['title']}: {found['about']}" != everything
    assert graph(page) != before
    bars = server.found("timeline", *chosen.items())
    assert page.evaluate("document.getElementById('since').value") == chosen["since"]
    click(page, "#near")
    assert text(page, "times").partition(": ")[2].startswith(f"{sum(bars['counts'])} samples")
    page.evaluate("history.go(-2)")
    page.wait_for(
        f"location.search === '' && {READY} && document.getElementById('about').textContent === {everything!r}"
    )
    assert graph(page) == before


def test_a_range_is_chosen_by_keys(page: Page, server: Served) -> None:
    page.evaluate("document.getElementById('timeline').focus()")
    page.press("Home", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight")
    said = text(page, "times")
    page.press("Enter")
    page.wait_for(READY)
    bars = server.found("timeline")
    chosen = query(page)
    assert said == (
        f"{chosen['since'].replace('T', ' ')} to {chosen['until'].partition('T')[2]} UTC: "
        f"{sum(bars['counts'][1:4])} sample{'' if sum(bars['counts'][1:4]) == 1 else 's'}"
    )
    page.press("Escape")
    page.wait_for(READY)
    assert query(page) == {}


def test_times_and_filters_are_typed(page: Page, server: Served) -> None:
    write(page, "since", "2025-11-24T17:00")
    write(page, "filter", "process=server")
    write(page, "filter", "version=1.2=x")
    write(page, "filter", "label:host=server")
    write(page, "filter", "nonsense")
    assert text(page, "problem") == "A filter is NAME=VALUE, such as process=hello or version=1.2"
    pairs = [("since", "2025-11-24T17:00"), ("process", "server"), ("label", "version=1.2=x"), ("label", "host=server")]
    assert page.evaluate("[...new URLSearchParams(location.search)]") == [list(one) for one in pairs]
    assert text(page, "about").endswith(server.found("stacks", *pairs)["about"])
    words = page.evaluate("[...document.querySelectorAll('#filters button')].map((one) => one.ariaLabel)")
    assert words == [f"Take the filter {one} away" for one in ("process=server", "version=1.2=x", "host=server")]
    click(page, "#filters li:nth-child(2) button")
    assert "1.2" not in page.evaluate("location.search")
    values: list[str] = page.evaluate("[...document.querySelectorAll('#values option')].map((one) => one.value)")
    assert {"host=web1", "process=a b&c", "version=1.2=x", "label:host=server"} <= set(values)


def test_what_is_wrong_is_said_by_the_server(browser: Browser, server: Served) -> None:
    page = browser.page()
    page.open(server.url)
    page.wait_for(READY)
    write(page, "since", "noon")
    assert text(page, "problem").startswith("since: 'noon' is not a time; examples: ")
    write(page, "since", "2025-11-24T18:00")
    assert page.evaluate("document.getElementById('problem').hidden")
    page.close()


def test_nothing_is_shown_without_the_token(browser: Browser, server: Served) -> None:
    page = browser.page()
    page.open(f"http://127.0.0.1:{server.port}/")
    page.wait_for(READY)
    assert text(page, "problem") == "this needs the token: open the address that was printed"
    assert text(page, "title") == "Stacks"
    page.close()


def rows(page: Page) -> list[list[str]]:
    found: list[list[str]] = page.evaluate(TABLE)
    return found


def test_functions_are_those_of_top(page: Page, store: Path) -> None:
    click(page, "#tables")
    lines = run("store", store, "top", "--limit", "300").stdout.split("\n\n")[1].splitlines()[1:]
    assert [[*row[1:5], row[0]] for row in rows(page)] == [line.split(None, 4) for line in lines]
    page.press("/", *"rk")
    page.wait_for("document.getElementById('matched').textContent")
    assert {row[0] for row in rows(page)} == {"work", "w\u00f6rk"}
    click(page, "#functions tbody tr:not([hidden]) button")
    assert page.evaluate("document.getElementById('search').value") == f"^{rows(page)[0][0]}$"


def test_a_comparison_is_that_of_diff(page: Page, store: Path) -> None:
    write(page, "filter", "version=1.2=x")
    before = graph(page)
    click(page, "#compare")
    assert query(page) == {"compare": "1", "label": "version=1.2=x", "before-label": "version=1.2=x"}
    click(page, "#filters button")
    write(page, "filter", "version=1.1")
    assert query(page) == {"compare": "1", "label": "version=1.2=x", "before-label": "version=1.1"}
    assert graph(page) != before
    legend = page.evaluate("[...document.querySelectorAll('#legend li')].map((one) => one.textContent)")
    assert legend == ["less than before", "no change", "more than before"]
    click(page, "#tables")
    lines = run("store", store, "diff", "version=1.1", "version=1.2=x", "--limit", "300").stdout.splitlines()[4:]
    assert [[*row[1:7], row[0]] for row in rows(page)] == [line.split(None, 6) for line in lines]
    # A range is that of the side that is chosen.
    page.drag("#timeline", 0, 0.4)
    page.wait_for(READY)
    assert {"before-since", "before-until"} < set(query(page))
    assert page.evaluate("document.querySelectorAll('#timeline rect.before').length") == 1
    click(page, "#after")
    page.drag("#timeline", 0.6, 0.9)
    page.wait_for(READY)
    assert {"since", "until", "before-since", "before-until"} < set(query(page))
    click(page, "#compare")
    assert set(query(page)) == {"since", "until", "label", "show"}


def test_a_zoomed_frame_is_of_its_graph_alone(page: Page) -> None:
    page.evaluate("document.getElementById('graph').focus()")
    page.press("ArrowDown", "Enter")
    assert page.evaluate("location.hash").startswith("#frame=")
    write(page, "filter", "process=server")
    assert page.evaluate("location.hash") == ""
    assert text(page, "name") == "all"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
def test_it_fits_and_everything_has_a_name(page: Page, server: Served, width: int, dark: bool) -> None:
    page.look(width=width, height=844, dark=dark)
    for words in ("", "?compare=1&before-until=2025-11-24T17:00&process=server", "?show=functions", "?process=nobody"):
        page.open(f"http://127.0.0.1:{server.port}/{words}")
        page.wait_for(READY)
        assert page.sideways() == 0
        assert page.unnamed() == []
        assert not page.evaluate("document.getElementById('problem').textContent")
        colours = page.evaluate(
            "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
        )
        assert (brightness(colours[0]) > brightness(colours[1])) == dark


def brightness(colour: str) -> int:
    return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))


def test_keys_reach_everything_in_the_order_of_the_page(page: Page) -> None:
    seen = []
    for _ in range(10):
        page.press("Tab")
        seen.append(page.evaluate("document.activeElement.id"))
        outline = (
            "(({outlineStyle, outlineWidth}) => [outlineStyle, outlineWidth])(getComputedStyle(document.activeElement))"
        )
        assert page.evaluate(outline) == ["solid", "3px"]
    assert seen == [
        *("search", "invert", "timeline", "since", "until", "filter", "compare", "graphs", "tables", "graph"),
    ]


def test_new_samples_appear_and_what_is_damaged_is_said(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "stacks"
    rng = random.Random(5)
    fill(folder, rng, 60)
    with served(folder, "--port", "0") as server:
        page: Any = browser.page()
        page.open(server.url)
        page.wait_for(READY)
        assert ": 60 samples" in text(page, "about")
        with Store(folder).append() as new:
            put(new, samples(rng, 7, NOON + 5 * HOUR), process="late")
        page.open(f"http://127.0.0.1:{server.port}/")
        page.wait_for(READY)
        assert ": 67 samples" in text(page, "about")
        assert page.errors == []
        for damaged in folder.glob("segment=*/hour=*/samples.parquet"):
            damaged.write_bytes(b"PAR1" + bytes(100))
        write(page, "filter", "process=late")
        (line,) = server.log()
        assert line == f"walkback: {folder}: {text(page, 'problem')}"
        assert "samples.parquet" in line
        page.close()


def test_a_server_that_is_gone_is_said_to_be(browser: Browser, store: Path) -> None:
    with served(store, "--port", "0") as server:
        page = browser.page()
        page.open(server.url)
        page.wait_for(READY)
        server.interrupt()
        click(page, "#tables")
        assert text(page, "problem") == "The server does not answer: does it still run?"
        page.close()
