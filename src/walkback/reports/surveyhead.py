"""What the page of a survey begins with: what was surveyed, one verdict, and the numbers that people ask for first."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from typing import Any

from walkback.reports.figures import Answer, Column, ColumnUnit, Row
from walkback.reports.words import percent

NEWEST = 3
"""The version that the verdict is about."""
_MOST_PATHS = 3
"""More paths than these are not all in a title."""
_MOST_CODE = 0.95
"""Where less of the code has unwind tables, the verdict says that it is about the functions that have them."""

_SPOKEN = frozenset({"survey", "code-by-machine", "versions"})
"""Figures whose sentences would repeat the head."""
CHARTED = "versions"
"""The figure whose chart stands in the head."""
CHART_TITLE = "Size compared with .eh_frame and .eh_frame_hdr"
_CARDS = (
    ("survey", "described", "of the code has unwind tables, which SFrame is made from", "code-by-machine"),
    ("survey", "based", "of the functions use a frame pointer after the prologue", "frame-pointers-by-machine"),
    ("survey", "measured", "different ELF files measured", "survey"),
)
"""A column of a figure that has one row, its words, and the figure that shows more."""

Answers = Mapping[str, Answer]


def surveyed(places: Any, folder: str) -> str:
    """The paths of a survey as a title; where they are not known, the name of its folder."""
    paths = [place for place in places if isinstance(place, str)] if isinstance(places, list) else []
    if not paths:
        return f"Stack-trace tables in {folder}"
    if len(paths) <= _MOST_PATHS:
        return ", ".join(paths)
    try:
        common = os.path.commonpath(paths)
    except ValueError:
        common = "/"
    if common != "/":
        return f"{len(paths)} paths in {common}"
    return f"{', '.join(paths[: _MOST_PATHS - 1])} and {len(paths) - _MOST_PATHS + 1} more paths"


def verdict(answers: Answers) -> str:
    """What SFrame would cost and bring; files that have SFrame already are mentioned first."""
    survey = answers["survey"].objects()[0]
    newest = _newest(answers)
    files, having = survey["files"], survey["with_sframe"]
    first = ""
    if having:
        who = (
            "The file has" if files == 1 else f"{having:,} of these {files:,} files {'has' if having == 1 else 'have'}"
        )
        first = f"{who} SFrame already. "
    if not newest.get("made"):
        return f"{first}SFrame V{NEWEST} cannot be made for {'this file' if files == 1 else 'any of these files'}."
    claims = []
    if having and newest["ratio"] is not None:  # their sizes include it
        claims.append(f"take {newest['ratio']:.2f} times the bytes of .eh_frame and .eh_frame_hdr")
    elif newest["growth"] is not None:
        claims.append(f"add {percent(newest['growth'])} to {'this file' if files == 1 else 'these files'}")
    if newest["left_out"] is not None:
        whole = (survey["described"] or 0) >= _MOST_CODE
        which = f"{'its' if files == 1 else 'their'} functions" if whole else "the functions with unwind tables"
        claims.append(f"describe {percent(1 - newest['left_out'])} of {which}")
    return f"{first}SFrame V{NEWEST} would {' and '.join(claims)}." if claims else first.rstrip()


def cards(answers: Answers, shown: Container[str]) -> list[dict[str, Any]]:
    """Numbers that the verdict does not have, with the figure that shows more if it is `shown`."""
    found = []
    for name, column, words, figure in _CARDS:
        answer = answers[name]
        unit = next(one.unit for one in answer.figure.columns if one.name == column)
        value = answer.objects()[0][column]
        found.append(
            {
                "value": value,
                "unit": unit,
                "words": words.replace("files", "file") if column == "measured" and value == 1 else words,
                "figure": figure if figure in shown else None,
            }
        )
    return found


def charted(answers: Answers) -> list[Row]:
    """The rows of the chart: all versions over the same files, where that is possible."""
    answer = answers[CHARTED]
    known = [
        (row, values["among"]) for row, values in zip(answer.rows, answer.objects(), strict=True) if values["ratio"]
    ]
    same = [row for row, among in known if among == "same"]
    return same or [row for row, _ in known]


def spoken(answer: Answer) -> str:
    """The sentence of a figure below the head."""
    return "" if answer.figure.name in _SPOKEN else answer.says


def is_shown(answer: Answer, column: Column) -> bool:
    """Whether tables of the page have a column."""
    figure = answer.figure
    if column.name == "among":
        return len({row["among"] for row in answer.objects()}) > 1
    return column.unit != ColumnUnit.CONTENT and (not figure.shown or column.name in figure.shown)


def alike(splits: Sequence[Answer]) -> str:
    """A line in place of splits that have one group each."""
    values: dict[str, str] = {}
    for answer in splits:
        column = answer.figure.columns[0]
        value = str(answer.rows[0][0])
        values.setdefault(column.title.lower(), column.words.get(value, value))
    if not values:
        return ""
    *most, last = (f"{title} ({value})" for title, value in values.items())
    return f"All files counted here have the same {', '.join(most)}{' and ' if most else ''}{last}."


def _newest(answers: Answers) -> dict[str, Any]:
    rows = answers["versions"].objects()
    return next((row for row in rows if row["among"] == "all" and row["version"] == NEWEST), {})
