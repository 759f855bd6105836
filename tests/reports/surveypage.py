"""What the page of a survey is held against, and a file in it opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reports.madesurvey import Made
from walkback.surveys import layout

if TYPE_CHECKING:
    from browser import Page


Richest = tuple[dict[str, Any], list[dict[str, Any]]]


def rows_of(made: Made, table: str) -> list[dict[str, Any]]:
    return [dict(zip(layout.COLUMNS[table], row, strict=True)) for row in made.rows[table]]


def names_of(made: Made) -> dict[str, list[tuple[str, str | None]]]:
    """All names of each content, with the packages that it is in."""
    found: dict[Any, Any] = {}
    for row in rows_of(made, "places"):
        name = f"{row['path']}({row['member']})" if row["member"] else row["path"]
        found.setdefault(row["content"], []).append((name, row["package"]))
    return found


def show_file(page: Page, name: str) -> None:
    """Search for a file, and open it with the keyboard alone."""
    page.press("/")
    page.type(name)
    page.press("ArrowDown", "Enter")
    page.wait_for("document.getElementById('file').open")
