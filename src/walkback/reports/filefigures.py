"""Figures about single files and packages, and about what was looked at and could not be measured."""

from __future__ import annotations

from typing import Any

from walkback.reports.figurecolumns import CONTENT, counts, ratios, shares, sizes, texts
from walkback.reports.figures import ALIKE, COMPARED, NAMED, Drawing, Figure
from walkback.reports.words import byte_words
from walkback.surveys.layout import OUTCOMES

_ABOUT = (
    *counts(functions="Functions"),
    *sizes(bytes="File size"),
    *texts(machine="Architecture", producer="Producer"),
    CONTENT,
)

LEAST_CALL_FRAMES = 4096
"""Bytes of `.eh_frame` below which a file is not among the worst: there the header of a section decides."""


def _survey_says(rows: list[dict[str, Any]]) -> str:
    one = rows[0]
    return (
        f"{one['units']:,} files on disk hold {one['files']:,} different ELF files of {byte_words(one['bytes'] or 0)}; "
        f"{one['measured']:,} of them were measured."
    )


SURVEY = Figure(
    "survey",
    "Totals",
    "Files on disk that are ELF files or contain some; the ELF files in them, each counted once however many copies "
    "exist; and the totals of these.",
    (
        *counts(units="Files on disk"),
        *sizes(unit_bytes="Bytes on disk"),
        *counts(places="ELF files found", packages="Packages", files="Different ELF files"),
        *sizes(bytes="Bytes of these"),
        *counts(measured="Measured", with_sframe="With SFrame", functions="Functions", rows="Rows"),
        *sizes(text="Code", code_bytes="Code with unwind tables"),
        *shares(described="Of all code", based="CFA based on the frame pointer"),
        *sizes(call_frames="Call frames", debug_frame=".debug_frame"),
        *counts(errors="Unreadable", troubles="Not examined"),
    ),
    """
SELECT (SELECT count(*) FROM units) AS units, (SELECT sum(bytes) FROM units) AS unit_bytes,
  (SELECT count(*) FROM places) AS places, (SELECT count(DISTINCT package) FROM places) AS packages,
  count(*) AS files, sum(bytes) AS bytes, count(*) FILTER (outcome = 'measured') AS measured,
  (SELECT count(*) FROM sframe) AS with_sframe,
  sum(functions) AS functions, sum("rows") AS "rows",
  sum(text) AS text, sum(code) AS code_bytes, sum(code) / nullif(sum(text), 0) AS described,
  sum(fp_functions) / nullif(sum(functions), 0) AS based,
  sum(eh_frame::HUGEINT + eh_frame_hdr) AS call_frames, sum(debug_frame) AS debug_frame,
  count(*) FILTER (outcome = 'error') AS errors, (SELECT count(*) FROM troubles) AS troubles
FROM (
  SELECT *, CASE WHEN outcome IN ('measured', 'without') THEN text_bytes END AS text,
    least(coalesce(code_bytes, 0), text) AS code
  FROM files
)
""",
    says=_survey_says,
    single=True,
    shown=("units", "packages", "files", "bytes", "functions", "text", "call_frames", "debug_frame"),
)

OUTCOME_FILES = Figure(
    "outcomes",
    "Outcomes",
    "Each different ELF file has one outcome.",
    (
        *texts(outcome="Outcome", meaning="Meaning"),
        *counts(files="Files"),
        *sizes(bytes="Bytes"),
        *shares(share="Of all files"),
    ),
    f"""
SELECT outcome, CASE outcome
{chr(10).join(f"    WHEN '{name}' THEN '{words}'" for name, words in OUTCOMES.items())}
  END AS meaning, count(*) AS files, sum(bytes) AS bytes, count(*) / sum(count(*)) OVER () AS share
FROM files
GROUP BY outcome
ORDER BY files DESC, outcome
""",
    drawing=Drawing("bars", "outcome", ("files",), axis="files"),
    split=True,
)

PRODUCERS = Figure(
    "producers",
    "Who made the files",
    "The compiler of each file's main language, the language, and the evidence. Without evidence a file counts as "
    "unknown; a file by GCC or Clang counts as C unless something marks it as another language. Files that were not "
    "measured count too.",
    (
        *texts(producer="Producer", language="Language", evidence="Evidence"),
        *counts(files="Files"),
        *shares(share="Of all files"),
        *counts(measured="Measured", functions="Functions"),
    ),
    """
SELECT producer, language, producer_evidence AS evidence, count(*) AS files,
  count(*) / sum(count(*)) OVER () AS share, count(*) FILTER (outcome = 'measured') AS measured,
  sum(functions) AS functions
FROM files
GROUP BY producer, language, producer_evidence
ORDER BY files DESC, producer, language, evidence
""",
    shown=("producer", "language", "evidence", "files", "share"),
)

PACKAGES = Figure(
    "packages",
    "The largest packages",
    "The fifty packages with the most call frame information, and how much version 3 would add to their ELF files. A "
    "file in several packages counts in each.",
    (
        *texts(package="Package"),
        *counts(files="Files"),
        *sizes(bytes="ELF files", call_frames="Call frames"),
        *ratios(v2="Version 2", v3="Version 3"),
        *shares(growth="Growth by version 3"),
        *counts(left_out="Left out by version 3"),
    ),
    """
SELECT package, count(*) AS files, sum(file_bytes) AS bytes, sum(call_frames) AS call_frames,
  sum(v2) / sum(call_frames) AS v2, sum(v3) / sum(call_frames) AS v3, sum(v3) / sum(file_bytes) AS growth,
  sum(functions - covered) AS left_out
FROM (SELECT DISTINCT package, content FROM places WHERE package IS NOT NULL)
  JOIN alike USING (content) JOIN (SELECT content, covered FROM versions WHERE version = 3) USING (content)
GROUP BY package
ORDER BY sum(call_frames) DESC, package
LIMIT 50
""",
    (COMPARED, ALIKE),
    shown=("package", "files", "call_frames", "v3", "growth"),
    empty="No file came from a package.",
)

