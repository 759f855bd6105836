"""Is a section right? Every rule that the specifications state or imply, and what consumers demand.

for report in check("a.out"):
    for finding in report.findings:
        print(finding.code, finding.message)
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from walkback.errors import ArgumentError, SFrameError
from walkback.sframe.check.codes import CODES, Code, Severity
from walkback.sframe.check.consumers import CONSUMERS, check_consumer
from walkback.sframe.check.file import check_container, check_placed, check_strays
from walkback.sframe.check.findings import LISTED, Finding, Findings
from walkback.sframe.check.rows import check_rows
from walkback.sframe.check.structure import check_structure
from walkback.sframe.files import Piece, Source, sources

__all__ = ["CODES", "CONSUMERS", "LISTED", "Code", "Finding", "Report", "Severity", "check", "check_source"]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in one section."""

    source: Source
    consumer: str | None
    """The consumer asked about."""
    findings: list[Finding]
    """Worst first."""
    unlisted: dict[str, int]
    """How many more breaches of a rule there are than are listed."""
    functions: int
    rows: int

    @property
    def loads(self) -> bool | None:
        """Whether the consumer would load the section; None if none was asked about."""
        if self.consumer is None:
            return None
        return all(one.severity is not Severity.REFUSED for one in self.findings)


def check(
    path: str | os.PathLike[str],
    *,
    section: str | None = None,
    address: int = 0,
    consumer: str | None = None,
    listed: int = LISTED,
    ignored: Collection[str] = (),
) -> Iterator[Report]:
    """Check every section of a file.

    `consumer` ("linux", "glibc" or "gnu-ld") adds whether that one would load it. Of each rule `listed` breaches are
    listed and the others counted; rules in `ignored` are left out.
    """
    for source in sources(path, section=section, address=address):
        yield check_source(source, consumer=consumer, listed=listed, ignored=ignored)


def check_source(
    source: Source, *, consumer: str | None = None, listed: int = LISTED, ignored: Collection[str] = ()
) -> Report:
    """Check one section; the arguments are those of `check`."""
    unknown = set(ignored) - CODES.keys()
    if unknown:
        message = f"there is no rule {', '.join(sorted(unknown))}"
        raise ArgumentError(message)
    if consumer is not None and consumer not in CONSUMERS:
        message = f"there is no consumer {consumer!r}; known: {', '.join(CONSUMERS)}"
        raise ArgumentError(message)
    found = Findings(listed, frozenset(ignored))
    pieces: list[Piece] = []
    try:
        for piece in source.pieces(faults=True):
            pieces.append(piece)
            found.base = piece.position
            found.names = source.function_names(piece.section)
            _check_piece(source, piece, found)
            if len(pieces) == 1:
                found.broken_first = set(found.broken)
    except SFrameError as error:
        found.base, found.names = 0, []
        found.add(error.rule or "header-size", error.message, offset=error.offset)
    found.base, found.names = 0, []
    check_container(source, pieces, found)
    check_strays(source, found)
    if consumer is not None:
        check_consumer(consumer, source, pieces[0] if pieces else None, found)
    return Report(
        source,
        consumer,
        found.sorted(),
        found.unlisted(),
        sum(len(piece.section.functions) for piece in pieces),
        sum(len(piece.section.row_start) for piece in pieces),
    )


def _check_piece(source: Source, piece: Piece, found: Findings) -> None:
    check_structure(piece.section, found)
    check_rows(piece.section, found)
    check_placed(source, piece, found)
