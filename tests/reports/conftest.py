"""Pages that the tests of reports look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from browser import Page
    from elfbuilder import ElfBuilder
    from reports.madesurvey import Made
    from walkback.sections.reading import Tables


# Late imports: with --interpreted nothing of the package may be imported before the tests are.
@pytest.fixture
def show(page: Page, tmp_path: Path) -> Callable[..., Page]:
    """Writes the page about a file, opens it, and waits until it is drawn."""
    from reports.binarypage import READY
    from sframefiles import written
    from walkback.reports.binary import write_binary_page

    def opened(content: Path | ElfBuilder, tables: Tables | None = None, **look: Any) -> Page:
        path = content if isinstance(content, Path) else written(tmp_path, content)
        write_binary_page(path, tmp_path / "page.html", tables=tables)
        page.look(**look)
        page.open(tmp_path / "page.html")
        page.wait_for(READY)
        page.settle()
        return page

    return opened


@pytest.fixture(scope="module")
def made() -> Made:
    """A survey of 400 files."""
    from reports.madesurvey import Made

    return Made(400)


@pytest.fixture(scope="module")
def written(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of that survey."""
    from reports.madesurvey import HOSTILE
    from walkback.reports.survey import write_survey_page

    path = tmp_path_factory.mktemp("page") / "page.html"
    with made.connection() as connection, path.open("wb") as out:
        write_survey_page(connection, out, title=f"A survey {HOSTILE}")
    return path


@pytest.fixture
def opened(page: Page, written: Path) -> Page:
    """That page, in a browser."""
    page.look()
    page.open(written)
    page.wait_for("document.documentElement.dataset.ready")
    return page
