"""What was gathered, written as one section, or as several that follow each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from walkback.base.arch import S390X, ByteOrder
from walkback.base.arrays import I64
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, IncompleteError, LeftOut, WalkbackError
from walkback.base.text import counted
from walkback.elf import layout as elf_layout
from walkback.sections.linking.cut import Laid, OutOfReachError, cut, whole
from walkback.sections.linking.gather import Gathered
from walkback.sframe import layout
from walkback.sframe.batch import batches
from walkback.sframe.building import Built, build
from walkback.sframe.consumers import WALKERS, Consumer, check_version, consumer_named, version_for
from walkback.sframe.encoding import encode
from walkback.sframe.fitting import Fitted, fit
from walkback.sframe.rules import to_table
from walkback.sframe.section import Section
from walkback.sframe.words import Refusal
from walkback.table.comparing import compare
from walkback.table.settle import disjoint, settled
from walkback.table.table import UnwindTable, joined
from walkback.table.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Form:
    """How a section is to be written; what is None follows from what there is."""

    version: int | None = None
    pcrel: bool | None = None
    byteorder: ByteOrder | None = None
    consumer: Consumer | None = None
    """The program that it is written for."""

    @classmethod
    def wanted(
        cls,
        version: int | None = None,
        pcrel: bool | None = None,
        byteorder: ByteOrder | None = None,
        consumer: str | None = None,
    ) -> Self:
        """The form that is asked for; raises ValueError if the consumer wants another."""
        check_version(version)
        if consumer is None:
            return cls(version, pcrel, byteorder)
        walker = consumer_named(consumer, WALKERS)
        if pcrel is False and walker.flags & layout.F_FDE_FUNC_START_PCREL:
            raise ArgumentError(f"{walker.title} wants starts that count from their own fields")
        return cls(version_for(version, walker), pcrel, byteorder, walker)

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
    """What was made: one section, or several that follow each other."""

    section: Section
    """All functions as columns."""
    laid: Laid
    key: I64
    """For each function what it was laid out by."""
    address: int
    functions: int
    """How many of those that were to be said are there."""
    split: int
    """How many functions have several entries, because of their number of rows."""
    left_out: list[LeftOut]
    fitting: list[str]
    """What was done for the consumer, in words."""

    @property
    def contents(self) -> memoryview:
        """The bytes."""
        return self.laid.contents

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.section.row_start)

    @property
    def kind(self) -> int:
        """The type that an ELF section of it has: before errata 1 there was none of its own."""
        return section_kind(self.section)


def section_kind(section: Section) -> int:
    """The type that the ELF section has."""
    modern = section.version == 3 or section.pcrel
    return elf_layout.SHT_GNU_SFRAME if modern else elf_layout.SHT_PROGBITS


Key = Callable[[UnwindTable], I64]
"""Says for each range of a table into which of several sections it goes."""


def text_section(table: UnwindTable) -> I64:
    """A section for each text section."""
    return table.range_section.astype(np.int64)


def make(
    gathered: Gathered, table: UnwindTable, form: Form, *, address: int | None = 0, key: Key | None = None
) -> Made:
    """Write the functions of a table, which come from what was gathered, for a place; in an object there is none.

    What the version cannot say is left out and reported. With a `key` there is a complete section for each value of it.
    """
    if form.version_for(gathered) == 1 and table.machine is S390X:
        message = "version 1 does not know s390x"
        every = gathered.left_out(dict.fromkeys(table.range_origin.tolist(), message))
        raise IncompleteError(f"{message}; nothing is written", every)
    fitted, origins = fit(table, form.consumer, gathered.files), table.range_origin
    table = fitted.table
    here = set(table.range_origin.tolist()) if gathered.unreadable else set()
    reasons = {one: why for one, why in gathered.unreadable.items() if one in here}
    while True:
        said = _without(table, list(reasons))
        if key is not None:
            said = _ordered(said, key(said), address)
        built = _build(gathered, said, form, address, key)
        if built.refused:
            reasons |= {int(said.range_origin[one.range]): one.text(said) for one in built.refused}
            continue
        try:
            keys, laid = _laid(built, said, address, key)
            break
        except OutOfReachError as far:
            origins = said.range_origin[built.ranges[far.functions]].tolist()
            reasons |= dict.fromkeys(origins, Refusal.FUNCTION_REACH.words)
    section = built.section
    functions = _distinct(table.range_origin) - len(reasons)
    left_out = gathered.left_out(reasons)
    made = Made(
        section, laid, keys, address or 0, functions, len(built.split), left_out, _fitting(gathered, origins, fitted)
    )
    _prove(made, said)
    return made


def _fitting(gathered: Gathered, origins: I64, fitted: Fitted) -> list[str]:
    """What was done for the consumer."""
    unwanted = gathered.left_out({int(origins[index]): reason for index, reason in fitted.unwanted.items()})
    return [*(f"left out: {one.place}: {one.reason}" for one in unwanted), *fitted.notes()]


def _laid(built: Built, table: UnwindTable, address: int | None, key: Key | None) -> tuple[I64, Laid]:
    """The bytes, and for each function by what it is laid out."""
    if key is None:
        return np.zeros(0, np.int64), whole(built.section)
    keys = key(table)[built.ranges]
    built.section.code_section = None if address is not None else table.range_section[built.ranges]
    return keys, cut(built.section, keys, address=address)


def _build(gathered: Gathered, table: UnwindTable, form: Form, address: int | None, key: Key | None) -> Built:
    """All functions in one section; with a key in the order they have, as if each had a text section of its own."""
    version = form.version_for(gathered)
    if key is not None:
        table = replace(table, range_section=key(table).astype(np.int32))
    return build(
        table,
        version=version,
        pcrel=form.pcrel_for(gathered),
        byteorder=form.byteorder or gathered.byteorder,
        address=address or 0,
        frame_pointer=version < 3 and gathered.frame_pointer,
        leave_out=True,
        linked=address is not None and key is None,
    )


def empty_section(gathered: Gathered, form: Form) -> bytes:
    """The bytes of a section without functions."""
    none = gathered.table.chosen(np.zeros(0, np.int64))
    return encode(_build(gathered, none, form, 0, None).section)


def _ordered(table: UnwindTable, keys: I64, address: int | None) -> UnwindTable:
    """In the order of keys, and at absolute addresses by these."""
    if address is None:
        return table.chosen(np.argsort(keys, kind="stable"))
    return table.chosen(np.lexsort((table.range_start, keys)))


def _without(table: UnwindTable, functions: list[int]) -> UnwindTable:
    """All but some functions; what is left out does not let another show through, which nobody says to hold there."""
    if not functions:
        return table
    whole = settled(table) if _overlap(table) else table
    return whole.chosen(np.flatnonzero(~np.isin(whole.range_origin, functions)))


def _overlap(table: UnwindTable) -> bool:
    """Whether some code belongs to several functions."""
    _, start, last, _ = disjoint(table)
    return int((last - start).sum()) + len(start) != int(table.range_size.sum())


def _distinct(numbers: I64) -> int:
    """How many there are."""
    there = np.zeros(int(numbers.max(initial=-1)) + 1, np.bool_)
    there[numbers] = True
    return int(there.sum())


def refuse_incomplete(left_out: Sequence[LeftOut], version: int) -> None:
    """Raise the error that lists all that a version cannot say."""
    if not left_out:
        return
    message = f"{counted(len(left_out), 'function')} cannot be written in version {version}"
    if any(one.reason == Refusal.FUNCTION_REACH.words for one in left_out):
        message += "; version 3 reaches any distance"
    raise IncompleteError(f"{message}; nothing is written", left_out)


def _prove(made: Made, table: UnwindTable) -> None:
    """What the bytes say is what was to be said, at every address; anything else would be a defect of this program."""
    section, tables = made.section, []
    if made.contents:
        read = [batch.section for batch in batches(made.contents, address=made.address)]
        if section.code_section is not None:
            # All are alike, so that they are one batch.
            read[0].code_section, read[0].code_address = section.code_section, section.code_address
        tables = [to_table(one) for one in read]
    comparison = compare(table, joined(tables) if tables else table.chosen(np.zeros(0, np.int64)))
    unlike = (Verdict.DIFFERENT, Verdict.ONLY_ONE, Verdict.ONLY_OTHER)
    if any(comparison.code_bytes(verdict) for verdict in unlike):
        raise WalkbackError("the new section does not say what the former ones say; nothing is written")
