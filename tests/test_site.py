"""The site as `make docs` has built it: links, weight, and what axe says of each page as people see it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from browser import Browser
from kernels import ROOT
from peers import missing

SITE = ROOT / "build" / "docs"
AXE = ROOT / "tools" / "js" / "node_modules" / "axe-core" / "axe.min.js"
HEAVIEST = 500_000
SHARES = 4
"""Parts of the pages, for several processes."""
COLOURS, OTHERS = "{runOnly: ['color-contrast']}", "{rules: {'color-contrast': {enabled: false}}}"
LOOKS = (
    (1400, False, "document", "{}"),
    (1400, True, "document", COLOURS),
    (390, False, "document", OTHERS),
    (390, False, "'.mobile-header'", COLOURS),
    (390, True, "'.mobile-header'", COLOURS),
)
"""How wide a page is, whether it is dark, and what axe looks at: colours differ by width in the header only."""

pytestmark = [pytest.mark.peers, pytest.mark.whole]


class Links(HTMLParser):
    """The anchors of a page, and where it leads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value or "")
            elif name in {"href", "src"} and tag != "base":
                self.targets.append(value or "")


@pytest.fixture(scope="module")
def pages() -> dict[Path, Links]:
    found = {page: Links(page) for page in sorted(SITE.glob("**/*.html"))}
    return found or missing("the site, which `make docs` builds,")


def broken(page: Path, target: str, pages: dict[Path, Links]) -> bool:
    """Whether a link of a page leads to no file, or to no anchor of it."""
    parts = urlsplit(target)
    if parts.scheme:
        return False
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if path in pages and parts.fragment:
        return unquote(parts.fragment) not in pages[path].anchors
    return not path.exists()


def test_links_lead_to_pages_and_anchors(pages: dict[Path, Links]) -> None:
    wrong = [
        f"{page.relative_to(SITE)}: {target}"
        for page, links in pages.items()
        for target in links.targets
        if target != "#" and broken(page, target, pages)
    ]
    assert wrong == []


def test_pages_need_no_network(pages: dict[Path, Links]) -> None:
    for path in [*pages, *SITE.glob("**/*.css"), *SITE.glob("**/*.js")]:
        assert not re.findall(r"""(?:src=|@import |url\()["']?https?:[^"')]*""", path.read_text()), path


def test_pages_are_light(pages: dict[Path, Links]) -> None:
    assert [str(page) for page in pages if page.stat().st_size > HEAVIEST] == []


def test_the_text_of_every_page_is_there(pages: dict[Path, Links]) -> None:
    listed = re.findall(r"^- \[.*?\]\((.*?)\.md\):", (SITE / "llms.txt").read_text(), re.MULTILINE)
    made = {str(page.relative_to(SITE).with_suffix("")) for page in pages} - {"search"}
    assert set(listed) == made
    assert all((SITE / f"{name}.md").exists() for name in listed)


@pytest.mark.parametrize("share", range(SHARES))
def test_axe_finds_nothing_wrong(pages: dict[Path, Links], share: int) -> None:
    """On the largest page of each folder: pages of a folder are made alike."""
    largest = {page.parent: page for page in sorted(pages, key=lambda page: page.stat().st_size)}
    assert wrong_on(list(largest.values())[share::SHARES]) == []


@pytest.mark.long
@pytest.mark.parametrize("share", range(SHARES))
def test_axe_finds_nothing_wrong_on_any_page(pages: dict[Path, Links], share: int) -> None:
    assert wrong_on(list(pages)[share::SHARES]) == []


def wrong_on(pages: Iterable[Path]) -> list[str]:
    """What axe finds on some pages."""
    if not AXE.exists():
        missing("axe-core, which `make lint-scripts` brings,")
    found = []
    with Browser() as browser:
        page = browser.page()
        for path in pages:
            page.open(path)
            page.evaluate(AXE.read_text() + "; 0")
            for width, dark, part, rules in LOOKS:
                page.look(width=width, dark=dark)
                done = page.evaluate(f"axe.run({part}, {rules}).then((found) => found.violations)")
                found += [f"{path.relative_to(SITE)}, {width}, {dark}: {summary(one)}" for one in done]
    return found


def summary(violation: dict[str, Any]) -> str:
    nodes = [(node["target"], node.get("failureSummary", "")) for node in violation["nodes"][:3]]
    return f"{violation['id']}: {json.dumps(nodes)}"
