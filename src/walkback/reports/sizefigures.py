"""Figures about bytes: what each version takes beside `.eh_frame` and `.eh_frame_hdr` of the same files."""

from __future__ import annotations

from typing import Any

from walkback.reports.figurecolumns import GROUPS, SPREAD, VERSION, counts, ratios, shares, sizes
from walkback.reports.figures import ALIKE, COMPARED, Column, Drawing, Figure
from walkback.reports.words import byte_words, percent
from walkback.surveys.layout import WHAT_IFS

_AXIS = "times the bytes of .eh_frame and .eh_frame_hdr"

_SIZE_CLASS = """CASE
    WHEN call_frames < 1024 THEN 'less than 1 KiB'
    WHEN call_frames < 4096 THEN '1 to 4 KiB'
    WHEN call_frames < 16384 THEN '4 to 16 KiB'
    WHEN call_frames < 65536 THEN '16 to 64 KiB'
    WHEN call_frames < 262144 THEN '64 to 256 KiB'
    WHEN call_frames < 1048576 THEN '256 KiB to 1 MiB'
    ELSE '1 MiB and more'
  END"""

_PART_WORDS = {
    "header": "header",
    "index": "index of functions",
    "padding": "padding in the index",
    "attributes": "attributes of functions",
    "starts": "row starts",
    "info": "info bytes of rows",
    "words": "words of rows",
    "other": "unused",
}
_WHAT_IF_WORDS = {
    "compact_index": "row counts of 16 bits, no padding",
    "slim_header": "slim header for linking",
    "section_per_text": "a section for each text section",
    "section_per_text_slim": "each text section, with slim headers",
    "section_per_function": "a section for each function",
    "section_per_function_slim": "each function, with slim headers",
    "shared_rows": "rows shared between functions",
    "palette": "palette of rules",
    "stack_deltas": "palette of rules, without functions",
}
_ADDED_WORDS = {
    "numbered": "Sets of registers numbered",
    "rows": "Registers in rows",
    "section": "version 3 as it is",
    "exceptions": "exceptions",
    "added": "additional rows",
    "registers": "other registers",
}


def _versions_say(rows: list[dict[str, Any]]) -> str:
    last = [row for row in rows if row["among"] == "all"][-1]
    if last["ratio"] is None:
        return ""
    sentence = (
        f"SFrame version {last['version']} would take {byte_words(last['sframe'])}, {last['ratio']:.3f} times the "
        f"bytes of .eh_frame and .eh_frame_hdr, and leave out {percent(last['left_out'] or 0)} of the functions that "
        f"have unwind tables. Added to those files, it would make them {percent(last['growth'])} larger."
    )
    alike = [row for row in rows if row["among"] == "same" and row["ratio"]]
    same = ", ".join(f"{row['ratio']:.3f} in version {row['version']}" for row in alike)
    if same:
        sentence += f" Over the files that every version can be made for, the ratios are {same}."
    return sentence


VERSIONS = Figure(
    "versions",
    "What each version takes",
    "The size of all sections of a version, compared with .eh_frame and .eh_frame_hdr (the call frames) of the same "
    "files. Version 1 does not support every architecture: compare versions over the files that all of them can be "
    "made for. Growth is how much larger the files become with the section added. Left out is the share of functions "
    "that the version cannot describe; it includes files that have only .debug_frame, whose bytes are not compared.",
    (
        Column(
            "among",
            "Among",
            words={
                "all": "All files that the version supports",
                "same": "Files that every version supports",
            },
        ),
        VERSION,
        *counts(files="Files compared", impossible="Cannot be made", unproved="Not proved"),
        *sizes(sframe="SFrame", call_frames="Call frames"),
        *ratios(ratio="Ratio"),
        *SPREAD,
        *shares(growth="Growth"),
        *counts(made="Files counted", functions="Functions"),
        *shares(left_out="Left out", code_left_out="Code left out"),
    ),
    """
SELECT among, version, coalesce(files, 0) AS files, impossible, unproved, sframe, call_frames,
  sframe / call_frames AS ratio, low, median, high, sframe / file_bytes AS growth,
  made, functions, (functions - covered) / nullif(functions, 0) AS left_out,
  (code_bytes - covered_bytes) / nullif(code_bytes, 0) AS code_left_out
FROM covers LEFT JOIN sizes USING (among, version)
ORDER BY among DESC, version
""",
    (
        COMPARED,
        """chosen AS (
  SELECT 'all' AS among, content, version FROM versions
  UNION ALL
  SELECT 'same', content, version FROM versions
  WHERE content IN (SELECT content FROM versions GROUP BY content HAVING count(impossible) = 0)
    AND (SELECT count(impossible) FROM versions) > 0
)""",
        """sizes AS (
  SELECT among, version, count(*) AS files, sum(sframe) AS sframe, sum(call_frames) AS call_frames,
    sum(file_bytes) AS file_bytes, quantile_cont(sframe / call_frames, 0.1) FILTER (functions > 0) AS low,
    median(sframe / call_frames) FILTER (functions > 0) AS median,
    quantile_cont(sframe / call_frames, 0.9) FILTER (functions > 0) AS high
  FROM chosen JOIN compared USING (content, version)
  GROUP BY among, version
)""",
        """covers AS (
  SELECT among, version, count(impossible) AS impossible, count(*) FILTER (NOT proved) AS unproved,
    count(*) FILTER (impossible IS NULL) AS made, sum(files.functions) FILTER (impossible IS NULL) AS functions,
    sum(covered) AS covered,
    sum(code_bytes) FILTER (impossible IS NULL) AS code_bytes, sum(covered_bytes) AS covered_bytes
  FROM chosen JOIN versions USING (content, version) JOIN files USING (content)
  GROUP BY among, version
)""",
    ),
    drawing=Drawing("bars", "version", ("ratio",), panel="among", axis=_AXIS, one=True),
    says=_versions_say,
    shown=("among", "version", "files", "sframe", "ratio", "growth", "left_out"),
)


