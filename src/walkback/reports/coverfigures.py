"""Figures about what versions cannot say, about frame pointers, and about the SFrame that files have."""

from __future__ import annotations

from typing import Any

from walkback.reports.figurecolumns import CONTENT, EXAMPLE, GROUPS, VERSION, counts, shares, sizes, texts
from walkback.reports.figures import NAMED, Drawing, Figure
from walkback.reports.words import percent
from walkback.sframe.checking.codes import Severity


def _coverage(name: str) -> Figure:
    what, column = GROUPS[name]
    return Figure(
        f"coverage-by-{name}",
        f"Left out, by {what}",
        "The share of functions that each version cannot describe, among functions with unwind tables. All "
        "versions are counted over the same files, those that versions 2 and 3 can be made for; version 1 is shown "
        "where it can be made for all of these.",
        (
            column,
            *counts(files="Files", functions="Functions"),
            *shares(v1="Version 1", v2="Version 2", v3="Version 3", v3_code="Version 3, of code"),
        ),
        f"""
SELECT {name}, count(*) AS files, sum(functions) AS functions,
  CASE WHEN count(v1) = count(*) THEN (sum(functions) - sum(v1)) / sum(functions) END AS v1,
  (sum(functions) - sum(v2)) / sum(functions) AS v2, (sum(functions) - sum(v3)) / sum(functions) AS v3,
  (sum(code_bytes) - sum(covered_bytes)) / nullif(sum(code_bytes), 0) AS v3_code
FROM covers
GROUP BY {name}
ORDER BY sum(functions) DESC, {name}
""",
        (
            f"""covers AS (
  SELECT content, {name}, code_bytes, files.functions AS functions, max(covered) FILTER (version = 1) AS v1,
    max(covered) FILTER (version = 2) AS v2, max(covered) FILTER (version = 3) AS v3,
    max(covered_bytes) FILTER (version = 3) AS covered_bytes
  FROM files JOIN versions USING (content)
  WHERE impossible IS NULL AND files.functions > 0
  GROUP BY ALL
  HAVING count(*) FILTER (version IN (2, 3)) = 2
)""",
        ),
        drawing=Drawing("bars", name, ("v1", "v2", "v3"), axis="of the functions"),
        split=True,
        shown=(name, "functions", "v1", "v2", "v3"),
    )


def _reasons_say(rows: list[dict[str, Any]]) -> str:
    first = rows[0]
    if not first["of_left_out"]:
        return ""
    return (
        f"One reason accounts for {percent(first['of_left_out'])} of what version {first['version']} leaves out: "
        f"{first['message']}."
    )


REASONS = Figure(
    "reasons",
    "Why functions are left out",
    "Reasons by the number of functions that they concern, with the largest function of each as an example. A function "
    "in several pieces counts once for each piece.",
    (
        VERSION,
        *texts(code="Reason", message="Message"),
        *counts(functions="Functions"),
        *shares(of_left_out="Of all left out"),
        *counts(files="Files"),
        *sizes(bytes="Code"),
        *EXAMPLE,
        CONTENT,
    ),
    """
SELECT version, code, split_part(first(message ORDER BY size DESC, file, address), ': ', 1) AS message,
  sum("count") AS functions,
  sum("count") / sum(sum("count")) OVER (PARTITION BY version) AS of_left_out,
  count(DISTINCT content) AS files, sum(size) AS bytes,
  first(file ORDER BY size DESC, file, address) AS file, first(name ORDER BY size DESC, file, address) AS name,
  first(section ORDER BY size DESC, file, address) AS section,
  first(address ORDER BY size DESC, file, address) AS address,
  first(content ORDER BY size DESC, file, address) AS content
FROM functions JOIN named USING (content)
WHERE about = 'uncovered'
GROUP BY version, code
ORDER BY version DESC, functions DESC, code
""",
    (NAMED,),
    drawing=Drawing("bars", "message", ("functions",), panel="version", axis="functions"),
    says=_reasons_say,
    shown=("version", "message", "functions", "of_left_out", "file", "name"),
)


def _frame_pointers(name: str) -> Figure:
    what, column = GROUPS[name]
    return Figure(
        f"frame-pointers-by-{name}",
        f"Frame pointers, by {what}",
        "The share of functions whose CFA is based on the frame pointer after the prologue, the share of code where it "
        "is, and the share of functions that save the caller's frame pointer. The share that keeps one lies "
        "between these two: on AArch64, GCC sets one and still bases the CFA on the stack pointer; where "
        "the register is free for other uses, as on AMD64, many functions save it for those.",
        (
            column,
            *counts(files="Files", functions="Functions"),
            *shares(
                based="Functions with the CFA on it", code="Code with the CFA on it", saved="Functions that save it"
            ),
        ),
        f"""
SELECT {name}, count(*) AS files, sum(functions) AS functions, sum(fp_functions) / sum(functions) AS based,
  sum(fp_bytes) / nullif(sum(code_bytes), 0) AS code, sum(fp_saved) / sum(functions) AS saved
FROM files
WHERE functions > 0
GROUP BY {name}
ORDER BY functions DESC, {name}
""",
        drawing=Drawing("bars", name, ("based", "code", "saved"), axis="of the functions, or of their code"),
        split=True,
    )


