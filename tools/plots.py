"""Numbers of tables in a document as bars.

`<!-- bars NAME SCALE COLUMN, ...: ROW; ... -->` names the columns and rows; the scale is `linear` or `log`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from math import log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MARKED = re.compile(r"(<!-- bars (\S+) (linear|log) ([^:]+): (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
LEFT, WIDTH, RIGHT, LINE, TOP = 284, 360, 70, 22, 26
COLOURS = ("one", "two", "three")


@dataclass(frozen=True, slots=True)
class Bars:
    """Some numbers of a table."""

    name: str
    is_log: bool
    columns: Sequence[str]
    rows: Sequence[str]
    values: Sequence[Sequence[float]]
    """For each row those of the columns. On a logarithmic scale they are points."""

    @property
    def title(self) -> str:
        """What is drawn, in words."""
        of = "by " + ", ".join(self.columns) if len(self.columns) > 1 else self.columns[0]
        return f"{of}: " + "; ".join(
            f"{row} {', '.join(f'{value:g}' for value in values)}"
            for row, values in zip(self.rows, self.values, strict=True)
        )


def plain(cell: str) -> str:
    """A cell without what makes it bold, or code."""
    return re.sub(r"[*`]", "", cell).strip()


def tables(text: str) -> Iterator[list[list[str]]]:
    """The cells of each table of a document."""
    for match in re.finditer(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = match[0].splitlines()
        yield [[plain(cell) for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]


def read(match: re.Match[str], text: str) -> Bars:
    """What a comment asks for, from the tables of its document."""
    columns, rows = (
        [part.strip() for part in match[i].replace("\n", " ").split(cut)] for i, cut in ((4, ","), (5, ";"))
    )
    found: dict[str, list[float]] = {}
    for head, *body in tables(text):
        if set(columns) <= set(head):
            for cells in body:
                if cells[0] in rows:
                    found.setdefault(cells[0], [float(cells[head.index(column)]) for column in columns])
    missing = [row for row in rows if row not in found]
    assert not missing, f"no table has {missing} with {columns}"
    return Bars(match[2], match[3] == "log", columns, rows, [found[row] for row in rows])


def drawing(bars: Bars) -> str:
    """As SVG, with colours of its own for either scheme."""
    flat = [value for values in bars.values for value in values]
    low = 10.0 ** int(log10(min(flat)) - 1) if bars.is_log else 0.0
    high = 1.0 if bars.is_log else max(*flat, 1.0)

    def place(value: float) -> float:
        part = log10(value / low) / log10(high / low) if bars.is_log else value / high
        return LEFT + WIDTH * part

    parts, y = [], TOP
    for row, values in zip(bars.rows, bars.values, strict=True):
        parts.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(row)}</text>')
        for colour, value in zip(COLOURS, values, strict=False):
            at = place(value)
            if bars.is_log:  # lengths say nothing where no scale has a beginning
                parts.append(f'<circle class="{colour}" cx="{at:.1f}" cy="{y + 11}" r="5"/>')
            else:
                parts.append(f'<rect class="{colour}" x="{LEFT}" y="{y + 3}" width="{at - LEFT:.1f}" height="16"/>')
            parts.append(f'<text x="{at + 8:.1f}" y="{y + 15}">{value:g}</text>')
            y += LINE
        y += 6 if len(values) > 1 else 0
    for number, column in enumerate(bars.columns if len(bars.columns) > 1 else ()):
        x = LEFT + 110 * number
        parts.append(f'<rect class="{COLOURS[number]}" x="{x}" y="4" width="12" height="12"/>')
        parts.append(f'<text x="{x + 17}" y="14">{escape(column)}</text>')
    for mark in (0.001, 0.01, 0.1, 1.0) if bars.is_log else (0.0, 1.0):
        if mark >= low:
            x = place(mark)
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{y}"/>')
            parts.append(f'<text x="{x:.1f}" y="{y + 14}" text-anchor="middle">{mark:g}</text>')
    width, height = LEFT + WIDTH + RIGHT, y + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(bars.title)}" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
        "<style>svg{background:#fff}text{fill:#222}line{stroke:#555;stroke-dasharray:4 3}.one{fill:#2f6fb0}"
        ".two{fill:#c0792a}.three{fill:#4d8a4d}@media(prefers-color-scheme:dark){svg{background:#181a1c}"
        "text{fill:#ddd}line{stroke:#aaa}.one{fill:#5b9bd8}.two{fill:#d99a50}.three{fill:#74b374}}</style>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )
