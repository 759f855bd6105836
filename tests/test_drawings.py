"""What the documents show of code and of formats is what `make drawings` draws from the source."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernels import ROOT

if TYPE_CHECKING:
    from browser import Page

EXPLAINED = ROOT / "docs" / "explained"


def test_drawings_are_current() -> None:
    tool = ROOT / "tools" / "drawings.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["total", "total-omitted"])
def test_each_step_has_its_stack_in_words(name: str) -> None:
    text = (EXPLAINED / f"{name}.html").read_text()
    links, steps = re.findall(r'href="#([\w-]+)"', text), re.findall(r'<section [^>]*id="([\w-]+)"', text)
    assert links == steps
    assert len(re.findall(r'<svg [^>]*role="img" aria-label="The stack: at CFA.8 return address', text)) == len(steps)


def shown(page: Page) -> list[str]:
    """The steps that a reader sees, and the row that is marked."""
    rows = "document.querySelectorAll('[aria-current] a')"
    steps = "document.querySelectorAll('.stack-step:not([hidden])')"
    found: list[str] = page.evaluate(f"[...{steps}].map((it) => '#' + it.id).concat([...{rows}].map((it) => it.hash))")
    return found


def test_one_step_is_shown_and_keys_buttons_and_links_change_it(page: Page, tmp_path: Path) -> None:
    parts = [(EXPLAINED / f"{name}.html").read_text() for name in ("steps-head", "total", "steps-foot")]
    (tmp_path / "page.html").write_text(f"<!doctype html><html lang='en'><title>Steps</title>{''.join(parts)}")
    page.open(tmp_path / "page.html")
    assert shown(page) == ["#total-0"] * 2
    page.click(".stack-buttons button:last-of-type")
    assert shown(page) == ["#total-1"] * 2
    page.press("ArrowRight", "ArrowRight", "ArrowLeft")
    assert shown(page) == ["#total-2"] * 2
    page.click("tbody tr:last-child a")
    assert shown(page) == ["#total-9"] * 2
    page.press("ArrowRight")
    assert shown(page) == ["#total-9"] * 2
    assert page.unnamed() == []