def _distribution_says(rows: list[dict[str, Any]]) -> str:
    last = [row for row in rows if row["version"] == rows[-1]["version"]]
    total, larger = sum(row["files"] for row in last), sum(row["files"] for row in last if row["ratio"] >= 1)
    larger_than = f"a version {last[0]['version']} that is larger than .eh_frame and .eh_frame_hdr."
    return f"{percent(larger / total)} of the files have {larger_than}" if larger else f"No file has {larger_than}"


DISTRIBUTION = Figure(
    "distribution",
    "Ratio by file",
    "Files by the size of a version's section, divided by the size of .eh_frame and .eh_frame_hdr in the same file. "
    "Bins are 0.05 wide; the last one holds everything from 2 on. Files without functions do not count.",
    (VERSION, *ratios(ratio="Ratio from"), *counts(files="Files"), *shares(share="Of all files")),
    """
SELECT version, least(floor(20 * sframe::DOUBLE / call_frames), 40) / 20 AS ratio, count(*) AS files,
  count(*) / sum(count(*)) OVER (PARTITION BY version) AS share
FROM compared
WHERE functions > 0
GROUP BY version, ratio
ORDER BY version, ratio
""",
    (COMPARED,),
    drawing=Drawing("histogram", "ratio", ("share",), panel="version", axis=_AXIS, one=True),
    says=_distribution_says,
)


def _by(name: str, title: str, what: str, column: Column, expression: str, order: str, note: str = "") -> Figure:
    alias = expression if expression == column.name else f"{expression} AS {column.name}"
    return Figure(
        f"size-by-{name}",
        title,
        f"The size of all sections of a version, divided by the size of .eh_frame and .eh_frame_hdr, by {what}. All "
        f"versions are counted over the same files, those that versions 2 and 3 can be made for; version 1 is shown "
        f"where it can be made for all of these. The pale line spans four fifths of the files in version 3, without "
        f"the tenth at either end.{note}",
        (
            column,
            *counts(files="Files"),
            *sizes(call_frames="Call frames"),
            *ratios(v1="Version 1", v2="Version 2", v3="Version 3"),
            *SPREAD,
        ),
        f"""
SELECT {alias},
  count(*) AS files,
  sum(call_frames) AS call_frames,
  CASE WHEN count(v1) = count(*) THEN sum(v1) / sum(call_frames) END AS v1,
  sum(v2) / sum(call_frames) AS v2,
  sum(v3) / sum(call_frames) AS v3,
  quantile_cont(v3 / call_frames, 0.1) FILTER (functions > 0) AS low,
  median(v3 / call_frames) FILTER (functions > 0) AS median,
  quantile_cont(v3 / call_frames, 0.9) FILTER (functions > 0) AS high
FROM alike
GROUP BY {column.name}
ORDER BY {order}
""",
        (COMPARED, ALIKE),
        drawing=Drawing("dots", column.name, ("v1", "v2", "v3"), span=("low", "high"), axis=_AXIS, one=True),
        split=True,
        shown=(column.name, "files", "v1", "v2", "v3"),
    )


_BY = tuple(
    _by(name, f"Size by {what}", what, column, name, f"sum(call_frames) DESC, {name}")
    for name, (what, column) in GROUPS.items()
)
_BY_SIZE = _by(
    "size",
    "Size by the size of call frames",
    "the size of .eh_frame and .eh_frame_hdr in a file",
    Column("size", "Call frames of a file"),
    _SIZE_CLASS,
    "min(call_frames)",
    " In small files the header of a section weighs more.",
)