FRAME_POINTER_FILES = Figure(
    "frame-pointer-files",
    "CFAs based on the frame pointer, by file",
    "Files by the share of their functions whose CFA is based on the frame pointer. Bins are 5 per cent wide.",
    (*shares(based="Functions from"), *counts(files="Files"), *shares(share="Of all files")),
    """
SELECT least(floor(20 * fp_functions::DOUBLE / functions), 19) / 20 AS based, count(*) AS files,
  count(*) / sum(count(*)) OVER () AS share
FROM files
WHERE functions > 0
GROUP BY based
ORDER BY based
""",
    drawing=Drawing("histogram", "based", ("share",), axis="of a file's functions"),
)

SFRAME = Figure(
    "sframe",
    "Files that have SFrame",
    "The SFrame in the files, compared with their call frame information: the bytes of code where the two agree, where "
    "they differ, and where only one of them exists.",
    (
        *texts(machine="Architecture", versions="Version"),
        *counts(files="Files"),
        *sizes(bytes="SFrame"),
        *counts(functions="Functions"),
        *sizes(equal="Equal", different="Different", only_frames="Only call frames", only_sframe="Only SFrame"),
        *counts(with_findings="Files with findings", unreadable="Files not readable"),
    ),
    """
SELECT machine, coalesce(array_to_string(versions, ' and '), '') AS versions, count(*) AS files,
  sum(sframe.bytes) AS bytes, sum(sframe.functions) AS functions,
  sum(equal_bytes) AS equal, sum(different_bytes) AS different,
  sum(only_frames_bytes) AS only_frames, sum(only_sframe_bytes) AS only_sframe,
  count(*) FILTER (findings > 0) AS with_findings, count(sframe.error) AS unreadable
FROM sframe JOIN files USING (content)
GROUP BY ALL
ORDER BY files DESC, machine, versions
""",
    shown=("machine", "versions", "files", "bytes", "equal", "different", "with_findings"),
    empty="No file has SFrame.",
)

_SEVERITIES = ", ".join(f"'{severity.name.lower()}'" for severity in Severity)
FINDINGS = Figure(
    "findings",
    "What walkback check finds",
    "Findings in the SFrame of the files, the most severe first, by the compiler of the file. The section itself "
    "comes from the assembler and the linker.",
    (
        *texts(producer="Producer", code="Rule", severity="Severity"),
        *counts(findings="Findings", files="Files"),
        *texts(message="Message"),
        *EXAMPLE,
        CONTENT,
    ),
    f"""
SELECT producer, code, severity, sum("count") AS findings, count(DISTINCT content) AS files,
  first(message ORDER BY file, address NULLS FIRST, message) AS message,
  first(file ORDER BY file, address NULLS FIRST, message) AS file,
  first(name ORDER BY file, address NULLS FIRST, message) AS name,
  first(section ORDER BY file, address NULLS FIRST, message) AS section,
  first(address ORDER BY file, address NULLS FIRST, message) AS address,
  first(content ORDER BY file, address NULLS FIRST, message) AS content
FROM functions JOIN named USING (content) JOIN files USING (content)
WHERE about = 'finding'
GROUP BY producer, code, severity
ORDER BY list_position([{_SEVERITIES}], severity), findings DESC, producer, code, severity
""",
    (NAMED,),
    shown=("severity", "code", "producer", "findings", "files", "message", "file"),
    empty="walkback check finds nothing wrong.",
)

DIFFERENT = Figure(
    "different",
    "Where SFrame and call frame information differ",
    "The fifty files with the most code that their SFrame and their call frame information describe differently.",
    (
        *texts(file="File"),
        *sizes(different="Different", equal="Equal", only_frames="Only call frames", only_sframe="Only SFrame"),
        *counts(findings="Findings"),
        *texts(machine="Architecture", producer="Producer", linker="Linker"),
        CONTENT,
    ),
    """
SELECT file, different_bytes AS different, equal_bytes AS equal, only_frames_bytes AS only_frames,
  only_sframe_bytes AS only_sframe, findings, machine, producer, linker, content
FROM sframe JOIN files USING (content) JOIN named USING (content)
WHERE different_bytes > 0
ORDER BY different DESC, file
LIMIT 50
""",
    (NAMED,),
    shown=("file", "different", "equal", "findings", "producer"),
    empty="SFrame and call frame information agree wherever both exist.",
)

COVERAGE_FIGURES = (*map(_coverage, ("machine", "producer")), REASONS)
FRAME_POINTER_FIGURES = (*map(_frame_pointers, ("machine", "producer", "language")), FRAME_POINTER_FILES)
SFRAME_FIGURES = (SFRAME, FINDINGS, DIFFERENT)
