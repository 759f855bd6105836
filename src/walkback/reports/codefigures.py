"""Figures about all code: how much of it unwind tables describe, which are all that SFrame can be made from."""

from __future__ import annotations

from typing import Any

from walkback.reports.figurecolumns import CONTENT, GROUPS, counts, shares, sizes, texts
from walkback.reports.figures import NAMED, Column, Drawing, Figure
from walkback.reports.words import byte_words, percent
from walkback.surveys.layout import KINDS

_MUCH, _MUCH_CODE = 0.2, 0.05
"""The share of a producer that makes a sentence of it, where such a share of all code has no information."""

_FROM = ",\n    ".join(f"least(coalesce(from_{kind}, 0), text_bytes)::HUGEINT AS from_{kind}" for kind in KINDS)
CODE = f"""code AS (
  SELECT content, machine, producer, language, coalesce(functions, 0) = 0 AS bare, text_bytes::HUGEINT AS text,
    least(coalesce(code_bytes, 0), text_bytes)::HUGEINT AS described,
    least(coalesce(covered_bytes, 0), text_bytes)::HUGEINT AS covered,
    {_FROM}
  FROM files LEFT JOIN (SELECT content, covered_bytes FROM versions WHERE version = 3) USING (content)
  WHERE outcome IN ('measured', 'without')
)"""
"""The files that were looked into, with bytes of code: all, with unwind tables, and said by version 3.

Damaged tables describe more than there is.
"""


def _code_says(rows: list[dict[str, Any]]) -> str:
    text, described = (sum(row[name] for row in rows) for name in ("text", "code"))
    if not text:
        return ""
    return (
        f"Of {byte_words(text)} of code, {percent(described / text)} has an unwind table. SFrame can be made for "
        "nothing else, and all shares of functions are shares of the functions that have one."
    )


def _code(name: str) -> Figure:
    what, column = GROUPS[name]
    return Figure(
        f"code-by-{name}",
        f"Code with unwind tables, by {what}",
        "The share of all bytes of code that has an unwind table, which is call frame information or the table that Go "
        "programs or the Linux kernel keep, and the share that version 3 describes. Gaps between functions count as "
        "code without, and so do files that have no table.",
        (
            column,
            *counts(files="Files", without="Files without any"),
            *sizes(text="Code", code="Bytes with tables"),
            *shares(described="With tables", covered="Described by version 3"),
        ),
        f"""
SELECT {name}, count(*) AS files, count(*) FILTER (bare) AS without, sum(text) AS text, sum(described) AS code,
  sum(described) / nullif(sum(text), 0) AS described, sum(covered) / nullif(sum(text), 0) AS covered
FROM code
GROUP BY {name}
ORDER BY sum(text) DESC, {name}
""",
        (CODE,),
        drawing=Drawing("bars", name, ("described", "covered"), axis="of the code"),
        says=_code_says if name == "machine" else None,
        split=True,
        shown=(name, "files", "text", "described", "covered"),
    )


def _undescribed_say(rows: list[dict[str, Any]]) -> str:
    if sum(row["undescribed"] for row in rows) < _MUCH_CODE * sum(row["text"] for row in rows):
        return ""
    shares = {row["producer"]: 0.0 for row in rows}
    for row in rows:
        shares[row["producer"]] += row["share"]
    ranked = sorted(shares.items(), key=lambda one: -one[1])
    most = [f"{percent(share)} is in files of {name}" for name, share in ranked if share >= _MUCH]
    return f"Of the code without unwind tables, {', '.join(most)}." if most else ""


_KINDS = {
    "cfi": "call frame information",
    "go": "Go's table of functions",
    "orc": "the kernel's ORC table",
    "code": "the code itself",
}
_NONE = "none"


def _sources_say(rows: list[dict[str, Any]]) -> str:
    shares = [f"{percent(row['share'])} by {_KINDS[row['source']]}" for row in rows if row["source"] != _NONE]
    return f"The code is described {', '.join(shares)}." if len(shares) > 1 else ""


SOURCES = Figure(
    "code-by-source",
    "Code by the kind of table that describes it",
    "Bytes of code that call frame information describes, and what else is known of the rest: in Go programs their own "
    "table of functions, in the Linux kernel its ORC table, and, if the survey was asked to read it, the code itself.",
    (
        Column("source", "Table", words=_KINDS | {_NONE: "no table"}),
        *counts(files="Files"),
        *sizes(code="Code"),
        *shares(share="Of all code"),
    ),
    f"""
SELECT source, count(*) FILTER (size > 0) AS files, sum(size) AS code, sum(size) / sum(sum(size)) OVER () AS share
FROM (
  SELECT unnest([{", ".join(f"'{kind}'" for kind in (*KINDS, _NONE))}]) AS source,
    unnest([{", ".join(f"from_{kind}" for kind in KINDS)}, text - described]) AS size
  FROM code
)
GROUP BY source
HAVING sum(size) > 0
ORDER BY code DESC, source
""",
    (CODE,),
    drawing=Drawing("bars", "source", ("share",), axis="of the code"),
    says=_sources_say,
)

UNDESCRIBED = Figure(
    "undescribed",
    "Code without unwind tables",
    "Bytes of code without unwind tables, by the compiler that made the files, with the file that has the "
    "most. Some of it is padding between functions.",
    (
        *texts(producer="Producer", language="Language"),
        *sizes(undescribed="Without"),
        *shares(share="Of all without"),
        *sizes(text="Code"),
        *counts(files="Files", without="Files without any"),
        *texts(file="The largest, in"),
        CONTENT,
    ),
    """
SELECT producer, language, sum(text - described) AS undescribed,
  sum(text - described) / sum(sum(text - described)) OVER () AS share, sum(text) AS text, count(*) AS files,
  count(*) FILTER (bare) AS without, first(file ORDER BY text - described DESC, file) AS file,
  first(content ORDER BY text - described DESC, file) AS content
FROM code JOIN named USING (content)
WHERE text > described
GROUP BY producer, language
ORDER BY sum(text - described) DESC, producer, language
""",
    (CODE, NAMED),
    says=_undescribed_say,
    shown=("producer", "language", "undescribed", "share", "file"),
    empty="All code has unwind tables.",
)

UNDESCRIBED_FILES = Figure(
    "undescribed-files",
    "Files with the most such code",
    "The fifty files with the most code without unwind tables.",
    (
        *texts(file="File"),
        *sizes(undescribed="Without"),
        *shares(share="Of its code"),
        *texts(machine="Architecture", producer="Producer", language="Language"),
        CONTENT,
    ),
    """
SELECT file, text - described AS undescribed, (text - described) / text AS share, machine, producer, language, content
FROM code JOIN named USING (content)
WHERE text > described
ORDER BY undescribed DESC, file
LIMIT 50
""",
    (CODE, NAMED),
    shown=("file", "undescribed", "share", "producer"),
)

CODE_FIGURES = (*map(_code, ("machine", "producer")), SOURCES, UNDESCRIBED, UNDESCRIBED_FILES)
