"""Whether the sections of a file are right, with its call frame information as a witness, and a consumer walks by them.

for report in check("a.out", consumer="glibc"):
    for finding in report.findings:
        print(finding.code, finding.message)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from walkback.base.arrays import I64, Bools, distinct
from walkback.base.errors import ArgumentError, GraftError, WalkbackError
from walkback.base.text import counted
from walkback.elf import ElfFile, Input, is_archive, is_elf
from walkback.elf.write import Part
from walkback.sections.pairs import NamedTable, call_frame_table
from walkback.sframe import layout
from walkback.sframe.checking import LISTED, Report, Severity, check_section
from walkback.sframe.consumers import Consumer
from walkback.sframe.files import Source, from_bytes, read, sources_of
from walkback.sframe.rules import to_table
from walkback.sframe.section import Section
from walkback.table.comparing import compare
from walkback.table.verdict import Verdict


def check(
    source: Input | Source,
    *,
    section: str | None = None,
    address: int = 0,
    consumer: str | None = None,
    limit: int = LISTED,
    ignore: Collection[str] = (),
) -> Iterator[Report]:
    """Check every section of a file, or one that `sframe.read` found.

    `consumer` ("linux", "glibc" or "gnu-ld") adds whether that one would load it, and at which places its walk would
    end or fall back. Of each rule `limit` breaches are listed and the others counted; rules to `ignore` are left out.

    >>> [report] = walkback.check("damaged.so")
    >>> report.findings[0].message
    'the header counts 13 rows, the functions 12'
    """
    if limit < 0:
        raise ArgumentError(f"a limit is zero or more, and not {limit}")
    for one in [source] if isinstance(source, Source) else read(source, section=section, address=address):
        yield check_source(one, consumer=consumer, limit=limit, ignore=ignore)


def check_source(
    source: Source, *, consumer: str | None = None, limit: int = LISTED, ignore: Collection[str] = ()
) -> Report:
    """Check one section; the arguments are those of `check`."""
    return check_section(source, consumer=consumer, listed=limit, ignored=ignore, witnesses=CallFrames.of)


def examine_for(parts: Sequence[Part], name: str, consumer: Consumer | None) -> list[str]:
    """What the consumer would make of a file, or of raw bytes, that is to be written: notes on where its walk stops.

    Raises an error if it would not load the SFrame. What a linker makes of objects is loaded, and not the objects, so
    only a linker's wishes are examined for them.
    """
    if consumer is None:
        return []
    data = b"".join(parts)
    elf = ElfFile(data, name) if is_elf(data) else None
    if is_archive(data) or (elf is not None and elf.is_relocatable and consumer.walks):
        return []
    stops = 0
    for source in [from_bytes(data, name=name)] if elf is None else sources_of(elf):
        report = check_source(source, consumer=consumer.name)
        for finding in report.findings:
            if finding.severity in {Severity.REFUSED, Severity.BROKEN}:
                message = f"{consumer.title} would not load the section: {finding.message}"
                raise GraftError(message, file=name, section=source.name, offset=finding.offset, rule=finding.code)
        stops += report.stops or 0
    if not stops:
        return []
    where = counted(stops, "place")
    return [f"{consumer.title} stops or goes wrong at {where}: `walkback check --for {consumer.name}` lists them"]


class CallFrames:
    """What the call frame information of a file says."""

    def __init__(self, named: NamedTable) -> None:
        self.name = named.name
        self.table = named.table

    @classmethod
    def of(cls, elf: ElfFile) -> CallFrames | None:
        """That of a file; None if it has none, or none that can be read."""
        try:
            named = call_frame_table(elf)
        except WalkbackError:
            return None
        return None if named is None else cls(named)

    def agrees(self, section: Section, rows: I64) -> Bools:
        """Which of these rows of a section it says too, at every address that they are for."""
        agreed = np.zeros(len(rows), np.bool_)
        try:
            table = to_table(section)
            comparison = compare(self.table, table)
        except WalkbackError:
            return agreed
        functions, start = section.functions, section.row_start.astype(np.uint64)
        owner = np.repeat(np.arange(len(functions)), functions.rows)[rows]
        last = rows + 1 == functions.first_row[owner] + functions.rows[owner]
        end = np.where(last, functions.size[owner], np.append(start, 0)[rows + 1])
        low, high = section.code_address[owner] + start[rows], section.code_address[owner] + end
        plain = (functions.pc_type[owner] != layout.PC_TYPE_MASK) & (low < high)
        text = np.full(len(rows), -1) if section.code_section is None else section.code_section[owner]
        unlike = np.isin(comparison.verdict, (Verdict.DIFFERENT, Verdict.ONLY_OTHER))
        for number in distinct(text).tolist():
            here = text == number
            chosen = unlike & (comparison.section == number)
            order = np.argsort(comparison.start[chosen])
            first, size = comparison.start[chosen][order], comparison.size[chosen][order]
            # The first stretch that ends behind the beginning of a row must begin behind its end.
            after = np.searchsorted(first + size, low[here], side="right")
            apart = np.append(first, np.uint64(2**64 - 1))[after] >= high[here]
            # Where functions overlap, another one's row may be the one that was compared.
            holds = table.find_many(low[here], section=number)[1] == rows[here]
            agreed[here] = plain[here] & apart & holds
        return agreed
