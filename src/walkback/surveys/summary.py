"""What a survey comes to, in a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walkback.base.dataclass import dataclass
from walkback.sframe.layout import VERSIONS
from walkback.surveys.layout import KINDS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_VERSIONS = """
WITH made AS (
    SELECT version, versions.bytes AS sframe, versions.functions AS functions, covered,
        eh_frame::HUGEINT + eh_frame_hdr AS call_frames,
        source != '.debug_frame' AND from_cfi = code_bytes AND call_frames > 0 AS is_compared
    FROM files JOIN versions USING (content)
    WHERE impossible IS NULL AND {}
)
SELECT version, count(*), sum(sframe)::BIGINT, sum(functions)::BIGINT, sum(covered)::BIGINT,
    count(*) FILTER (is_compared), coalesce(sum(sframe) FILTER (is_compared), 0)::BIGINT,
    coalesce(sum(call_frames) FILTER (is_compared), 0)::BIGINT
FROM made GROUP BY version ORDER BY version
"""
_SHARED = "content NOT IN (SELECT content FROM versions WHERE impossible IS NOT NULL)"
_CODE = f"""
SELECT coalesce(sum(text_bytes), 0)::BIGINT,
    {", ".join(f"coalesce(sum(least(coalesce(from_{kind}, 0), text_bytes)), 0)::BIGINT" for kind in KINDS)}
FROM files WHERE outcome IN ('measured', 'without')
"""
_LEFT_OUT = f"""
SELECT code, split_part(first(message ORDER BY size DESC, message), ': ', 1), sum("count")::BIGINT,
    sum(size)::BIGINT AS size
FROM functions WHERE about = 'uncovered' AND version = {VERSIONS[-1]}
GROUP BY code HAVING sum(size) > 0
UNION ALL
SELECT 'no-table', 'no table that was read describes the code', NULL,
    sum(text_bytes - least(coalesce(code_bytes, 0), text_bytes))::BIGINT AS size
FROM files WHERE outcome IN ('measured', 'without') HAVING size > 0
ORDER BY size DESC, code
"""
_PROOFS = """
SELECT source, count(*), sum(functions)::BIGINT, sum(functions_wrong)::BIGINT, sum(proved)::BIGINT, sum(wrong)::BIGINT,
    sum(bytes - not_reached)::BIGINT
FROM proofs WHERE error IS NULL GROUP BY source ORDER BY source
"""
_UNSURVEYED = """
SELECT path || coalesce('(' || member || ')', ''), message FROM troubles
UNION ALL
SELECT min(path || coalesce('(' || member || ')', '')), any_value(error)
FROM files JOIN places USING (content) WHERE outcome = 'error' GROUP BY content
UNION ALL
SELECT min(path || coalesce('(' || member || ')', '')), any_value(error)
FROM proofs JOIN places USING (content) WHERE error IS NOT NULL GROUP BY content
UNION ALL
SELECT min(path || coalesce('(' || member || ')', '')), any_value(error)
FROM sframe JOIN places USING (content) WHERE error IS NOT NULL GROUP BY content
ORDER BY ALL
"""


@dataclass(frozen=True, slots=True)
class ComparedSummary:
    """One version against `.eh_frame` and `.eh_frame_hdr`, over the files that have no other table."""

    files: int
    """The number of files with `.eh_frame` and no other table."""
    bytes: int
    """The bytes of the version."""
    call_frames: int
    """The bytes of `.eh_frame` and `.eh_frame_hdr`."""


@dataclass(frozen=True, slots=True)
class VersionSummary:
    """One version of SFrame, over the files for which it can be made."""

    version: int
    """The version."""
    files: int
    """The number of files for which it can be made."""
    bytes: int
    """The bytes of the version."""
    functions: int
    """The number of functions."""
    covered: int
    """The number of functions that it covers."""
    compared: ComparedSummary
    """Its size against that of call frame information."""


@dataclass(frozen=True, slots=True)
class LeftOutSummary:
    """Code that the newest version does not describe, for one reason."""

    code: str
    """The name of the reason, which does not change. `no-table` is code that no table that was read describes: padding,
    linkage stubs, data among the code, and functions without a table."""
    reason: str
    """The reason, as in `derive`."""
    functions: int | None
    """The number of functions; null for `no-table`."""
    bytes: int
    """The bytes of code."""


@dataclass(frozen=True, slots=True)
class ProofSummary:
    """What `walkback verify` finds in the tables of a section."""

    source: str
    """The section."""
    files: int
    """The number of files."""
    functions: int
    """The number of functions."""
    functions_wrong: int
    """The number of functions with an instruction at which the table is wrong."""
    proved: int
    """The bytes of instructions at which the table is proved."""
    wrong: int
    """The bytes of instructions at which it is wrong."""
    reached: int
    """The bytes of all instructions that can be reached."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Of a survey."""

    places: int
    """The number of ELF files, including copies."""
    files: int
    """The number of distinct files."""
    bytes: int
    """The bytes of the distinct files."""
    outcomes: dict[str, int]
    """The number of files with each outcome, the most frequent first."""
    code: int
    """The bytes of code in the files that were examined."""
    described: dict[str, int]
    """The bytes of code that each kind of table describes."""
    versions: tuple[VersionSummary, ...]
    """For each version, the files for which it can be made."""
    shared: tuple[VersionSummary, ...]
    """The same over the files for which every version can be made, to compare versions with each other."""
    left_out: tuple[LeftOutSummary, ...]
    """The code that the newest version does not describe, the most code first."""
    proofs: tuple[ProofSummary, ...]
    """With `--verify`: for the tables of each section, what the machine code proves."""
    unsurveyed: tuple[tuple[str, str], ...]
    """The files that could not be surveyed, in whole or in part, and the reasons."""


def summary(database: DuckDBPyConnection) -> Summary:
    """Of the tables that `walkback.surveys.reading.Survey.database` gives."""
    counts = "SELECT (SELECT count(*) FROM places), count(*), coalesce(sum(bytes), 0)::BIGINT FROM files"
    [(places, files, size)] = database.execute(counts).fetchall()
    outcomes = database.execute("SELECT outcome, count(*) FROM files GROUP BY ALL ORDER BY 2 DESC, 1").fetchall()
    [(code, *described)] = database.execute(_CODE).fetchall()
    return Summary(
        places,
        files,
        size,
        dict(outcomes),
        code,
        {kind: its for kind, its in zip(KINDS, described, strict=True) if its},
        _versions(database, "true"),
        _versions(database, _SHARED),
        tuple(LeftOutSummary(*row) for row in database.execute(_LEFT_OUT).fetchall()),
        tuple(ProofSummary(*row) for row in database.execute(_PROOFS).fetchall()),
        tuple((str(where), str(why)) for where, why in database.execute(_UNSURVEYED).fetchall()),
    )


def _versions(database: DuckDBPyConnection, which: str) -> tuple[VersionSummary, ...]:
    """Of the files that a condition of SQL chooses."""
    rows = database.execute(_VERSIONS.format(which)).fetchall()
    return tuple(
        VersionSummary(version, files, size, functions, covered, ComparedSummary(*compared))
        for version, files, size, functions, covered, *compared in rows
    )
