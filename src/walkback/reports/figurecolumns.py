"""The columns of figures: several of one unit at once, and those that many figures have."""

from __future__ import annotations

from functools import partial

from walkback.reports.figures import Column, ColumnUnit


def _of_unit(unit: ColumnUnit, /, **titles: str) -> tuple[Column, ...]:
    return tuple(Column(name, title, unit) for name, title in titles.items())


texts = partial(_of_unit, ColumnUnit.TEXT)
counts = partial(_of_unit, ColumnUnit.COUNT)
sizes = partial(_of_unit, ColumnUnit.BYTES)
shares = partial(_of_unit, ColumnUnit.SHARE)
ratios = partial(_of_unit, ColumnUnit.RATIO)
addresses = partial(_of_unit, ColumnUnit.ADDRESS)
"""Columns of one unit, each as `name="Title"`."""

GROUPS = {
    "machine": ("architecture", Column("machine", "Architecture")),
    "producer": ("producer", Column("producer", "Producer")),
    "language": ("language", Column("language", "Language")),
    "kind": ("kind of file", Column("kind", "Kind")),
}
"""What files are grouped by: in words, and as a column."""
CONTENT = Column("content", "Content", ColumnUnit.CONTENT)
VERSION = Column("version", "Version", words={"1": "Version 1", "2": "Version 2", "3": "Version 3"})
EXAMPLE = (*texts(file="Example, in", name="Function", section="Section"), *addresses(address="At"))
SPREAD = ratios(low="Lowest tenth", median="Median", high="Highest tenth")
