"""Figures about what versions cannot say, about frame pointers, and about the SFrame that files have."""

from __future__ import annotations

from typing import Any

from walkback.report.figures import GROUPS, NAMED, Column, Drawing, Figure, Unit, columns, query
from walkback.report.words import percent

_FILES = Column("files", "Files", Unit.COUNT)
_FUNCTIONS = Column("functions", "Functions", Unit.COUNT)
_CONTENT = Column("content", "Content", Unit.CONTENT)
_EXAMPLE = (
    Column("file", "Example, in"),
    Column("name", "Function"),
    Column("section", "Section"),
    Column("address", "At", Unit.ADDRESS),
)


def _coverage(name: str, what: str, column: Column) -> Figure:
    return Figure(
        f"coverage-by-{name}",
        f"Left out, by {what}",
        "The share of functions that a version cannot say, of those with call frame information: the same files for "
        "all versions, those for which 2 and 3 can be made. Version 1 is there where it can be made for all of them. "
        "Code without call frame information is not in it.",
        columns(
            column,
            _FILES,
            _FUNCTIONS,
            Column("v1", "Version 1", Unit.SHARE),
            Column("v2", "Version 2", Unit.SHARE),
            Column("v3", "Version 3", Unit.SHARE),
            Column("v3_code", "Version 3, of code", Unit.SHARE),
        ),
        query(
            f"""
SELECT {name}, count(*) AS files, sum(functions) AS functions,
  CASE WHEN count(v1) = count(*) THEN (sum(functions) - sum(v1)) / sum(functions) END AS v1,
  (sum(functions) - sum(v2)) / sum(functions) AS v2, (sum(functions) - sum(v3)) / sum(functions) AS v3,
  (sum(code_bytes) - sum(covered_bytes)) / nullif(sum(code_bytes), 0) AS v3_code
FROM covers
GROUP BY {name}
ORDER BY sum(functions) DESC, {name}
""",
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
        Drawing("bars", name, ("v1", "v2", "v3"), axis="of the functions"),
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
    columns(
        Column("version", "Version", Unit.TEXT, {"1": "Version 1", "2": "Version 2", "3": "Version 3"}),
        Column("code", "Reason"),
        Column("message", "In words"),
        _FUNCTIONS,
        Column("of_left_out", "Of all left out", Unit.SHARE),
        _FILES,
        Column("bytes", "Code", Unit.BYTES),
        _EXAMPLE,
        _CONTENT,
    ),
    query(
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
        NAMED,
    ),
    Drawing("bars", "message", ("functions",), panel="version", axis="functions"),
    _reasons_say,
)


def _frame_pointers(name: str, what: str, column: Column) -> Figure:
    return Figure(
        f"frame-pointers-by-{name}",
        f"Frame pointers, by {what}",
        "The share of functions whose CFA counts from the frame pointer after the prologue, the share of code in which "
        "it does, and the share of functions that save the caller's frame pointer. How many functions keep a "
        "frame pointer is between the first and the last: GCC sets one on AArch64 and still counts the CFA from the "
        "stack pointer, and where the register is free for other uses, as on AMD64, many functions save it for these.",
        columns(
            column,
            _FILES,
            _FUNCTIONS,
            Column("based", "CFA from it", Unit.SHARE),
            Column("code", "Code where it is", Unit.SHARE),
            Column("saved", "Save the caller's", Unit.SHARE),
        ),
        query(
            f"""
SELECT {name}, count(*) AS files, sum(functions) AS functions, sum(fp_functions) / sum(functions) AS based,
  sum(fp_bytes) / nullif(sum(code_bytes), 0) AS code, sum(fp_saved) / sum(functions) AS saved
FROM files
WHERE functions > 0
GROUP BY {name}
ORDER BY functions DESC, {name}
"""
        ),
        Drawing("bars", name, ("based", "code", "saved"), axis="of the functions, or of their code"),
    )


FRAME_POINTER_FILES = Figure(
    "frame-pointer-files",
    "CFAs from the frame pointer, by file",
    "Files by the share of their functions whose CFA counts from the frame pointer. A bin begins at its share and is "
    "5 per cent wide.",
    columns(Column("based", "Functions from", Unit.SHARE), _FILES, Column("share", "Of all files", Unit.SHARE)),
    query(
        """
SELECT least(floor(20 * fp_functions::DOUBLE / functions), 19) / 20 AS based, count(*) AS files,
  count(*) / sum(count(*)) OVER () AS share
FROM files
WHERE functions > 0
GROUP BY based
ORDER BY based
"""
    ),
    Drawing("histogram", "based", ("share",), axis="of the functions of a file"),
)

SFRAME = Figure(
    "sframe",
    "Files that have SFrame",
    "What is there, and whether it says the same as the call frame information: bytes of code in which both say the "
    "same, say different things, or only one of them says anything.",
    columns(
        Column("machine", "Architecture"),
        Column("versions", "Version"),
        _FILES,
        Column("bytes", "SFrame", Unit.BYTES),
        _FUNCTIONS,
        Column("equal", "Equal", Unit.BYTES),
        Column("different", "Different", Unit.BYTES),
        Column("only_frames", "Only call frames", Unit.BYTES),
        Column("only_sframe", "Only SFrame", Unit.BYTES),
        Column("with_findings", "Files with findings", Unit.COUNT),
        Column("unreadable", "Files not readable", Unit.COUNT),
    ),
    query(
        """
SELECT machine, coalesce(array_to_string(versions, ' and '), '') AS versions, count(*) AS files,
  sum(sframe.bytes) AS bytes, sum(sframe.functions) AS functions,
  sum(equal_bytes) AS equal, sum(different_bytes) AS different,
  sum(only_frames_bytes) AS only_frames, sum(only_sframe_bytes) AS only_sframe,
  count(*) FILTER (findings > 0) AS with_findings, count(sframe.error) AS unreadable
FROM sframe JOIN files USING (content)
GROUP BY ALL
ORDER BY files DESC, machine, versions
"""
    ),
    empty="No file has SFrame.",
)

_FINDING = (
    Column("code", "Rule"),
    Column("severity", "Severity"),
    Column("findings", "Findings", Unit.COUNT),
    _FILES,
    Column("message", "In words"),
)
FINDINGS = Figure(
    "findings",
    "What is wrong with it",
    "Findings of walkback check in the SFrame of files, by the producer of the file. The section itself comes from its "
    "assembler and linker.",
    columns(Column("producer", "Producer"), *_FINDING, _EXAMPLE, _CONTENT),
    query(
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
        NAMED,
    ),
    Drawing("bars", "producer", ("findings",), panel="code", axis="findings"),
    empty="There are no findings; where no file has SFrame, nothing was checked.",
)

DIFFERENT = Figure(
    "different",
    "Where it says something else",
    "The fifty files with the most code in which their SFrame and their call frame information say different things.",
    columns(
        Column("file", "File"),
        Column("different", "Different", Unit.BYTES),
        Column("equal", "Equal", Unit.BYTES),
        Column("only_frames", "Only call frames", Unit.BYTES),
        Column("only_sframe", "Only SFrame", Unit.BYTES),
        Column("findings", "Findings", Unit.COUNT),
        Column("machine", "Architecture"),
        Column("producer", "Producer"),
        Column("linker", "Linker"),
        _CONTENT,
    ),
    query(
        """
SELECT file, different_bytes AS different, equal_bytes AS equal, only_frames_bytes AS only_frames,
  only_sframe_bytes AS only_sframe, findings, machine, producer, linker, content
FROM sframe JOIN files USING (content) JOIN named USING (content)
WHERE different_bytes > 0
ORDER BY different DESC, file
LIMIT 50
""",
        NAMED,
    ),
    empty="There are no differences; where no file has SFrame, nothing was compared.",
)

_GROUPS = [(name, what, column) for name, (what, column) in GROUPS.items()]
COVERAGE_FIGURES = (*(_coverage(*group) for group in _GROUPS[:2]), REASONS)
FRAME_POINTER_FIGURES = (*(_frame_pointers(*group) for group in _GROUPS[:3]), FRAME_POINTER_FILES)
SFRAME_FIGURES = (SFRAME, FINDINGS, DIFFERENT)
