"""Tables in Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MARKS = re.compile(r"[\\*_<>\[\]](?=[^`]*(?:`[^`]*`[^`]*)*$)")
"""What Markdown would take for its own, outside of code."""


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return MARKS.sub(r"\\\g<0>", text).replace("|", r"\|")


def table(*heads: str, rows: Iterable[Iterable[str]]) -> str:
    """A table; its cells are Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
