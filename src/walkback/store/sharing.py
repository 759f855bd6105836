"""How the work on blocks is shared out between processes."""

from __future__ import annotations

import shutil
from pathlib import Path

from walkback.segments.database import memory
from walkback.store.parts import Block, Rollup

PORTION = 1_000_000
"""The cost of what is worth sending to a process."""
_ROWS_OF_A_BLOCK = 10_000
"""A small block takes as long as this many rows of a large one."""
_MOST_ROWS = 1 << 40
"""A description may say anything."""
_BYTES_OF_A_ROW = 64
"""Of memory, where rows are read and written again."""


def cost(part: Block | Rollup) -> int:
    """Of reading it: its rows, and those that would take as long as opening it."""
    return _ROWS_OF_A_BLOCK + min(part.rows, _MOST_ROWS)


def at_once(most: int) -> int:
    """How many processes may work on parts whose rows they hold, where this is the most that one has."""
    return max(memory() // 2 // (_BYTES_OF_A_ROW * max(most, 1)), 1)


def clear(place: Path) -> None:
    """Take away what a process that was killed had begun to write into a new folder."""
    shutil.rmtree(place, ignore_errors=True)
