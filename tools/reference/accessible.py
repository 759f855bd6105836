"""What the theme leaves out for keyboards and screen readers, put into the pages that it has made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CHANGES = {
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<th class="head"><p></p></th>': "<td></td>",
    '<th class="head text-right"><p></p></th>': "<td></td>",
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
}
"""Keys scroll only what can have the focus; two landmarks of one kind need names; and an empty cell heads nothing."""


def make_accessible(folder: Path) -> None:
    """Change all pages in a folder; what no page has is an error, as the theme may have changed."""
    missing = set(CHANGES)
    for page in folder.glob("**/*.html"):
        text = page.read_text()
        for old, new in CHANGES.items():
            if old in text:
                missing.discard(old)
                text = text.replace(old, new)
        page.write_text(text)
    if missing:
        raise ValueError(f"no page has {' or '.join(sorted(missing))}")
