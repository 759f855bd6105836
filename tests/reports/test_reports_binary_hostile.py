"""The page about one file, of files that nobody expects: their names, numbers, sizes and damage."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reports.binarypage import (
    ALERT,
    FRAMED,
    LIBC,
    READY,
    chosen,
    listed,
    pick,
    search,
    several,
    text,
)
from reports.listed import program
from sframefiles import TEXT, small, written
from walkback.base.errors import WalkbackError
from walkback.identify.names import shown
from walkback.reports.binary import write_binary_page

if TYPE_CHECKING:
    from browser import Browser, Page


NASTY = [
    f"</script><script>{ALERT}</script>",
    f"<img src=x onerror='{ALERT}'>",
    "@STYLE@@DATA@",
    "\u202eright to left\u0000",
    "a\nb\x1b[31m",
    "\\u003c${1}`",
    "x" * 3000,
]


def test_names_from_files_stay_text(show: Callable[..., Page], tmp_path: Path) -> None:
    names = [(name.replace("\0", ""), TEXT + 16 * number, 16) for number, name in enumerate(NASTY)]
    content = program(*((TEXT + 16 * number, 16, "") for number in range(len(NASTY))), names=names, size=0x80)
    path = written(tmp_path, content, f"<b onclick={ALERT}>&amp;@STYLE@'\"")
    page = show(path, width=390)
    assert page.evaluate("typeof globalThis.smuggled") == "undefined"
    assert page.evaluate("document.querySelectorAll('img, main script, #file *').length") == 0
    assert text(page, "h1").endswith(path.name)
    assert listed(page)[:3] == NASTY[:3]
    for number in range(len(NASTY)):
        page.click(f"#functions-{number}")
        assert (
            chosen(page)[:4] == NASTY[number][:4].replace("\n", "\\x0a").replace("\u202e", "\\u202e")[:4] or number == 3
        )
        assert page.sideways() == 0
    assert page.evaluate("typeof globalThis.smuggled") == "undefined"


def test_a_file_name_is_spelled_in_one_way(show: Callable[..., Page], tmp_path: Path) -> None:
    name = b"bad\xff\xfe\n\xe2\x80\xae'\\.so"  # with what is no text, and what turns text around
    page = show(written(tmp_path, several(), os.fsdecode(name)))
    spelled = r"bad\xff\xfe\x0a\u202e'\\.so"
    assert shown(os.fsdecode(name)) == spelled
    assert page.evaluate("document.title") == f"{spelled}: stack-trace tables"
    assert text(page, "h1").endswith(f"/{spelled}")
    # In such quotes shells read it as it is.
    command = page.evaluate("document.querySelector('#footer dd').textContent")
    quoted = command.removeprefix("walkback size ")
    settings = os.environ | {"LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", f"printf %s {quoted}"], capture_output=True, check=True, env=settings)
    assert done.stdout == os.fsencode(tmp_path) + b"/" + name


@pytest.mark.parametrize("width", [390, 1280])
def test_letters_with_hundreds_of_marks_make_no_page_wide(
    show: Callable[..., Page], tmp_path: Path, width: int
) -> None:
    marked = ["e\u0301" * 50, "a" + "\u0336" * 200]
    names = [(name, TEXT + 16 * number, 16) for number, name in enumerate(marked)]
    content = program(*((TEXT + 16 * number, 16, "") for number in range(2)), names=names, size=0x80)
    page = show(written(tmp_path, content, "x" + "\u0336" * 100), width=width)
    for number in range(2):
        page.click(f"#functions-{number}")
        assert chosen(page) == marked[number]
        assert page.sideways() == 0


def test_addresses_of_64_bits_are_exact(show: Callable[..., Page]) -> None:
    high = 0xFFFFFFFF81000000
    frames = program((high + 5, 32, FRAMED), names=[("start", high + 5, 32)])
    frames.sections[1].fields["sh_addr"] = high
    page = show(frames)
    assert text(page, "#functions-0 .address") == "0xffffffff81000005"
    page.evaluate("document.getElementById('offset').focus()")
    page.press("End")
    assert text(page, "#function .where").startswith("0xffffffff81000024 (+0x1f)")
    search(page, "0xffffffff81000006")
    assert text(page, "#function .where").startswith("0xffffffff81000006 (+0x1)")


@pytest.mark.skipif(not LIBC.exists(), reason="needs a C library for AMD64")
def test_a_page_about_thousands_of_functions_has_only_those_in_sight(show: Callable[..., Page]) -> None:
    page = show(LIBC)
    page.press("/", "ArrowDown", "End")
    rows = page.evaluate("document.querySelectorAll('#functions .view .row').length")
    assert 5 < rows < 60
    number = page.evaluate("document.getElementById('functions').getAttribute('aria-activedescendant')")
    assert int(number.removeprefix("functions-")) > 3000
    pick(page, "lost")
    assert "longjmp" in " ".join(listed(page))


def test_pages_about_damaged_files_have_no_errors(browser: Browser, tmp_path: Path) -> None:
    chance = random.Random(4)
    whole = bytes(several(sframe=small(3).bytes()).build())
    page = browser.page()
    shown = 0
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(0x40, len(data))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        with suppress(WalkbackError):
            write_binary_page(written(tmp_path, bytes(data)), tmp_path / "page.html")
            page.open(tmp_path / "page.html")
            page.wait_for(READY)
            page.press("/", "ArrowDown", "End")
            shown += 1
    page.close()
    assert page.errors == []
    assert shown > 10
