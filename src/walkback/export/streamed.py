"""What the formats that write each sample have in common: text made once for each distinct frame, and then copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

import numpy as np

from walkback.base.arrays import I64, U64, Numbers, ranked
from walkback.base.render import LineForm, render
from walkback.stacks.distinct import Distinct

_MOST_TEXTS = 1 << 18
"""The number of texts that are kept; past that they are made anew, so that memory stays bounded."""


class Texts:
    """The texts of distinct records."""

    def __init__(self, make: Callable[[U64], Iterable[bytes]]) -> None:
        """`make` gives the text of each row of an array of distinct records."""
        self._make = make
        self._distinct = Distinct()
        self._texts: list[bytes] = []

    def choose(self, *columns: Numbers) -> tuple[Sequence[bytes], I64]:
        """The texts for the records in these columns, each once, and the number of each record's text among them."""
        if len(self._distinct) > _MOST_TEXTS:
            self._distinct, self._texts = Distinct(), []
        if not len(columns[0]):
            return [], np.zeros(0, np.int64)
        records = np.empty((len(columns[0]), len(columns)), np.uint64)
        for number, column in enumerate(columns):
            records[:, number] = column
        numbers = self._distinct.add_records(records)
        self._texts += self._make(self._distinct.table[len(self._texts) :])
        used = np.zeros(len(self._texts), np.bool_)
        used[numbers] = True
        place = np.cumsum(used, dtype=np.int64) - 1
        return [self._texts[number] for number in np.flatnonzero(used).tolist()], place[numbers]


def formatted(pattern: str, column: Numbers) -> tuple[list[bytes], I64]:
    """A column as text, by an old-style pattern, worked out once a distinct value."""
    values, numbers = ranked(column)
    return [(pattern % value).encode() for value in values.tolist()], numbers.astype(np.int64)


def write_items(
    out: BinaryIO, head: LineForm, row: LineForm, foot: LineForm, first: I64, *, between: bytes = b""
) -> None:
    """Write a head line, the rows, and a foot line for each sample."""
    first = np.ascontiguousarray(first, np.int64)
    out.writelines(render(head, row, foot, first[:-1].copy(), np.diff(first), between))