_RATIOS = """ratios AS (
  SELECT content, any_value(call_frames) AS call_frames, any_value(file_bytes) AS bytes,
    max(sframe / call_frames) FILTER (version = 2) AS v2, max(sframe / call_frames) FILTER (version = 3) AS v3
  FROM compared
  GROUP BY content
)"""
LARGEST = Figure(
    "largest",
    "The largest files",
    "The fifty files with the most call frame information in .eh_frame and .eh_frame_hdr.",
    (*texts(file="File"), *sizes(call_frames="Call frames"), *ratios(v2="Version 2", v3="Version 3"), *_ABOUT),
    """
SELECT file, call_frames, v2, v3, functions, ratios.bytes AS bytes, machine, producer, content
FROM ratios JOIN named USING (content) JOIN files USING (content)
ORDER BY call_frames DESC, file
LIMIT 50
""",
    (COMPARED, _RATIOS, NAMED),
    shown=("file", "call_frames", "v2", "v3", "producer"),
)

WORST_RATIO = Figure(
    "worst-ratio",
    "The files with the highest ratio",
    f"The fifty files in which version 3 is largest for each byte of .eh_frame and .eh_frame_hdr, among files with at "
    f"least {LEAST_CALL_FRAMES:,} bytes of these: in smaller files the header of the section decides.",
    (*texts(file="File"), *ratios(v3="Version 3", v2="Version 2"), *sizes(call_frames="Call frames"), *_ABOUT),
    f"""
SELECT file, v3, v2, call_frames, functions, ratios.bytes AS bytes, machine, producer, content
FROM ratios JOIN named USING (content) JOIN files USING (content)
WHERE call_frames >= {LEAST_CALL_FRAMES} AND v3 IS NOT NULL
ORDER BY v3 DESC, file
LIMIT 50
""",
    (COMPARED, _RATIOS, NAMED),
    shown=("file", "v3", "v2", "call_frames", "producer"),
    empty=f"No file has {LEAST_CALL_FRAMES:,} bytes of call frames.",
)

WORST_COVERAGE = Figure(
    "worst-coverage",
    "The files with the most functions left out",
    "The fifty files in which version 3 leaves out the most functions.",
    (
        *texts(file="File"),
        *counts(left_out="Left out"),
        *shares(share="Of the functions", code="Of the code"),
        *counts(functions="Functions"),
        *texts(machine="Architecture", producer="Producer"),
        CONTENT,
    ),
    """
SELECT file, files.functions - covered AS left_out, (files.functions - covered) / files.functions AS share,
  (code_bytes - covered_bytes) / nullif(code_bytes, 0) AS code, files.functions AS functions, machine, producer, content
FROM files JOIN versions USING (content) JOIN named USING (content)
WHERE version = 3 AND impossible IS NULL AND covered < files.functions
ORDER BY left_out DESC, file
LIMIT 50
""",
    (NAMED,),
    shown=("file", "left_out", "share", "producer"),
    empty="Version 3 leaves out no function.",
)

UNPROVED = Figure(
    "unproved",
    "Sections that do not match their source",
    "Files and versions whose section does not describe every byte of code as the call frame information does. There "
    "should be none.",
    (*texts(file="File", machine="Architecture", version="Version"), CONTENT),
    """
SELECT file, machine, version, content
FROM versions JOIN files USING (content) JOIN named USING (content)
WHERE NOT proved
ORDER BY file, version
LIMIT 200
""",
    (NAMED,),
    empty="Every section matches its source.",
)

IMPOSSIBLE = Figure(
    "impossible",
    "Versions that cannot be made",
    "Files for which a version cannot be made at all, by reason.",
    (
        *texts(version="Version", machine="Architecture", why="Why"),
        *counts(files="Files"),
        *texts(file="Example"),
        CONTENT,
    ),
    """
SELECT version, machine, impossible AS why, count(*) AS files, min(file) AS file, arg_min(content, file) AS content
FROM versions JOIN files USING (content) JOIN named USING (content)
WHERE impossible IS NOT NULL
GROUP BY version, machine, impossible
ORDER BY version, files DESC, machine, why
LIMIT 200
""",
    (NAMED,),
    empty="Every version can be made for every file.",
)

ERRORS = Figure(
    "errors",
    "ELF files that could not be read",
    "The first two hundred, by name.",
    (*texts(file="File"), *sizes(bytes="Bytes"), *texts(error="Why"), CONTENT),
    """
SELECT file, bytes, error, content
FROM files JOIN named USING (content)
WHERE outcome = 'error'
ORDER BY file
LIMIT 200
""",
    (NAMED,),
    empty="Every file could be read.",
)

TROUBLES = Figure(
    "troubles",
    "What could not be examined",
    "Files, folders and archives: the first two hundred, by name. Of a truncated archive, everything before the damage "
    "was measured.",
    (*texts(path="Path", member="Member", what="Kind", message="Message"),),
    """
SELECT path, member, what, message
FROM troubles
ORDER BY path, member NULLS FIRST, what, message
LIMIT 200
""",
    empty="Everything could be examined.",
)


FILE_FIGURES = (LARGEST, WORST_RATIO, WORST_COVERAGE, PACKAGES)
SURVEY_FIGURES = (SURVEY, OUTCOME_FILES, PRODUCERS, IMPOSSIBLE, UNPROVED, ERRORS, TROUBLES)
