"""Figures about what the machine code proves of the tables, in surveys that were asked to verify."""

from __future__ import annotations

from typing import Any

from walkback.proof.patterns import Pattern
from walkback.reports.figurecolumns import CONTENT, EXAMPLE, GROUPS, counts, shares, sizes, texts
from walkback.reports.figures import NAMED, Column, Drawing, Figure
from walkback.reports.words import percent

_EMPTY = "The survey was made without --verify."
_SHARES = """sum(proofs.proved) / nullif(sum(proofs.bytes - not_reached), 0) AS proved,
  sum(wrong) / nullif(sum(proofs.bytes - not_reached), 0) AS wrong,
  sum(assumed) / nullif(sum(proofs.bytes - not_reached), 0) AS assumed,
  sum(unknown) / nullif(sum(proofs.bytes - not_reached), 0) AS unknown"""
_COUNTS = """count(DISTINCT content) AS files, sum(proofs.functions) AS functions,
  sum(functions_wrong) AS functions_wrong"""
_COLUMNS = (
    *counts(files="Files", functions="Functions", functions_wrong="Wrong functions"),
    *shares(proved="Proved", wrong="Wrong", assumed="Assumed", unknown="Unknown"),
)


_LARGEST = """(
  SELECT * FROM proofs WHERE error IS NULL
  QUALIFY row_number() OVER (PARTITION BY content ORDER BY functions DESC, source) = 1
) AS proofs"""
"""One table of each file, so that a function counts once."""


def _proof_says(rows: list[dict[str, Any]]) -> str:
    row = max(rows, key=lambda row: row["functions"])
    share = percent(row["functions_wrong"] / row["functions"]) if row["functions"] else ""
    return f"{share} of the functions have a rule in {row['source']} that the code contradicts." if share else ""


PROOF = Figure(
    "proof",
    "What the code proves",
    "Each rule of each table, held against the machine code. The shares are of the bytes of instructions that can be "
    "reached; a function is wrong if the code contradicts a rule at one of its instructions.",
    (Column("source", "Table"), *_COLUMNS),
    f"""
SELECT proofs.source AS source, {_COUNTS},
  {_SHARES}
FROM proofs JOIN files USING (content)
WHERE proofs.error IS NULL
GROUP BY proofs.source
ORDER BY proofs.source
""",
    says=_proof_says,
    empty=_EMPTY,
)


def _proof_by(name: str) -> Figure:
    what, column = GROUPS[name]
    return Figure(
        f"proof-by-{name}",
        f"Wrong rules, by {what}",
        "The share of functions with a rule that the code contradicts, and how much of the code is proved. Where a "
        "file has several tables, this is about the one with the most functions.",
        (column, *_COLUMNS, *shares(of_functions="Wrong share of functions")),
        f"""
SELECT {name}, {_COUNTS},
  {_SHARES},
  sum(functions_wrong) / nullif(sum(proofs.functions), 0) AS of_functions
FROM {_LARGEST} JOIN files USING (content)
GROUP BY {name}
ORDER BY functions DESC, {name}
""",
        drawing=Drawing("bars", name, ("of_functions",), axis="share of the functions that are wrong"),
        split=True,
        shown=(name, "functions", "functions_wrong", "of_functions", "proved"),
        empty=_EMPTY,
    )


PATTERNS = Figure(
    "patterns",
    "How rules are wrong",
    "Wrong functions by the pattern of their worst mistake, with the largest as an example. The documentation of "
    "walkback verify explains the patterns.",
    (
        Column("pattern", "Pattern", words={one.value: one.value.replace("-", " ") for one in Pattern}),
        *counts(functions="Functions", files="Files"),
        *sizes(bytes="Code"),
        *texts(producer="Most of them by", message="Message"),
        *EXAMPLE,
        CONTENT,
    ),
    """
SELECT code AS pattern, sum("count") AS functions, count(DISTINCT content) AS files, sum(size) AS bytes,
  mode(producer ORDER BY producer) AS producer, first(message ORDER BY size DESC, file, address) AS message,
  first(file ORDER BY size DESC, file, address) AS file, first(name ORDER BY size DESC, file, address) AS name,
  first(section ORDER BY size DESC, file, address) AS section,
  first(address ORDER BY size DESC, file, address) AS address,
  first(content ORDER BY size DESC, file, address) AS content
FROM functions JOIN named USING (content) JOIN files USING (content)
WHERE about = 'wrong'
GROUP BY code
ORDER BY sum("count") DESC, code
""",
    (NAMED,),
    drawing=Drawing("bars", "pattern", ("functions",), axis="functions"),
    shown=("pattern", "functions", "files", "producer", "file", "name"),
    empty="The code contradicts no rule, or the survey was made without --verify.",
)

WRONG_FILES = Figure(
    "wrong-files",
    "Files with the most wrong functions",
    "The fifty files with the most functions that have a rule that the code contradicts.",
    (
        *texts(file="File", source="Table"),
        *counts(functions="Functions", functions_wrong="Wrong functions"),
        *sizes(wrong="Wrong code"),
        *texts(machine="Architecture", producer="Producer", language="Language"),
        CONTENT,
    ),
    """
SELECT file, proofs.source AS source, proofs.functions AS functions, functions_wrong, wrong, machine, producer,
  language, content
FROM proofs JOIN files USING (content) JOIN named USING (content)
WHERE functions_wrong > 0
ORDER BY functions_wrong DESC, file, source
LIMIT 50
""",
    (NAMED,),
    shown=("file", "functions", "functions_wrong", "wrong", "producer"),
    empty="The code contradicts no rule, or the survey was made without --verify.",
)

PROOF_FIGURES = (PROOF, *map(_proof_by, ("machine", "producer", "language")), PATTERNS, WRONG_FILES)
