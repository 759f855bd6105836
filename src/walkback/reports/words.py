"""Numbers as people read them; the scripts of the pages write them in the same way."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Any

from walkback.base.text import printable
from walkback.reports.figures import Column, ColumnUnit

NONE = "\u2013"
_BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_MOST_DIGITS = 6


def in_words(value: Any, column: Column) -> str:
    """A value of a column."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if write := _WRITTEN.get(column.unit):
        return write(value)
    return printable(column.words.get(str(value), str(value)))


def fixed(value: float, digits: int) -> str:
    """A number with some digits behind the point, as scripts round: what stands in the middle goes up."""
    # With all digits that there may be.
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, Context(prec=400)):f}"


def byte_words(size: float) -> str:
    """Bytes, in the unit that suits them."""
    unit = 0
    # What would be written as 1,024 is one of the next unit.
    while abs(size) >= (1023.5 if unit else 1024) and unit < len(_BYTES) - 1:
        size, unit = size / 1024, unit + 1
    if not unit:
        return f"{size:,} {'byte' if size == 1 else 'bytes'}"
    digits = 2 if abs(size) < 9.995 else 1 if abs(size) < 99.95 else 0
    return f"{fixed(size, digits)} {_BYTES[unit]}"


def percent(share: float) -> str:
    """A share; what is not quite all or not quite nothing never looks like it."""
    part = 100 * share
    if part in {0, 100}:
        return f"{part:.0f} %"
    digits = 2 if abs(part) < 10 or abs(100 - part) < 1 else 1
    while digits < _MOST_DIGITS and float(fixed(part, digits)) in {0, 100}:
        digits += 1
    return f"{fixed(part, digits)} %"


_WRITTEN: dict[ColumnUnit, Callable[[Any], str]] = {
    ColumnUnit.COUNT: "{:,}".format,
    ColumnUnit.BYTES: byte_words,
    ColumnUnit.SHARE: percent,
    ColumnUnit.RATIO: partial(fixed, digits=3),
    ColumnUnit.ADDRESS: "{:#x}".format,
}


def printable_value(value: Any) -> Any:
    """Text that shows what it has; other values as they are."""
    return printable(value) if isinstance(value, str) else value
