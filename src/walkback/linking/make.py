"""What was gathered, written as one section, or as several that follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from walkback.arrays import I64
from walkback.comparison import Verdict, compare
from walkback.elf import layout as elf_layout
from walkback.errors import IncompleteError, LeftOut, WalkbackError
from walkback.linking.cut import cut
from walkback.linking.gather import Gathered
from walkback.sframe.batch import batches
from walkback.sframe.build import build
from walkback.sframe.encode import encoded
from walkback.sframe.layout import ByteOrder
from walkback.sframe.rules import to_table
from walkback.sframe.section import Section
from walkback.sframe.words import REFUSAL_WORDS, Refusal
from walkback.table import UnwindTable, joined
from walkback.table.settle import disjoint, settled
from walkback.text import counted


@dataclass(frozen=True, slots=True)
class Form:
    """How a section is to be written; what is None follows from what there is."""

    version: int | None = None
    pcrel: bool | None = None
    byteorder: ByteOrder | None = None

    def version_for(self, gathered: Gathered) -> int:
        """The version that is asked for, or the highest that there is."""
        return gathered.version if self.version is None else self.version

    def pcrel_for(self, gathered: Gathered) -> bool:
        """Whether starts count from their own fields: in version 3, and in version 2 unless what there is does not."""
        version = self.version_for(gathered)
        if self.pcrel is not None:
            return self.pcrel
        return version == 3 or (version == 2 and (gathered.pcrel or gathered.version != 2))


@dataclass(frozen=True, slots=True)
class Made:
    """What was made: one section, or several at their positions."""

    sections: list[tuple[int, Section]]
    contents: memoryview
    address: int
    functions: int
    """How many of those that were to be said are there."""
    split: int
    """How many functions have several entries, because of their number of rows."""
    left_out: list[LeftOut]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(len(section.row_start) for _, section in self.sections)

    @property
    def kind(self) -> int:
        """The type that an ELF section of it has."""
        return max((section_kind(section) for _, section in self.sections), default=elf_layout.SHT_GNU_SFRAME)


def section_kind(section: Section) -> int:
    """The type that the ELF section has: before errata 1 there was none of its own."""
    modern = section.version == 3 or section.pcrel
    return elf_layout.SHT_GNU_SFRAME if modern else elf_layout.SHT_PROGBITS


def make(
    gathered: Gathered,
    table: UnwindTable,
    form: Form,
    *,
    address: int | None = 0,
    in_pieces: bool = False,
) -> Made:
    """Write the functions of a table, which come from what was gathered, for a place; in an object there is none.

    What the version cannot say is left out and told. `in_pieces` makes a complete section for each text section, or
    where addresses are absolute for each of the former sections.
    """
    here = set(table.range_origin.tolist()) if gathered.unreadable else set()
    reasons = {one: why for one, why in gathered.unreadable.items() if one in here}
    said = _without(table, list(reasons))
    if in_pieces and address is not None:
        said = _by_piece(said, gathered)
    built = build(said, **_options(gathered, form, address, in_pieces))
    while built.refused:
        new = {int(said.range_origin[one.range]): one.text(said) for one in built.refused}
        reasons |= new
        said = _without(said, list(new))
        built = build(said, **_options(gathered, form, address, in_pieces))
    sections = list(cut(built.section, address=address)) if in_pieces else [(0, built.section)]
    functions, contents = _distinct(table.range_origin) - len(reasons), _concatenated(sections)
    made = Made(sections, contents, address or 0, functions, len(built.split), gathered.left_out(reasons))
    if in_pieces and address is not None:
        said = replace(said, range_section=np.full(len(said), -1, np.int32))
    _prove(made, said)
    return made


def _without(table: UnwindTable, functions: list[int]) -> UnwindTable:
    """All but some functions; what is left out does not let another show through, which nobody says to hold there."""
    if not functions:
        return table
    whole = settled(table) if _overlap(table) else table
    return whole.chosen(np.flatnonzero(~np.isin(whole.range_origin, functions)))


def _options(gathered: Gathered, form: Form, address: int | None, in_pieces: bool) -> dict[str, Any]:
    """What `build` is told."""
    version = form.version_for(gathered)
    return {
        "version": version,
        "pcrel": form.pcrel_for(gathered),
        "byteorder": form.byteorder or gathered.byteorder,
        "address": address or 0,
        "frame_pointer": version < 3 and gathered.frame_pointer,
        "leave_out": True,
        "linked": address is not None and not in_pieces,
    }


def _overlap(table: UnwindTable) -> bool:
    """Whether some code belongs to several functions."""
    _, start, last, _ = disjoint(table)
    return int((last - start).sum()) + len(start) != int(table.range_size.sum())


def _distinct(numbers: I64) -> int:
    """How many there are."""
    there = np.zeros(int(numbers.max(initial=-1)) + 1, np.bool_)
    there[numbers] = True
    return int(there.sum())


def _by_piece(table: UnwindTable, gathered: Gathered) -> UnwindTable:
    """The functions in order of the sections that they come from, as if each had a text section of its own."""
    piece = gathered.piece[table.range_origin]
    placed = replace(table, range_section=piece.astype(np.int32), _pieces={}, _by_section=None)
    return placed.chosen(np.lexsort((table.range_start, piece)))


def _concatenated(sections: list[tuple[int, Section]]) -> memoryview:
    """The bytes of all, with zeros between them."""
    if len(sections) == 1:
        return encoded(sections[0][1])
    out = bytearray()
    for position, section in sections:
        out += bytes(position - len(out))
        out += encoded(section)
    return memoryview(out)


def refuse_incomplete(left_out: Sequence[LeftOut], version: int) -> None:
    """Raise the error that tells all that a version cannot say."""
    if not left_out:
        return
    message = f"{counted(len(left_out), 'function')} cannot be written in version {version}"
    if any(one.reason == REFUSAL_WORDS[Refusal.FUNCTION_REACH] for one in left_out):
        message += "; version 3 reaches any distance"
    raise IncompleteError(f"{message}; nothing is written", left_out)


def _prove(made: Made, table: UnwindTable) -> None:
    """What the bytes say is what was to be said, at every address; anything else would be a defect of this program."""
    tables = []
    if made.contents:
        read = [batch.section for batch in batches(made.contents, address=made.address)]
        if made.sections[0][1].code_section is not None:
            # All are alike, so that they are one batch.
            read[0].code_section = np.concatenate([one.code_section for _, one in made.sections])
            read[0].code_address = np.concatenate([one.code_address for _, one in made.sections])
        tables = [to_table(section) for section in read]
    comparison = compare(table, joined(tables) if tables else table.chosen(np.zeros(0, np.int64)))
    unlike = (Verdict.DIFFERENT, Verdict.ONLY_ONE, Verdict.ONLY_OTHER)
    if any(comparison.code_bytes(verdict) for verdict in unlike):
        message = "the new section does not say what the former ones say; nothing is written"
        raise WalkbackError(message)
