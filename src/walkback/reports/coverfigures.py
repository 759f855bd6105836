"""Figures about what versions cannot say, about frame pointers, and about the SFrame that files have."""

from __future__ import annotations

from typing import Any

from walkback.reports.figurecolumns import CONTENT, EXAMPLE, GROUPS, VERSION, counts, shares, sizes, texts
from walkback.reports.figures import NAMED, Drawing, Figure
from walkback.reports.words import percent


def _coverage(name: str) -> Figure:
    what, column = GROUPS[name]
    return Figure(
        f"coverage-by-{name}",
        f"Left out, by {what}",
        "The share of functions that a version cannot say, of those with call frame information: the same files for "
        "all versions, those for which 2 and 3 can be made. Version 1 is there where it can be made for all of them. "
        "Code without call frame information is not in it.",
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
    )


def _reasons_say(rows: list[dict[str, Any]]) -> str:
    first = rows[0]
    if not first["of_left_out"]:
        return ""
    return (
        f"{percent(first['of_left_out'])} of what version {first['version']} leaves out has one reason: "
        f"{first['message']}."
    )


REASONS = Figure(
    "reasons",
    "Why functions are left out",
    "The reasons by how many functions have them, with the largest function of each as an example. A function that "
    "consists of several pieces counts for each piece.",
    (
        VERSION,
        *texts(code="Reason", message="In words"),
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
)


def _frame_pointers(name: str) -> Figure:
    what, column = GROUPS[name]
    return Figure(
        f"frame-pointers-by-{name}",
        f"Frame pointers, by {what}",
        "The share of functions whose CFA counts from the frame pointer after the prologue, the share of code in which "
        "it does, and the share of functions that save the caller's frame pointer. How many functions keep a "
        "frame pointer is between the first and the last: GCC sets one on AArch64 and still counts the CFA from the "
        "stack pointer, and where the register is free for other uses, as on AMD64, many functions save it for these.",
        (
            column,
            *counts(files="Files", functions="Functions"),
            *shares(based="CFA from it", code="Code where it is", saved="Save the caller's"),
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
    )


FRAME_POINTER_FILES = Figure(
    "frame-pointer-files",
    "CFAs from the frame pointer, by file",
    "Files by the share of their functions whose CFA counts from the frame pointer. A bin begins at its share and is "
    "5 per cent wide.",
    (*shares(based="Functions from"), *counts(files="Files"), *shares(share="Of all files")),
    """
SELECT least(floor(20 * fp_functions::DOUBLE / functions), 19) / 20 AS based, count(*) AS files,
  count(*) / sum(count(*)) OVER () AS share
FROM files
WHERE functions > 0
GROUP BY based
ORDER BY based
""",
    drawing=Drawing("histogram", "based", ("share",), axis="of the functions of a file"),
)

SFRAME = Figure(
    "sframe",
    "Files that have SFrame",
    "The SFrame of files, and whether it says the same as the call frame information: bytes of code in which both say "
    "the same, say different things, or only one of them says anything.",
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
    empty="No file has SFrame.",
)

FINDINGS = Figure(
    "findings",
    "What is wrong with it",
    "Findings of walkback check in the SFrame of files, by the producer of the file. The section itself comes from its "
    "assembler and linker.",
    (
        *texts(producer="Producer", code="Rule", severity="Severity"),
        *counts(findings="Findings", files="Files"),
        *texts(message="In words"),
        *EXAMPLE,
        CONTENT,
    ),
    """
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
ORDER BY findings DESC, producer, code, severity
""",
    (NAMED,),
    drawing=Drawing("bars", "producer", ("findings",), panel="code", axis="findings"),
    empty="There are no findings; where no file has SFrame, nothing was checked.",
)

DIFFERENT = Figure(
    "different",
    "Where it says something else",
    "The fifty files with the most code in which their SFrame and their call frame information say different things.",
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
    empty="There are no differences; where no file has SFrame, nothing was compared.",
)

COVERAGE_FIGURES = (*map(_coverage, ("machine", "producer")), REASONS)
FRAME_POINTER_FIGURES = (*map(_frame_pointers, ("machine", "producer", "language")), FRAME_POINTER_FILES)
SFRAME_FIGURES = (SFRAME, FINDINGS, DIFFERENT)
