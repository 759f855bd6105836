"""The page about one file, as people see it: numbers, keys, what screen readers get, and nothing smuggled in."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cfibuilder import CfiBuilder, cfa, expr
from elfbuilder import ElfBuilder
from reports.listed import program
from sframefiles import TEXT, linked, small, written
from walkback.base.errors import WalkbackError
from walkback.identify.names import shown
from walkback.pages.scripts import joined_script
from walkback.reports.binary import write_binary_page
from walkback.reports.columns import PageColumns

if TYPE_CHECKING:
    from browser import Browser, Page

PUSH = "advance_loc 1; def_cfa_offset 16; offset 6 2"
FRAMED = f"{PUSH}; advance_loc 3; def_cfa_register 6; offset 3 3; advance_loc 27; def_cfa 7 8"
LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")
READY = "document.documentElement.dataset.ready === 'true'"
ALERT = "globalThis.smuggled = true"


@pytest.fixture
def show(page: Page, tmp_path: Path) -> Callable[..., Page]:
    """Writes the page about a file, opens it, and waits until it is drawn."""

    def opened(content: Path | ElfBuilder, **look: Any) -> Page:
        path = content if isinstance(content, Path) else written(tmp_path, content)
        write_binary_page(path, tmp_path / "page.html")
        page.look(**look)
        page.open(tmp_path / "page.html")
        page.wait_for(READY)
        page.settle()
        return page

    return opened


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
    return told.replace("\n\n", "\n")


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


def test_columns_come_back_as_they_were(page: Page, tmp_path: Path) -> None:
    columns = PageColumns()
    wide = np.array([0, 2**64 - 1, 5, 2**63, 2**63 - 1, 1], np.uint64)
    signed = np.array([-8, 5, -(2**40), 0, 2**40], np.int64)
    columns.numbers("bytes", np.array([1, 255, 0]))
    columns.numbers("more", np.array([1, 65536]))
    columns.numbers("none", np.zeros(0, np.int64))
    columns.rising("wide", wide)
    columns.rising("signed", signed)
    columns.texts("texts", ["a", "", "\u00fc\ud800\n</script>"])
    path = tmp_path / "page.html"
    path.write_text(
        f"<!DOCTYPE html><meta charset=utf-8><script id=data type=text/plain>{columns.packed()}</script><script>"
        f"const {{Columns, inflated}} = {joined_script('pages/columns.js')};"
        f"const described = {[list(one) for one in columns.described]};"
        "const all = inflated('data').then((buffer) => new Columns(described, buffer));</script>"
    )
    page.open(path)
    found = page.evaluate(
        "all.then((its) => [...['bytes', 'more', 'none'].map((name) => [...its.numbers(name)]),"
        " [...its.addresses('wide')].map(String), [...its.signed('signed')], its.texts('texts', 3)])"
    )
    assert found == [
        [1, 255, 0],
        [1, 65536],
        [],
        [str(one) for one in wide.tolist()],
        signed.tolist(),
        ["a", "", "\u00fc\\ud800\\x0a</script>"],
    ]


def test_headlines_are_the_numbers_of_the_other_verbs(show: Callable[..., Page]) -> None:
    page = show(several())
    tiles = text(page, "#tiles")
    assert "Functions\n4\nwith 10 rows in .eh_frame" in tiles
    assert "112 bytes\nof 128 bytes that can run, 87.5 %" in tiles
    assert "V3 would cover\n100 %\nevery function in .eh_frame" in tiles
    page.click("input[value='2']")
    assert "SFrame V2 cannot say 1 function with 32 bytes of code." in text(page, "#line-lead")
    assert listed(page)[2] == "realigns\nnot in V2"


def test_who_made_a_file_is_told_at_the_top(show: Callable[..., Page]) -> None:
    made = several()
    made.section(".comment", b"GCC: (Debian 12.2.0-14) 12.2.0\0Linker: LLD 22.1.2\0rustc version 1.95.0 (x)\0")
    page = show(made)
    assert text(page, "#origin").split(" \u00b7 ") == [
        "Made by rustc 1.95.0 from Rust",
        "known by .comment",
        "with marks of GCC 12.2.0, rustc 1.95.0",
        "linked by LLD 22.1.2",
    ]
    page = show(several())
    assert text(page, "#origin") == "Made from C++ by an unknown compiler"
    assert text(show(program((TEXT, 32, FRAMED))), "#origin") == "Made by an unknown compiler"


def test_a_chosen_function_has_its_rows_and_its_frame(show: Callable[..., Page]) -> None:
    page = show(several())
    assert chosen(page) == "main"  # what a reader looks for first
    assert text(page, "#rows .view").split("\n")[:5] == ["+0x0", "rsp+8", "*(CFA-8)", "unchanged", "\u2013"]
    page.click("#rows-2")
    assert frame(page) == (
        "The stack frame at 0x1004. The CFA is rbp + 16. The return address is at CFA \u2212 8."
        " The caller\u2019s rbp is at CFA \u2212 16. Saved besides: rbx. The caller\u2019s rsp is the CFA."
    )
    drawn = page.evaluate("[...document.querySelectorAll('#function .frame text')].map((one) => one.textContent)")
    assert {"return address", "caller\u2019s rbp", "caller\u2019s rbx", "CFA \u2212 24", "rbp"} <= set(drawn)
    page.click("#functions-1")
    page.click("#rows-2")
    assert "The CFA is rsp + 64." in frame(page)
    drawn = page.evaluate("[...document.querySelectorAll('#function .frame text')].map((one) => one.textContent)")
    assert "40 bytes" in drawn  # from the lowest register to the stack pointer
    assert text(page, "#function .symbol") == "_ZN3lib4openEi"


def test_the_slider_moves_through_the_addresses_of_a_function(show: Callable[..., Page]) -> None:
    page = show(several())
    page.evaluate("document.getElementById('offset').focus()")
    page.press("Home", "ArrowRight", "ArrowRight")
    assert page.evaluate("document.getElementById('offset').getAttribute('aria-valuetext')") == "0x1002, row 2 of 4"
    assert "0x1002" in frame(page)
    assert page.evaluate("location.hash") == "#0x1002"
    page.press("End")
    assert "0x101f" in frame(page)
    page.click("#function .profile svg", 0.5, 0.5)
    assert text(page, "#function .where") == "0x100f (+0xf), row 3 of 4"


def test_the_page_is_used_by_keyboard_alone(show: Callable[..., Page]) -> None:
    page = show(several())
    page.press("/")
    assert page.focus().startswith("input#search")
    page.type("lib open")
    page.wait_for("document.querySelectorAll('#functions .view .row').length === 1")
    page.press("ArrowDown")
    assert page.focus().startswith("div#functions")
    assert chosen(page) == "lib::open"
    page.press("Shift+Tab", "Shift+Tab")
    assert page.focus().startswith("input#search")
    page.press("Escape", "ArrowDown", "End")
    assert chosen(page) == "leaf"
    active = page.evaluate(
        "(() => { const grid = document.getElementById('functions');"
        " const row = document.getElementById(grid.getAttribute('aria-activedescendant'));"
        " return [...['aria-selected', 'aria-rowindex'].map((name) => row.getAttribute(name)),"
        " grid.getAttribute('aria-rowcount')]; })()"
    )
    assert active == ["true", "5", "5"]
    page.press("Home", "ArrowDown")
    assert chosen(page) == "lib::open"
    page.evaluate("document.querySelector('canvas.line').focus()")
    page.press("ArrowRight")
    assert chosen(page) == "realigns"
    page.press("Enter")
    assert text(page, "#line-description").startswith("realigns")
    page.press("0", "+", "-", "PageUp", "PageDown", "Home")
    assert chosen(page) == "main"


def test_an_address_that_was_searched_stays_when_the_list_is_entered(show: Callable[..., Page]) -> None:
    page, address = show(several()), f"{TEXT + 3:#x}"
    page.press("/")
    page.type(address)
    page.wait_for(f"location.hash === '#{address}'")
    page.press("Enter")
    assert page.focus().startswith("div#functions")
    assert page.evaluate("location.hash") == f"#{address}"


def test_the_list_is_sorted_by_keyboard(show: Callable[..., Page]) -> None:
    page = show(several())
    page.evaluate("document.querySelector('#functions').focus()")
    seen = []
    while "Code" not in (focus := page.focus()):
        seen.append(focus)
        assert len(seen) < 20, seen
        page.press("Tab")
    page.press("Enter")
    assert page.evaluate("document.querySelector('#functions [aria-sort]:not([aria-sort=none])').textContent") == "Code"


def test_tab_comes_to_everything_and_the_focus_is_seen(show: Callable[..., Page]) -> None:
    page = show(several())
    walked = []
    for _ in range(30):
        page.press("Tab")
        walked.append(page.focus())
        if walked[-1] == "body":
            break
        outlined = page.evaluate(
            "(() => { const seen = (it) => getComputedStyle(it).outlineStyle !== 'none';"
            " const it = document.activeElement; return seen(it) || seen(it.closest('label') ?? it); })()"
        )
        assert outlined, walked[-1]
    names = " ".join(walked)
    for part in ("a# To the functions", "button# Colours", "canvas#", "input#search", "select#filter", "div#functions"):
        assert part in names
    assert "input#offset Address in the function" in names
    assert "div#rows Rows of the function" in names


def test_search_finds_names_symbols_and_addresses(show: Callable[..., Page]) -> None:
    page = show(several())
    search(page, "LIB")
    assert listed(page) == ["lib::open"]
    search(page, "_zn3")
    assert listed(page) == ["lib::open"]
    search(page, "0x1047")
    assert listed(page) == ["realigns"]
    assert text(page, "#function .where") == "0x1047 (+0x7), row 2 of 2"
    search(page, "nowhere")
    assert listed(page) == []
    assert "No function is called that." in text(page, "#functions")
    assert text(page, "#list [role=status]") == "0 of 4 functions"
    page.press("Escape")
    assert len(listed(page)) == 4


def test_the_list_is_sorted_and_filtered(show: Callable[..., Page]) -> None:
    page = show(several())
    page.click("#functions .count button")
    assert listed(page)[:2] == ["main", "lib::open"]
    assert page.evaluate("document.querySelector('#functions .count').getAttribute('aria-sort')") == "descending"
    page.click("#functions .count button")
    assert listed(page)[0] == "leaf"
    page.click("#functions .name button")
    assert listed(page) == ["leaf", "lib::open", "main", "realigns"]
    pick(page, "framed")
    assert listed(page) == ["main"]
    page.click("input[value='2']")
    pick(page, "lost")
    assert listed(page) == ["realigns\nnot in V2"]


def test_a_link_leads_to_an_address(show: Callable[..., Page], tmp_path: Path) -> None:
    page = show(several())
    page.evaluate("location.hash = '#0x1049'")
    page.settle()
    assert (chosen(page), text(page, "#function .where")) == ("realigns", "0x1049 (+0x9), row 2 of 2")
    for nothing in ("#0x9999", "#%E0%A4%A", "#<img>", "#0x"):
        page.evaluate(f"location.hash = {nothing!r}")
        page.settle()
        assert chosen(page) == "realigns"


def test_a_point_on_the_line_is_a_function(show: Callable[..., Page]) -> None:
    page = show(several())
    page.click("canvas.line", 0.1 + 0.9 * (0x48 / 0x80), 0.35)
    assert chosen(page) == "realigns"
    page.click("[aria-label='Show the chosen function']")
    page.click("canvas.line", 0.98, 0.35)
    assert chosen(page) == "leaf"


def test_what_sframe_says_otherwise_is_marked(show: Callable[..., Page]) -> None:
    other = FRAMED.replace("def_cfa_offset 16", "def_cfa_offset 24")
    page = show(program((TEXT, 32, FRAMED), (TEXT + 32, 32, other), sframe=small(3).bytes(), size=0x60))
    assert "equal to .eh_frame at" in text(page, "#tiles")
    pick(page, "differs")
    assert listed(page) == ["no name\ndiffers"]
    page.click("#functions-0")
    assert text(page, "#rows-1 .verdict") == "differs"
    assert "CFA = rsp+24, RA = *(CFA-8), FP = *(CFA-16)" in text(page, "#function table")
    assert "4 stretches of code only in .sframe" in text(page, "#notes")


def legend(page: Page) -> list[str]:
    told: list[str] = page.evaluate("[...document.querySelectorAll('#line .legend li')].map((one) => one.innerText)")
    return told


def test_the_legend_has_the_colours_that_there_are(show: Callable[..., Page]) -> None:
    plain = ["function", "rows of the table"]
    page = show(several())
    assert legend(page) == [*plain, "covered by V3"]
    page.click("input[value='2']")
    assert legend(page) == [*plain, "covered by V2", "not covered by V2"]
    page = show(program((TEXT, 32, FRAMED), sframe=small(3).bytes(), size=0x80))
    assert legend(page) == [*plain, "covered by V3"]
    other = FRAMED.replace("def_cfa_offset 16", "def_cfa_offset 24")
    page = show(program((TEXT, 32, other), (TEXT + 0x60, 16, ""), sframe=small(3).bytes(), size=0x80))
    wrong = [".sframe says something else", "only in call frame information"]
    assert legend(page) == [*plain, "covered by V3", *wrong]


def test_rows_of_sframe_that_cannot_be_read_are_told_once(show: Callable[..., Page]) -> None:
    section = bytearray(small(3).bytes())
    section[85] = 0xFF  # the second row of the first function: more than there is
    page = show(program((TEXT, 32, FRAMED), (TEXT + 32, 32, FRAMED), sframe=bytes(section), size=0x60))
    pick(page, "differs")
    page.click("#functions-0")
    table = text(page, "#function table")
    assert "no rule: the rows cannot be read" in table
    assert "inexpressible" not in table
    assert page.unnamed() == []


def test_code_for_which_neither_has_a_rule_differs_in_nothing(show: Callable[..., Page]) -> None:
    section = bytearray(small(3).bytes())
    section[85] = 0xFF
    rule = f"def_cfa_expression {expr('lit0')}"
    page = show(program((TEXT, 32, rule), (TEXT + 32, 32, FRAMED), sframe=bytes(section), size=0x60))
    assert listed(page)[0] == "no name\nnot in V3"
    page.click("#functions-0")
    assert text(page, "#rows-0 .verdict") == "same"
    assert "neither has a rule" in text(page, "#function table[aria-label='Differences']")
    assert "a rule in neither" in legend(page)


def test_pieces_functions_and_entries_are_told_apart(show: Callable[..., Page]) -> None:
    """A function that another interrupts is in two pieces, and SFrame has an entry for each."""
    page = show(program((TEXT, 48, ""), (TEXT + 16, 16, PUSH), sframe=small(3).bytes()))
    assert "Functions\n2\nin 3 pieces, with " in text(page, "#tiles")
    assert "V3, 3 entries in its index; " in text(page, "#tiles")
    assert "The list has 3 pieces, since some functions are in several" in text(page, "#notes")
    assert text(page, "#list [role=status]") == "3 pieces of 2 functions"
    assert text(page, "#filter option") == "All pieces (3)"
    search(page, f"{TEXT + 20:#x}")
    assert text(page, "#list [role=status]") == "1 of 3 pieces"


def test_what_goes_on_behind_the_code_does_not_count(show: Callable[..., Page]) -> None:
    page = show(program((TEXT, 32, FRAMED), (TEXT + 32, 0x10000, "advance_loc 4; def_cfa 10 0"), size=0x40))
    assert "Code that they describe\n64 bytes\nof 64 bytes that can run, 100 %" in text(page, "#tiles")
    assert "1 function goes on behind the code of the file." in text(page, "#notes")
    page.click("input[value='2']")
    assert "SFrame V2 cannot say 1 function with 32 bytes of code." in text(page, "#line-lead")


def test_functions_that_say_the_same_say_so(show: Callable[..., Page]) -> None:
    rows = (
        "advance_loc 1; def_cfa_offset 16; offset 6 2; advance_loc 3; def_cfa_register 6; advance_loc 27; def_cfa 7 8"
    )
    page = show(program(*((TEXT + 32 * number, 32, rows) for number in range(3)), sframe=small(3).bytes(), size=0x60))
    assert "equal to .eh_frame at 100 % of code" in text(page, "#tiles")
    assert "They say the same at every address of this function." in text(page, "#function")
    assert text(page, "#rows-1 .verdict") == "same"


def test_sframe_that_cannot_be_read_is_told_and_hides_nothing_else(show: Callable[..., Page]) -> None:
    broken = bytes(2) + bytes(small(3).bytes())[2:]
    page = show(several(sframe=broken))
    assert "The SFrame that the file has cannot be read: .sframe+0x0: the magic number is" in text(page, "#notes")
    assert "lib::open" in listed(page)


def test_a_file_with_sframe_alone_and_one_without_functions_have_pages(show: Callable[..., Page]) -> None:
    page = show(linked(small(3).bytes()))
    assert listed(page) == ["f0", "f1", "f2"]
    assert "would take" not in text(page, "#tiles")
    assert not page.evaluate("document.querySelector('#versions').checkVisibility()")
    page = show(program())
    assert "There are no functions." in text(page, "#functions")
    assert chosen(page) == "No function"


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


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_width_needs_scrolling_sideways_and_everything_has_a_name(show: Callable[..., Page], width: int) -> None:
    page = show(several(sframe=small(3).bytes()), width=width)
    assert page.sideways() == 0
    assert page.unnamed() == []
    roles = [role for role, _ in page.accessible()]
    assert {"banner", "main", "contentinfo", "grid", "columnheader", "slider", "search"} <= set(roles)
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map((one) => Number(one.localName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour[4:-1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


COLOURS = """
[...document.querySelectorAll('main *, header *')]
  .filter((it) => it.checkVisibility() && !it.closest('svg'))
  .filter((it) => [...it.childNodes].some((one) => one.nodeType === 3 && one.data.trim()))
  .map((it) => {
    const clear = (one) => /rgba\\(.*, 0\\)/.test(getComputedStyle(one).backgroundColor);
    let ground = it;
    while (ground && clear(ground)) ground = ground.parentElement;
    return [getComputedStyle(it).color, getComputedStyle(ground ?? document.body).backgroundColor, it.textContent];
  })