PARTS = Figure(
    "parts",
    "What the bytes are used for",
    "All sections of a version, by the kind of data.",
    (VERSION, Column("part", "Part", words=_PART_WORDS), *sizes(bytes="Bytes"), *shares(share="Of the section")),
    """
SELECT version, part, bytes, bytes / sum(bytes) OVER (PARTITION BY version) AS share
FROM sums UNPIVOT (bytes FOR part IN (header, "index", padding, attributes, starts, info, words, other))
WHERE bytes > 0
ORDER BY version,
  list_position(['header', 'index', 'padding', 'attributes', 'starts', 'info', 'words', 'other'], part)
""",
    (
        """sums AS (
  SELECT version, sum(header) AS header, sum("index") AS "index", sum(padding) AS padding,
    sum(attributes) AS attributes, sum(starts) AS starts, sum(info) AS info, sum(words) AS words, sum(other) AS other
  FROM versions
  WHERE impossible IS NULL
  GROUP BY version
)""",
    ),
    drawing=Drawing("stack", "part", ("share",), panel="version", axis="of the section"),
)

_SUMS = ",\n    ".join(f"sum({name}) AS {name}" for name in WHAT_IFS)
WHAT_IF = Figure(
    "what-if",
    "What other formats would take",
    "The size of all sections if the format were changed, divided by the size of the version as it is. A section for "
    "each function or text section counts its header and its ELF section header too. The documentation of walkback "
    "size lists the assumptions.",
    (
        VERSION,
        Column("change", "What if", words=_WHAT_IF_WORDS),
        *sizes(bytes="Bytes"),
        *ratios(against="Of the version", ratio="Of call frames"),
    ),
    f"""
SELECT version, change, bytes, bytes / sframe AS against, bytes / call_frames AS ratio
FROM sums UNPIVOT (bytes FOR change IN ({", ".join(WHAT_IFS)}))
ORDER BY version DESC, bytes, change
""",
    (
        COMPARED,
        f"""sums AS (
  SELECT version, sum(sframe) AS sframe, sum(call_frames) AS call_frames,
    {_SUMS}
  FROM compared JOIN versions USING (content, version)
  GROUP BY version
)""",
    ),
    drawing=Drawing("bars", "change", ("against",), panel="version", axis="times the version as it is", one=True),
)


def _replacement_says(rows: list[dict[str, Any]]) -> str:
    in_rows, numbered = (sum(row["ratio"] or 0 for row in rows if row["form"] == form) for form in ("rows", "numbered"))
    return (
        f"A replacement would take {in_rows:.3f} times the bytes of .eh_frame and .eh_frame_hdr, or {numbered:.3f} "
        "with numbered sets."
    )


REPLACEMENT = Figure(
    "replacement",
    "What it would take to replace .eh_frame",
    "SFrame finds callers, and nothing else. To replace .eh_frame it would also have to describe how exceptions are "
    "handled and where other registers are saved: either in each row that changes them, or as the number of a set of "
    "rules.",
    (
        Column("form", "Form", words=_ADDED_WORDS),
        Column("part", "Part", words=_ADDED_WORDS),
        *sizes(bytes="Bytes"),
        *ratios(ratio="Of call frames"),
    ),
    """
SELECT form, part, bytes, bytes / call_frames AS ratio
FROM total, LATERAL (VALUES
  (1, 'rows', 'section', sframe), (2, 'rows', 'exceptions', exceptions),
  (3, 'rows', 'added', added), (4, 'rows', 'registers', in_rows),
  (5, 'numbered', 'section', sframe), (6, 'numbered', 'exceptions', exceptions),
  (7, 'numbered', 'added', added), (8, 'numbered', 'registers', in_sets)
) AS parts(place, form, part, bytes)
WHERE call_frames > 0
ORDER BY place
""",
    (
        COMPARED,
        """total AS (
  SELECT sum(call_frames) AS call_frames, sum(sframe) AS sframe, sum(exception_bytes) AS exceptions,
    sum(added_row_bytes) AS added, sum(register_bytes) AS in_rows, sum(numbered_bytes) AS in_sets
  FROM compared JOIN files USING (content)
  WHERE version = 3
)""",
    ),
    drawing=Drawing("stack", "part", ("ratio",), panel="form", axis=_AXIS, one=True),
    says=_replacement_says,
)

SIZE_FIGURES = (VERSIONS, DISTRIBUTION, *_BY, _BY_SIZE, PARTS, WHAT_IF, REPLACEMENT)
