"""What is known of the functions of a file before its code is walked through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from walkback.base.arrays import I64, U8, U16, U64, are_among
from walkback.proof._scan import Scan
from walkback.proof.ranges import Ranges, come_back
from walkback.proof.values import Way


def _nothing() -> U64:
    return np.zeros(0, np.uint64)


@dataclass(slots=True)
class KnownCode:
    """An element a function, in the order of addresses, and what the code says of its data."""

    functions: U64 = field(default_factory=_nothing)
    """The addresses of functions."""
    silent: U8 = field(default_factory=lambda: np.zeros(0, np.uint8))
    """Which of them do not come back."""
    written: U64 = field(default_factory=_nothing)
    """The registers that each of the others changes, as bits."""
    kept: U64 = field(default_factory=_nothing)
    """Those that it stores or copies."""
    size: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    """Its bytes."""
    named: U64 = field(default_factory=_nothing)
    """The addresses of data that the code names."""
    targets: U8 = field(default_factory=lambda: np.zeros(0, np.uint8))
    """A bit for each byte of the image that is jumped to."""
    brief: U16 = field(default_factory=lambda: np.zeros(0, np.uint16))
    """For each two bytes of the image the instruction `in_brief` that begins there."""


def known_code(ranges: Ranges, seen: Scan, silent_by_name: Sequence[int]) -> KnownCode:
    """What a first look at the ranges of a table has seen, and which functions are known by their names."""
    last = seen.ways[seen.ways[:, 2] == Way.LAST_CALL, 1]
    outside = last[~are_among(last, ranges.start)]
    may = come_back(ranges, seen.returns, seen.ways, silent_by_name)
    silent = np.unique(np.concatenate((np.array(silent_by_name, np.uint64), ranges.start[~may], outside)))
    back = may & ~are_among(ranges.start, silent)
    functions = np.concatenate((silent, ranges.start[back]))
    order = np.argsort(functions, kind="stable")
    none = np.zeros(len(silent), np.uint64)
    return KnownCode(
        functions[order],
        (order < len(silent)).astype(np.uint8),
        np.concatenate((none, seen.written[back]))[order],
        np.concatenate((none, seen.kept[back]))[order],
        np.concatenate((none.astype(np.int64), ranges.size[back]))[order],
        seen.named,
        seen.targets,
        seen.brief,
    )