"""
"""Ink, ground and words of everything that has text."""


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_in_light_and_dark(show: Callable[..., Page], dark: bool) -> None:
    page = show(several(sframe=small(3).bytes()), dark=dark)
    page.click("input[value='2']")
    pairs = page.evaluate(COLOURS)
    assert len(pairs) > 60
    for ink, ground, words in pairs:
        if not ground.startswith("rgb("):  # mixed by the browser in another colour space
            continue
        high, low = sorted((luminance(ink), luminance(ground)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground, words)


def test_the_colours_follow_the_button(show: Callable[..., Page]) -> None:
    page = show(several(), dark=True)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme button")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert luminance(dark) < 0.1
    assert luminance(light) > 0.8


def test_a_page_prints_its_first_functions_and_is_then_as_before(show: Callable[..., Page]) -> None:
    page = show(program(*((TEXT + 16 * number, 16, FRAMED) for number in range(200))), dark=True)
    page.press("/", "ArrowDown", "End")
    assert page.printed().startswith(b"%PDF")
    assert text(page, "#functions-199 .address") == "0x1c70"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert text(page, "#list [role=status]") == "The first 25 of 200 functions"
    assert text(page, "#functions-0 .address") == "0x1000"
    assert page.evaluate("document.querySelectorAll('#functions .view .row').length") == 25
    assert page.evaluate("document.querySelector('canvas.line').width") > 2000  # for printers
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert text(page, "#list [role=status]") == "200 functions"
    assert text(page, "#functions-199 .address") == "0x1c70"


def test_the_rows_of_a_function_are_printed_as_far_as_they_are_told(show: Callable[..., Page]) -> None:
    rows = "; ".join(f"advance_loc 1; def_cfa_offset {16 + 8 * number}" for number in range(40))
    page = show(program((TEXT, 64, rows), names=[("main", TEXT, 64)]))
    page.look(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert "Rows: the first 25 of 41" in text(page, "#function")
    assert page.evaluate("document.querySelectorAll('#rows .view .row').length") == 25
    assert page.evaluate("document.querySelector('#rows .view').clientHeight") == 25 * 30
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert "Rows: the first" not in text(page, "#function")


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


def test_objects_show_functions_by_section(show: Callable[..., Page]) -> None:
    builder = CfiBuilder()
    cie = builder.cie(cfa("def_cfa 7 8; offset 16 1"))
    builder.fde(cie, 0, 32)
    builder.fde(cie, 0, 32)
    data, labels = builder.assemble()
    elf = ElfBuilder()
    sections = [elf.code(".text.a", 32), elf.code(".text.b", 32)]
    frames, symbols = elf.section(".eh_frame", data, flags=2), elf.symtab()
    names = [elf.symbol(symbols, "ab"[number], 0, section=sections[number], size=32) for number in range(2)]
    elf.relocations(frames, symbols, [(labels[f"fde{number}.start"], 2, names[number], 0) for number in range(2)])
    page = show(elf)
    assert text(page, "#functions .view").split("\n")[:2] == ["a", ".text.a+0x0"]
    page.evaluate("location.hash = '#.text.b+0x3'")
    page.settle()
    assert (chosen(page), text(page, "#function .where")) == ("b", ".text.b+0x3 (+0x3), row 1 of 1")
    search(page, "0x3")
    assert listed(page) == ["a", "b"]
