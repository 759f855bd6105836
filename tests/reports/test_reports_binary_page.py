"""The page about one file: what it tells of functions, their rows, and the two tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cfibuilder import CfiBuilder, cfa, expr
from elfbuilder import ElfBuilder
from reports.binarypage import (
    FRAMED,
    PUSH,
    chosen,
    frame,
    legend,
    listed,
    pick,
    search,
    several,
    text,
)
from reports.listed import program
from sframefiles import TEXT, linked, small

if TYPE_CHECKING:
    from browser import Page


def test_headlines_are_the_numbers_of_the_other_verbs(show: Callable[..., Page]) -> None:
    page = show(several())
    tiles = text(page, "#tiles")
    assert "Functions\n4\nwith 10 rows in .eh_frame" in tiles
    assert "112 bytes\nof 128 bytes of code, 87.5 %" in tiles
    assert "V3 would cover\n100 %\nevery function in .eh_frame" in tiles
    page.click("input[value='2']")
    assert "SFrame V2 leaves out 1 function with 32 bytes of code." in text(page, "#line-lead")
    assert listed(page)[2] == "realigns\nnot in V2"


def test_who_made_a_file_is_told_at_the_top(show: Callable[..., Page]) -> None:
    made = several()
    made.section(".comment", b"GCC: (Debian 12.2.0-14) 12.2.0\0Linker: LLD 22.1.2\0rustc version 1.95.0 (x)\0")
    page = show(made)
    assert text(page, "#origin").split(" \u00b7 ") == [
        "Made by rustc 1.95.0 from Rust",
        "identified by .comment",
        "traces of GCC 12.2.0, rustc 1.95.0",
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
        " The caller\u2019s rbp is at CFA \u2212 16. Also saved: rbx. The caller\u2019s rsp is the CFA."
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


def test_what_sframe_says_otherwise_is_marked(show: Callable[..., Page]) -> None:
    other = FRAMED.replace("def_cfa_offset 16", "def_cfa_offset 24")
    page = show(program((TEXT, 32, FRAMED), (TEXT + 32, 32, other), sframe=small(3).bytes(), size=0x60))
    assert "agrees with .eh_frame in" in text(page, "#tiles")
    pick(page, "differs")
    assert listed(page) == ["no name\ndiffers"]
    page.click("#functions-0")
    assert text(page, "#rows-1 .verdict") == "differs"
    assert "CFA = rsp+24, RA = *(CFA-8), FP = *(CFA-16)" in text(page, "#function table")
    assert "4 stretches of code only in .sframe" in text(page, "#notes")


def test_the_legend_has_the_colours_that_there_are(show: Callable[..., Page]) -> None:
    plain = ["function", "rows"]
    page = show(several())
    assert legend(page) == [*plain, "covered by V3", "unknown"]
    page.click("input[value='2']")
    assert legend(page) == [*plain, "covered by V2", "not covered by V2", "unknown"]
    page = show(program((TEXT, 32, FRAMED), sframe=small(3).bytes(), size=0x80))
    assert legend(page) == [*plain, "covered by V3", "unknown"]
    other = FRAMED.replace("def_cfa_offset 16", "def_cfa_offset 24")
    page = show(program((TEXT, 32, other), (TEXT + 0x60, 16, ""), sframe=small(3).bytes(), size=0x80))
    wrong = [".sframe differs", "only in call frame information"]
    assert legend(page) == [*plain, "covered by V3", *wrong, "unknown"]


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
    assert "no rule in either" in legend(page)


def test_pieces_functions_and_entries_are_told_apart(show: Callable[..., Page]) -> None:
    """A function that another interrupts is in two pieces, and SFrame has an entry for each."""
    page = show(program((TEXT, 48, ""), (TEXT + 16, 16, PUSH), sframe=small(3).bytes()))
    assert "Functions\n2\nin 3 pieces, with " in text(page, "#tiles")
    assert "V3, 3 entries in its index; " in text(page, "#tiles")
    assert "The list has 3 pieces, because some entries of the call frame information are split" in text(page, "#notes")
    assert text(page, "#list [role=status]") == "3 pieces of 2 functions"
    assert text(page, "#filter option") == "All pieces (3)"
    search(page, f"{TEXT + 20:#x}")
    assert text(page, "#list [role=status]") == "1 of 3 pieces"


def test_what_goes_on_behind_the_code_does_not_count(show: Callable[..., Page]) -> None:
    page = show(program((TEXT, 32, FRAMED), (TEXT + 32, 0x10000, "advance_loc 4; def_cfa 10 0"), size=0x40))
    assert "Described code\n64 bytes\nof 64 bytes of code, 100 %" in text(page, "#tiles")
    assert "1 function extends past the code of the file." in text(page, "#notes")
    page.click("input[value='2']")
    assert "SFrame V2 leaves out 1 function with 32 bytes of code." in text(page, "#line-lead")


def test_functions_that_say_the_same_say_so(show: Callable[..., Page]) -> None:
    rows = (
        "advance_loc 1; def_cfa_offset 16; offset 6 2; advance_loc 3; def_cfa_register 6; advance_loc 27; def_cfa 7 8"
    )
    page = show(program(*((TEXT + 32 * number, 32, rows) for number in range(3)), sframe=small(3).bytes(), size=0x60))
    assert "agrees with .eh_frame in 100 % of the code" in text(page, "#tiles")
    assert "They agree at every address of this function." in text(page, "#function")
    assert text(page, "#rows-1 .verdict") == "same"


def test_sframe_that_cannot_be_read_is_told_and_hides_nothing_else(show: Callable[..., Page]) -> None:
    broken = bytes(2) + bytes(small(3).bytes())[2:]
    page = show(several(sframe=broken))
    assert "The SFrame in the file cannot be read: .sframe+0x0: the magic number is" in text(page, "#notes")
    assert "lib::open" in listed(page)


def test_a_file_with_sframe_alone_and_one_without_functions_have_pages(show: Callable[..., Page]) -> None:
    page = show(linked(small(3).bytes()))
    assert listed(page) == ["f0\nwrong", "f1\nwrong", "f2\nwrong"]  # their code is zeros
    assert "would take" not in text(page, "#tiles")
    assert not page.evaluate("document.querySelector('#versions').checkVisibility()")
    page = show(program())
    assert "There are no functions." in text(page, "#functions")
    assert chosen(page) == "No function"


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
