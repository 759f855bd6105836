"""A file with four functions, and what a page about a file shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from elfbuilder import ElfBuilder
from reports.listed import program
from sframefiles import TEXT

if TYPE_CHECKING:
    from browser import Page


PUSH = "advance_loc 1; def_cfa_offset 16; offset 6 2"
FRAMED = f"{PUSH}; advance_loc 3; def_cfa_register 6; offset 3 3; advance_loc 27; def_cfa 7 8"
LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")
READY = "document.documentElement.dataset.ready === 'true'"
ALERT = "globalThis.smuggled = true"


def several(**more: Any) -> ElfBuilder:
    """Four functions: with a frame pointer, without, in a table's blind spot, and without anything saved."""
    fdes = [
        (TEXT, 32, FRAMED),
        (TEXT + 32, 32, f"{PUSH}; advance_loc 3; def_cfa_offset 64; offset 12 3"),
        (TEXT + 64, 32, "advance_loc 4; def_cfa 10 0"),
        (TEXT + 96, 16, ""),
    ]
    names = [
        ("main", TEXT, 32),
        ("_ZN3lib4openEi", TEXT + 32, 32),
        ("realigns", TEXT + 64, 32),
        ("leaf", TEXT + 96, 16),
    ]
    return program(*fdes, names=names, size=0x80, **more)


def text(page: Page, selector: str) -> str:
    told: str = page.evaluate(f"document.querySelector({selector!r}).innerText")
    return told.replace("\n\n", "\n").replace("\u00a0", " ")


def listed(page: Page) -> list[str]:
    told: list[str] = page.evaluate(
        "[...document.querySelectorAll('#functions .view .name')].map((one) => one.innerText)"
    )
    return told


def chosen(page: Page) -> str:
    told: str = page.evaluate("document.getElementById('function-name').textContent")
    return told


def frame(page: Page) -> str:
    told: str = page.evaluate("document.querySelector('#function .frame svg').getAttribute('aria-label')")
    return told


def search(page: Page, words: str) -> None:
    page.evaluate("document.getElementById('search').focus()")
    page.press("Control+a")
    page.evaluate("document.getElementById('search').select()")
    page.type(words) if words else page.press("Backspace")
    page.wait_for(f"document.getElementById('search').value === {words!r}")
    page.evaluate("new Promise((done) => setTimeout(done, 120))")
    page.settle()


def pick(page: Page, name: str) -> None:
    page.evaluate(
        f"(() => {{ const its = document.getElementById('filter'); its.value = {name!r};"
        " its.dispatchEvent(new Event('change')); })()"
    )
    page.settle()


def legend(page: Page) -> list[str]:
    told: list[str] = page.evaluate("[...document.querySelectorAll('#line .legend li')].map((one) => one.innerText)")
    return told
