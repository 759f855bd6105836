"""The page about one file: what the machine code proves, along the code and at each instruction."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.commands import WALKBACK
from reports import provable
from reports.binarypage import chosen, legend, listed, pick, several, text
from walkback.reports import verdicts

if TYPE_CHECKING:
    from browser import Page


def cells(page: Page, row: str) -> list[str]:
    """What stands in the cells of a row that are shown."""
    found: list[str] = page.evaluate(
        f"[...document.querySelectorAll('{row} > *')].filter((one) => one.checkVisibility())"
        ".map((one) => one.innerText)"
    )
    return found


def of_instruction(page: Page) -> str:
    """The address of the marked instruction."""
    found: str = page.evaluate(
        "document.querySelector('#instructions .view [aria-selected=true] .from')?.innerText ?? ''"
    )
    return found


def choose(page: Page, name: str) -> None:
    page.click(f"#functions-{[one.partition(chr(10))[0] for one in listed(page)].index(name)}")
    assert chosen(page) == name


def test_a_wrong_function_is_seen_at_a_glance_and_can_be_listed(show: Callable[..., Page], tmp_path: Path) -> None:
    page = show(provable.library(tmp_path))
    assert "Proved by the code\n57.1 %\n1 function with a wrong rule" in text(page, "#tiles")
    assert legend(page)[-4:] == ["proved", "wrong", "unknown", "assumed"]
    assert listed(page) == ["right", "wrong\nwrong", "unknown\nnot in V3", "assumed"]
    for name in ("wrong", "unknown", "assumed"):
        pick(page, name)
        assert [one.partition("\n")[0] for one in listed(page)] == [name]
    page.click("#functions-0")
    assert "3 bytes" in text(page, "#function .facts")
    pick(page, "wrong")
    page.click("#functions-0")
    assert "wrong: CFA (5 bytes)" in text(page, "#line-description")
    assert "Proof\nwrong: CFA (5 bytes)" in text(page, "#function .facts")


def test_each_instruction_has_its_rule_and_its_verdict(show: Callable[..., Page], tmp_path: Path) -> None:
    pytest.importorskip("capstone")
    page = show(provable.library(tmp_path))
    choose(page, "wrong")
    heads = ["Address", "Instruction", "New rule", "The code has", "Verdict"]
    assert cells(page, "#instructions .head") == heads
    start = int(text(page, "#instructions-0 .from"), 16)
    rows = [cells(page, f"#instructions-{row}") for row in range(5)]
    begin, wrong = "CFA = rsp+8, RA = *(CFA-8)", "wrong: CFA"
    assert rows == [
        [hex(start), "pushq %rbx", begin, begin, "proved"],
        [hex(start + 1), "xorl %ebx, %ebx", "rbx = *(CFA-16)", "CFA = rsp+16", wrong],
        [hex(start + 3), "callq *%rdi", "", "CFA = rsp+16, rbx = *(CFA-16)", wrong],
        [hex(start + 5), "popq %rbx", "", "CFA = rsp+16", wrong],
        [hex(start + 6), "retq", "rbx unchanged", "CFA = rsp+8, rbx unchanged", "proved"],
    ]
    marked = "(row) => document.querySelector(`#instructions-${row} .computed > *`)?.className"
    assert [page.evaluate(f"({marked})({row})") for row in range(5)] == ["", "bad", "bad", "bad", ""]
    assert page.evaluate("[...document.querySelectorAll('#rows .view .proof')].map((one) => one.innerText)") == [
        "wrong"
    ]
    choose(page, "right")
    assert cells(page, "#instructions .head") == heads
    assert cells(page, "#instructions-1")[2:] == ["CFA = rsp+16, rbx = *(CFA-16)"] * 2 + ["proved"]
    assert text(page, "#rows-0 .proof") == "proved"
    choose(page, "unknown")
    assert cells(page, "#instructions-1")[2:] == ["CFA inexpressible", "", "unknown: expression"]


def test_the_slider_and_the_instructions_move_together(show: Callable[..., Page], tmp_path: Path) -> None:
    page = show(provable.library(tmp_path))
    choose(page, "wrong")
    start = int(text(page, "#instructions-0 .from"), 16)
    page.click("#instructions-2")
    assert text(page, "#function .where").startswith(f"{start + 3:#x} (+0x3)")
    page.evaluate("document.getElementById('offset').focus()")
    page.press("Home")
    assert of_instruction(page) == hex(start)
    page.press("ArrowRight", "ArrowRight")  # into the second
    assert of_instruction(page) == hex(start + 1)
    page.evaluate(f"location.hash = '#{start + 6:#x}'")
    page.settle()
    assert of_instruction(page) == hex(start + 6)
    page.evaluate("document.querySelector('#instructions').focus()")
    page.press("ArrowUp")
    assert text(page, "#function .where").startswith(f"{start + 5:#x} (+0x5)")


@pytest.mark.parametrize("options", [(), ("-c",)])
def test_where_instructions_are_missing_a_command_prints_them(
    options: tuple[str, ...], show: Callable[..., Page], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(verdicts, "_SMALL", 0)
    page = show(provable.library(tmp_path, None, *options, name="it's made"))
    choose(page, "right")
    assert not page.evaluate("document.querySelector('#instructions').checkVisibility()")
    command = text(page, "#function p code").removeprefix("walkback ")
    assert command.endswith("right'" if options else "0x1000")
    done = subprocess.run(["bash", "-c", f"{WALKBACK} {command}"], capture_output=True, text=True, check=True)
    assert [line.split()[1] for line in done.stdout.splitlines()[2:]] == ["proved"] * 5
    choose(page, "wrong")
    assert page.evaluate("document.querySelector('#instructions').checkVisibility()")


PIXELS = """
(() => {
  const canvas = document.querySelector('canvas.line'), pen = canvas.getContext('2d');
  const probe = document.createElement('i');
  probe.style.color = 'var(--bad)';
  document.body.append(probe);
  const bad = getComputedStyle(probe).color.match(/[0-9]+/g).map(Number);
  const {data} = pen.getImageData(0, 0, canvas.width, canvas.height);
  const columns = new Set();
  for (let at = 0; at < data.length; at += 4)
    if (bad.every((part, which) => Math.abs(data[at + which] - part) < 3)) columns.add((at / 4) % canvas.width);
  return [columns.size, canvas.width];
})()
"""
"""How many columns of the canvas have the colour of what is wrong, and how many there are."""


@pytest.mark.parametrize("dark", [False, True])
def test_one_wrong_function_among_thousands_is_seen(show: Callable[..., Page], tmp_path: Path, *, dark: bool) -> None:
    many = {f"f{number}": ".p2align 6; nop; ret" for number in range(3000)}
    many["f1234"] = provable.FUNCTIONS["wrong"]
    page = show(provable.library(tmp_path, many), dark=dark)
    assert legend(page)[-2:] == ["proved", "wrong"]
    wide, whole = page.evaluate(PIXELS)
    assert 1 <= wide <= 4
    assert whole > 1000


def test_without_a_proof_the_page_has_the_reason(show: Callable[..., Page]) -> None:
    elf = several()
    elf.section(".rodata", b"x", flags=2, addr=0x9000, offset=1 << 40)
    page = show(elf)
    assert "There are no verdicts, because the proof failed: " in text(page, "#notes")
    assert "Proved by the code" not in text(page, "#tiles")
    assert legend(page) == ["function", "rows", "covered by V3"]
    assert page.evaluate("document.querySelectorAll('#instructions, #rows .proof').length") == 0


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_width_needs_scrolling_sideways(width: int, show: Callable[..., Page], tmp_path: Path) -> None:
    page = show(provable.library(tmp_path), width=width)
    choose(page, "wrong")
    assert page.sideways() == 0
    assert page.unnamed() == []
    assert len(cells(page, "#instructions-1")) == 5


def test_instructions_are_printed_as_far_as_there_is_room(show: Callable[..., Page], tmp_path: Path) -> None:
    page = show(provable.library(tmp_path, {"main": "nop;" * 40 + "ret"}))
    page.look(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert "Instructions: the first 25 of 41" in text(page, "#function")
    assert page.evaluate("document.querySelectorAll('#instructions .view .row').length") == 25
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert "the first" not in text(page, "#function")
