"""The records in what was read of events, in columns."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

from walkback.base.arrays import I64, U16, U32
from walkback.capture.perfdata._records import scan

_ROWS = 1 << 12


class Rows(NamedTuple):
    """Some records: kinds, flags, where each is, and its bytes."""

    kind: U32
    misc: U16
    offset: I64
    size: I64


def scanned(data: bytearray | memoryview) -> Iterator[Rows]:
    """All records of this machine, some thousands at a time."""
    view, position = memoryview(data), 0
    while position < len(data):
        kind, misc, offset, size, position, _ = scan(view, position, len(data), sys.byteorder == "big", _ROWS)
        yield Rows(kind, misc, offset, size)
