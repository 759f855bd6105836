"""What a survey comes to, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    bytes: int
    """What the version would take."""
    call_frames: int


@dataclass(frozen=True, slots=True)
class VersionSummary:
    """One version of SFrame, over the files for which it can be made."""

    version: int
    files: int
    bytes: int
    functions: int
    covered: int
    compared: ComparedSummary


@dataclass(frozen=True, slots=True)
class LeftOutSummary:
    """Code that the newest version does not describe, for one reason."""

    code: str
    """The name of the reason, which does not change; `no-table` of code that is in no table."""
    reason: str
    functions: int | None
    """None where nothing says how many there are."""
    bytes: int


@dataclass(frozen=True, slots=True)
class ProofSummary:
    """What `walkback verify` finds in the tables of a section."""

    source: str
    files: int
    functions: int
    functions_wrong: int
    proved: int
    """Bytes of instructions."""
    wrong: int
    reached: int
    """All that can be reached."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Of a survey."""

    places: int
    """ELF files, as often as they were found."""
    files: int
    """Different ones."""
    bytes: int
    """Of the different ones."""
    outcomes: dict[str, int]
    """How many files had each, the most frequent first."""
    code: int
    """Bytes of code in files that were looked into."""
    described: dict[str, int]
    """Those of them that a kind of table describes, by the kinds that there are."""
    versions: tuple[VersionSummary, ...]
    shared: tuple[VersionSummary, ...]
    """The same of the files for which every version can be made: these can be compared with each other."""
    left_out: tuple[LeftOutSummary, ...]
    """What the newest version does not describe, the most code first."""
    proofs: tuple[ProofSummary, ...]
    """Empty if the survey was not asked to verify."""
    unsurveyed: tuple[tuple[str, str], ...]
    """What could not be surveyed, in whole or in part, and why."""


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
