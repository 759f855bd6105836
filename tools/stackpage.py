"""The steps of `stacksteps` as a part of a page: a table of all, and each with its stack and what finds the caller.

Without scripts all steps stand below each other; with `stackpage.js` one is shown at a time.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stacksteps import Step

SLOT = 8
HIGHEST = SLOT
"""How much of the caller's frame is drawn, in bytes."""
LEFT, COLUMN, ROW, TOP, WIDTH = 62, 156, 32, 26, 320
TITLES = {"cfa": "CFA", "ra": "RA", "fp": "rbp"}
HERE = Path(__file__)


def fragment(name: str, steps: Sequence[Step]) -> str:
    """One function."""
    lowest = min(step.depth for step in steps)
    shown = "\n".join(_section(name, number, len(steps), step, lowest) for number, step in enumerate(steps))
    return (
        f'<div class="stack-steps" role="group" aria-label="{escape(name)}, instruction by instruction">\n'
        f"{_table(name, steps)}\n{shown}\n</div>\n"
    )


def head() -> str:
    """What all fragments of a page share."""
    return f"<style>\n{HERE.with_suffix('.css').read_text()}</style>\n"


def foot() -> str:
    return f'<script type="module">\n{HERE.with_suffix(".js").read_text()}</script>\n'


def _table(name: str, steps: Sequence[Step]) -> str:
    """All instructions, with what changes in each table."""
    headings = "".join(
        f'<th scope="col">{text}</th>'
        for text in ("Offset", "Instruction", "<code>rbp</code> leads to", "<code>.eh_frame</code>", "SFrame row")
    )
    rows = []
    before: Step | None = None
    for number, step in enumerate(steps):
        changed = {word: place for word, place in step.cfi.items() if before is None or before.cfi[word] != place}
        row = step.row.hex(" ") if before is None or before.row != step.row else ""
        leads = "this frame" if step.linked else "the caller\N{RIGHT SINGLE QUOTATION MARK}s"
        cells = (_code(step.text), leads, _code(_listed(changed)), _code(row))
        rows.append(
            f'<tr><th scope="row"><a href="#{name}-{number}">+{step.offset}</a></th>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
        )
        before = step
    body = "\n".join(rows)
    return (
        f'<div class="stack-table" role="region" tabindex="0" aria-label="The instructions of {name}">\n'
        f'<table aria-label="{name}">\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>'
    )


def _section(name: str, number: int, count: int, step: Step, lowest: int) -> str:
    """One step."""
    place = f"{name}-{number}"
    code = f"+{step.offset}: {step.text}"
    answers = "\n".join(
        f'<div><dt>{title} <span class="{found.replace(" ", "-")}">{found}</span></dt><dd>{words}</dd></div>'
        for title, found, words in _answers(step)
    )
    return (
        f'<section class="stack-step" id="{place}" aria-labelledby="{place}-name">\n'
        f'<h3 id="{place}-name">Step {number + 1} of {count}, before <code>{escape(code)}</code></h3>\n'
        f'<div class="stack-both">\n{_drawing(step, lowest)}\n<dl>\n{answers}\n</dl>\n</div>\n</section>'
    )


def _answers(step: Step) -> Iterator[tuple[str, str, str]]:
    """How each way finds the caller: its name, whether it does, and how."""
    if step.linked:
        yield "Frame pointer", "finds the caller", "<code>RA = *(rbp+8)</code>, and the CFA is <code>rbp+16</code>."
    else:
        text = "<code>rbp</code> holds the caller\N{RIGHT SINGLE QUOTATION MARK}s value: it leads past the caller."
        yield "Frame pointer", "skips the caller", text
    yield "Call frame information", "finds the caller", f"{_code(_listed(step.cfi))}"
    yield "SFrame", "finds the caller", f"{_code(step.sframe)} from the row {_code(step.row.hex(' '))}"


def _listed(rules: Mapping[str, str]) -> str:
    """Rules with registers by their names, without those of registers that are unchanged."""
    return ", ".join(f"{TITLES.get(word, word)} = {place}" for word, place in rules.items() if place != "unchanged")


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>" if text else ""


def _drawing(step: Step, lowest: int) -> str:
    """The stack, higher addresses above."""
    parts = [_text(LEFT + COLUMN / 2, 14, "higher addresses", "middle")]
    for place in range(HIGHEST - SLOT, lowest - 1, -SLOT):
        kind, text = _held(step, place)
        y = _y(place + SLOT)
        parts.append(f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{COLUMN}" height="{ROW}"/>')
        parts.append(_text(LEFT + COLUMN / 2, y + ROW / 2 + 4, text, "middle"))
        if place < 0:
            parts.append(_text(LEFT - 8, y + ROW / 2 + 4, _place(place), "end"))
    for place, names in _pointers(step).items():
        y, x = _y(place), LEFT + COLUMN
        parts.append(f'<path class="pointer" d="M{LEFT} {y}H{x + 26}M{x + 2} {y}l9 -4.5v9z"/>')
        parts.append(_text(x + 30, y + 4, names))
    if step.fp is None:
        parts.append(_text(LEFT + COLUMN + 8, 14, "\N{UPWARDS ARROW} rbp"))
    height = _y(lowest) + 12
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(_words(step))}">\n'
        + "\n".join(parts)
        + "\n</svg>"
    )


def _y(place: int) -> int:
    """Where an address is in the drawing."""
    return TOP + (HIGHEST - place) // SLOT * ROW


def _held(step: Step, place: int) -> tuple[str, str]:
    """What is at a place of the stack."""
    if place >= 0:
        return "caller", "frame of the caller"
    register = step.slots.get(place)
    if register is None:
        return ("free", "") if place < step.depth else ("local", "locals or padding")
    text = "return address" if register == "rip" else f"caller\N{RIGHT SINGLE QUOTATION MARK}s {register}"
    return ("free", f"{text}, released") if place < step.depth else ("saved", text)


def _place(offset: int) -> str:
    return f"CFA\N{MINUS SIGN}{-offset}" if offset else "CFA"


def _pointers(step: Step) -> dict[int, str]:
    """The names of what points to a place."""
    found: dict[int, list[str]] = {}
    for name, place in (("CFA", 0), ("rsp", step.depth), ("rbp", step.fp)):
        if place is not None:
            found.setdefault(place, []).append(name)
    return {place: " = ".join(names) for place, names in found.items()}


def _words(step: Step) -> str:
    """The drawing for those who do not see it."""
    places = range(-SLOT, step.depth - 1, -SLOT)
    held = "; ".join(f"at {_place(place)} {_held(step, place)[1]}" for place in places)
    fp = "in the frame of the caller or above it" if step.fp is None else _place(step.fp)
    return f"The stack: {held}. rsp is {_place(step.depth)}, rbp is {fp}."


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>' if words else ""
