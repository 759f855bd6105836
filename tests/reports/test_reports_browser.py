"""The driver of the browser notices what the tests of pages rely on it to notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser import Browser, BrowserError, Page


def _file(folder: Path, body: str) -> Path:
    path = folder / "page.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>t</title>{body}", encoding="utf-8")
    return path


def test_errors_of_scripts_and_of_the_console_are_noticed(browser: Browser, tmp_path: Path) -> None:
    path = _file(tmp_path, "<script>console.error('wrong', 7); setTimeout(() => { throw Error('late') }, 0)</script>")
    page = browser.page(path)
    page.wait_for("new Promise((done) => setTimeout(() => done(true), 50))")
    page.close()
    assert page.errors[0] == "console.error: wrong 7"
    assert page.errors[1].startswith("Error: late")
    with pytest.raises(BrowserError, match="nowhere is not defined"):
        browser.page().evaluate("nowhere()")


def test_whatever_a_page_loads_is_noticed(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text("")
    page = browser.page(_file(tmp_path, "<link rel=stylesheet href=style.css><img alt='' src='data:,'>"))
    page.close()
    assert page.requests == [(tmp_path / "style.css").as_uri()]


def test_keys_clicks_and_looks_arrive(page: Page, tmp_path: Path) -> None:
    page.look(width=390, dark=True)
    page.open(_file(tmp_path, "<button onclick='this.textContent += 1'>b</button><input aria-label=i>"))
    page.press("Tab", "Enter", "Space", "Tab")
    page.type("a/b'+\u00fc")
    page.press("Backspace")
    page.click("button")
    assert page.evaluate("[document.querySelector('button').textContent, document.querySelector('input').value]") == [
        "b111",
        "a/b'+",
    ]
    page.press("Tab")
    assert page.focus() == "input# i"
    page.press("Shift+Tab")
    assert page.focus() == "button# b111"
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert page.screenshot().startswith(b"\x89PNG")
    assert page.printed().startswith(b"%PDF")


def test_pages_wider_than_the_window_are_noticed(page: Page, tmp_path: Path) -> None:
    page.look(width=390)
    viewport = "<meta name=viewport content='width=device-width, initial-scale=1, minimum-scale=1'>"
    page.open(_file(tmp_path, f"{viewport}<div style='width: 500px; height: 9px'></div>"))
    assert page.sideways() > 100


def test_what_has_no_name_is_noticed(page: Page, tmp_path: Path) -> None:
    page.open(_file(tmp_path, "<button>named</button><button></button><svg role=img></svg>"))
    assert page.unnamed() == ["button", "image"]
