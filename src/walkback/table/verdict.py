"""What a comparison of two tables comes to."""

from __future__ import annotations

from enum import IntEnum


class Verdict(IntEnum):
    """What holds between two tables in a stretch of code.

    >>> [section] = walkback.ElfFile("a.out").sframe
    >>> comparison = walkback.table.compare(section.table, section.table)
    >>> comparison.code_bytes(walkback.table.Verdict.EQUAL)
    128
    """

    NEITHER = 0
    """Neither has a rule."""
    EQUAL = 1
    DIFFERENT = 2
    ONLY_ONE = 3
    """Only the first has a rule."""
    ONLY_OTHER = 4
