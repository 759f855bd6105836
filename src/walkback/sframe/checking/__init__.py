"""Is a section right? Every rule that the specifications state or imply, and what consumers demand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

import numpy as np

from walkback.base.columns import Columnar, NamedColumns
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, SFrameError
from walkback.base.oneline import OneLine
from walkback.sframe.checking.codes import CODES, Code, Severity
from walkback.sframe.checking.consumers import check_consumer
from walkback.sframe.checking.file import check_container, check_placed, check_strays
from walkback.sframe.checking.findings import LISTED, Finding, Findings
from walkback.sframe.checking.rows import check_rows
from walkback.sframe.checking.structure import check_structure
from walkback.sframe.checking.witness import Witness, Witnesses
from walkback.sframe.consumers import CONSUMERS, consumer_named
from walkback.sframe.files import SFrameSection, Source

__all__ = [
    "CODES",
    "CONSUMERS",
    "LISTED",
    "Code",
    "Finding",
    "Report",
    "Severity",
    "Witness",
    "Witnesses",
    "check_section",
]


@dataclass(frozen=True, slots=True, repr=False)
class Report(OneLine, Columnar):
    """What was found in one section.

    >>> [report] = walkback.check("damaged.so", consumer="glibc")
    >>> report.loads, report.columns()["code"].tolist()[:1]
    (False, ['row-count'])
    """

    source: Source
    consumer: str | None
    """The consumer asked about."""
    findings: list[Finding]
    """Worst first."""
    unlisted: dict[str, int]
    """How many more breaches of a rule there are than are listed."""
    functions: int
    rows: int
    notes: list[Finding]
    """What would be findings if the file's call frame information did not say the same."""
    unlisted_notes: dict[str, int]

    def columns(self) -> NamedColumns:
        """The findings, a row each."""
        found = NamedColumns(
            {one.name: np.array([getattr(it, one.name) for it in self.findings], object) for one in fields(Finding)}
        )
        return NamedColumns({"severity": np.array([it.severity.name for it in self.findings], object), **found})

    @property
    def loads(self) -> bool | None:
        """Whether the consumer would load the section; None if none was asked about."""
        if self.consumer is None:
            return None
        return all(one.severity is not Severity.REFUSED for one in self.findings)

    @property
    def stops(self) -> int | None:
        """At how many places the consumer's walk would stop or go wrong; None if none was asked about."""
        if self.consumer is None:
            return None
        listed = sum(one.severity is Severity.STOPS for one in self.findings)
        return listed + sum(count for code, count in self.unlisted.items() if CODES[code].severity is Severity.STOPS)


def check_section(
    source: Source,
    *,
    consumer: str | None = None,
    listed: int = LISTED,
    ignored: Collection[str] = (),
    witnesses: Witnesses | None = None,
) -> Report:
    """Check one section; the arguments are those of `walkback.check`.

    `witnesses` finds the call frame information of a file. What rows say and that too becomes a note, and what that has
    and the section has not may end a consumer's walk.
    """
    if isinstance(ignored, str):
        ignored = [ignored]
    if unknown := set(ignored) - CODES.keys():
        raise ArgumentError(f"there is no rule {', '.join(sorted(unknown))}")
    if consumer is not None:
        consumer_named(consumer, CONSUMERS)
    found, notes = (Findings(listed, frozenset(ignored)) for _ in range(2))
    witness = witnesses(source.elf) if witnesses is not None and source.elf is not None else None
    pieces: list[SFrameSection] = []
    try:
        for piece in source.pieces(faults=True):
            pieces.append(piece)
            names = source.function_names(piece.section)
            found.at(piece.position, names)
            notes.at(piece.position, names)
            check_structure(piece.section, found)
            check_rows(piece.section, found, notes, witness)
            check_placed(source, piece, found)
            if len(pieces) == 1:
                found.broken_first = set(found.broken)
    except SFrameError as error:
        found.at(0, [])
        found.add(error.rule or "header-size", error.message, offset=error.offset)
    found.at(0, [])
    check_container(source, pieces, found)
    check_strays(source, found)
    if consumer is not None:
        if pieces:
            found.names = source.function_names(pieces[0].section)
        check_consumer(consumer, source, pieces[0] if pieces else None, witness, found)
    return Report(
        source,
        consumer,
        found.sorted(),
        found.unlisted(),
        sum(len(piece.section.functions) for piece in pieces),
        sum(len(piece.section.row_start) for piece in pieces),
        notes.sorted(),
        notes.unlisted(),
    )
