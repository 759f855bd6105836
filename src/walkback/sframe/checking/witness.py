"""What else says the same: what a row claims is the fault of the section only if nobody else claims it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from walkback.base.arrays import I64, Bools
from walkback.elf import ElfFile
from walkback.sframe.section import Section
from walkback.table.table import UnwindTable


class Witness(Protocol):
    """Another table of the same code."""

    name: str
    """The section that it stands in."""
    table: UnwindTable

    def agrees(self, section: Section, rows: I64) -> Bools:
        """Which of these rows of a section say what this table says, at every address that they are for."""
        ...


Witnesses = Callable[[ElfFile], Witness | None]
"""Finds that of a file."""
