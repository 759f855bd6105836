"""The unwind tables that a file has, whatever their format, and pairs of them to compare."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, MissingError, UnreadableError, WalkbackError
from walkback.base.oneline import OneLine
from walkback.dwarf.files import frame_sources, in_code
from walkback.elf import ElfFile, Input, OpenFile, is_archive, is_elf
from walkback.elf.golang import FUNCTIONS
from walkback.elf.inputs import raise_first, split_address
from walkback.elf.kernel import ENTRIES
from walkback.packages.found import found_elf_files, found_one, input_name
from walkback.sections.reading import ReadTables, Tables, check_tables, read_tables
from walkback.sframe.files import read, sources_of
from walkback.symbols import SymbolIndex
from walkback.table import comparing
from walkback.table.comparing import Comparison, Stretch
from walkback.table.source import TableSource
from walkback.table.table import UnwindTable, joined

if TYPE_CHECKING:
    from walkback.proof import values as proof
    from walkback.proof.proof import Proof
    from walkback.proof.prove import Prover


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table and the section that it was read from."""

    name: str
    table: UnwindTable
    elf: ElfFile | None = None
    """Of another file than that compared with."""
    read: ReadTables | None = None
    """What it was put together from, if it was."""

    def source_of(self, function: int | None) -> str | None:
        """The name of the table that a function is in, by the number that it has there; None for none."""
        if function is None:
            return None
        return self.name if self.read is None else self.read.source_of(function).name


@dataclass(repr=False)
class Pair(OneLine):
    """Two tables of the same code."""

    elf: ElfFile
    tables: tuple[NamedTable, NamedTable]
    comparison: Comparison

    @property
    def one(self) -> str:
        """Where the first stands: the section, with the file if that is another."""
        return self.tables[0].name

    @property
    def other(self) -> str:
        """Where the other stands."""
        return self.tables[1].name

    def sources_of(self, stretch: Stretch) -> tuple[str | None, str | None]:
        """The tables that both rules of a stretch are from."""
        one, other = self.tables
        return one.source_of(stretch.range_one), other.source_of(stretch.range_other)

    def verdicts_of(self, stretches: Sequence[Stretch]) -> list[tuple[proof.Verdict | None, proof.Verdict | None]]:
        """What the machine code of the file says of both rules of each stretch; None where one has no rule to judge."""
        places = [self._prover.image_address(stretch.section, stretch.start) for stretch in stretches]
        address = np.array(places, np.uint64)
        size = np.array([stretch.size for stretch in stretches], np.uint64)
        one, other = (its.verdicts_of(address, size) for its in self._proofs)
        return list(zip(one, other, strict=True))

    @cached_property
    def _prover(self) -> Prover:
        from walkback.proof.prove import Prover

        return Prover(self.elf)

    @cached_property
    def _proofs(self) -> tuple[Proof, Proof]:
        one, other = (self._prover.prove(its.table) for its in self.tables)
        return one, other

    @property
    def file(self) -> str:
        """The path; for a member of an archive `archive(member)`."""
        return self.elf.name

    @cached_property
    def _symbols(self) -> SymbolIndex:
        return SymbolIndex(self.elf)

    def name_of(self, stretch: Stretch) -> str | None:
        """The symbol that holds a stretch, and how far behind it that begins; none if symbols cannot be read."""
        try:
            return self._symbols.describe(stretch.start, stretch.section)
        except UnreadableError:
            return None

    def section_name(self, section: int) -> str | None:
        """The name of a text section of a relocatable file; None for one that only the other file has."""
        return self.elf.section_name(section) if 0 < section < len(self.elf.sections) else None

    def place(self, section: int, address: int) -> str:
        """A place in the code, for a person."""
        if section < 0:
            return f"{address:#x}"
        return f"{self.section_name(section) or '(a section of the other file)'}+{address:#x}"


def call_frame_table(elf: ElfFile, *, section: str | None = None) -> NamedTable | None:
    """What the call frame information of a file says: `.eh_frame`, or `.debug_frame` where there is none."""
    found = list(frame_sources(elf, section=section))
    if not found:
        return None
    name = found[0].name
    table = joined([one.table for one in found if one.name == name])
    return NamedTable(name, table.chosen(np.flatnonzero(in_code(elf, table))))


def all_frames(elf: ElfFile) -> UnwindTable | None:
    """What all call frame information of a file says; None if there is none, or none that can be read."""
    with suppress(WalkbackError):
        tables = [source.table for source in frame_sources(elf)]
        return joined(tables) if tables else None
    return None


def sframe_table(elf: ElfFile, *, section: str | None = None) -> NamedTable | None:
    """What the SFrame of a file says; of several sections, and of several concatenated in one, all."""
    found = list(sources_of(elf, section=section))
    tables = [piece.table for source in found for piece in source.pieces(faults=True)]
    return NamedTable(found[0].name, joined(tables)) if tables else None


OTHERS = (*FUNCTIONS, ENTRIES)
"""Sections with unwind tables that are neither call frame information nor SFrame."""


def other_table(elf: ElfFile, section: str) -> NamedTable | None:
    """What the section of this name in `OTHERS` says; a Go program's may have another name than the one given."""
    found: TableSource | None
    if section == ENTRIES:
        if not elf.sections_named(ENTRIES):
            return None
        from walkback.orc.files import orc_source

        found = orc_source(elf)
    else:
        from walkback.gopclntab.files import go_source

        found = go_source(elf)
    return None if found is None else NamedTable(found.name, found.table)


def compare(
    source: Input,
    other: Input | None = None,
    *,
    section: str | None = None,
    other_section: str | None = None,
    tables: Tables | None = None,
    other_tables: Tables | None = None,
) -> Iterator[Pair]:
    """The tables to compare: of the file, or of each member of an archive, with those of another or of itself.

    The file gives its call frame information, or where it has none its ORC table, or its SFrame; the other its SFrame,
    or where it has none one of these. `other` can be raw bytes with their address, as in `raw.sframe@0x4000`.
    `tables` and `other_tables` choose others, as for `derive`.

    >>> added = walkback.add("hello", "hello.sframe")
    >>> [pair] = walkback.compare("hello.sframe")
    >>> pair.one, pair.other, pair.comparison.equal
    ('.eh_frame', '.sframe', True)
    """
    first, second = _Wanted(section, tables, frames_first=True), _Wanted(other_section, other_tables)
    two = None if other is None else _other(other, second)
    some = is_linked = False
    errors: list[WalkbackError] = []
    for elf in found_elf_files(source, errors):
        try:
            if first.is_named or second.is_named or two is not None:
                one = _first(elf, first)
                its = _first(elf, second) if two is None else _beside(two, elf)
            else:
                one, its = call_frame_table(elf) or other_table(elf, ENTRIES), sframe_table(elf)
            if one is not None and its is not None:
                some = True
                yield Pair(elf, (one, its), comparing.compare(one.table, its.table))
            is_linked |= not elf.is_relocatable
        except WalkbackError as error:
            errors.append(error.within(file=elf.name))
    raise_first(errors, "files")
    if not some:
        message = "the file does not have two tables to compare"
        if is_linked:
            message += "; `walkback add` makes a .sframe section"
        raise MissingError(message, file=input_name(source))


def _beside(other: NamedTable, elf: ElfFile) -> NamedTable:
    """A table of another file, with the numbers that its text sections have in this one.

    Sections are the same if they have the same name, and of several the same place among them.
    """
    if other.elf is None or other.elf.is_relocatable != elf.is_relocatable:
        if other.elf is not None or elf.is_relocatable:
            raise UnreadableError("a relocatable file can only be compared with another", file=elf.name)
        return other
    if not elf.is_relocatable:
        return other
    here = {key: number for number, key in enumerate(_numbered(elf))}
    beyond = len(here)
    numbers = np.array([here.get(key, beyond + number) for number, key in enumerate(_numbered(other.elf))], np.int32)
    table = replace(other.table, range_section=numbers[other.table.range_section])
    return replace(other, table=table)


def _numbered(elf: ElfFile) -> list[tuple[str, int]]:
    """The name of each section, and how many before it have the same."""
    seen: Counter[str] = Counter()
    keys = []
    for name in elf.section_names():
        keys.append((name, seen[name]))
        seen[name] += 1
    return keys


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which table of a file."""

    section: str | None
    tables: Tables | None
    frames_first: bool = False
    """Whether call frame information goes before SFrame."""

    def __post_init__(self) -> None:
        if self.tables is not None:
            check_tables(self.tables)

    @property
    def is_named(self) -> bool:
        return self.section is not None or self.tables is not None


def _first(elf: ElfFile, wanted: _Wanted) -> NamedTable | None:
    """One of the tables of a file. A section that is named is of the kind that its name says."""
    section = wanted.section
    if wanted.tables is not None:
        return _put_together(elf, wanted.tables, section)
    if section in OTHERS:
        return other_table(elf, section)
    if section is not None:
        frames = "frame" in section and "sframe" not in section
        return call_frame_table(elf, section=section) if frames else sframe_table(elf, section=section)
    if wanted.frames_first:
        return call_frame_table(elf) or other_table(elf, ENTRIES) or sframe_table(elf)
    return sframe_table(elf) or call_frame_table(elf) or other_table(elf, ENTRIES)


def _put_together(elf: ElfFile, tables: Tables, section: str | None) -> NamedTable | None:
    """What `derive` would say."""
    try:
        read = read_tables(elf, tables=tables, section=section, fills=True)
    except MissingError:
        return None
    return NamedTable(", ".join(dict.fromkeys(one.name for one in read.sources)), read.table, read=read)


def _other(other: Input, wanted: _Wanted) -> NamedTable:
    """The second table, from another file."""
    if isinstance(other, str | os.PathLike) and (raw := _at_address(os.fsdecode(other))) is not None:
        return raw
    elf = found_one(other)
    found = _first(elf, wanted)
    if found is None:
        raise MissingError(f"there is no {wanted.section or 'unwind table'}", file=elf.name)
    return replace(found, name=f"{elf.name} {found.name}", elf=elf)


def _at_address(other: str) -> NamedTable | None:
    """The table of raw section bytes whose address stands behind their path."""
    path, address = split_address(other)
    if address is None:
        return None
    data = OpenFile(path)
    if is_elf(data) or is_archive(data):
        raise ArgumentError(f"an address is for raw section bytes, and {path} has addresses of its own")
    tables = [piece.table for source in read(path, address=address) for piece in source.pieces(faults=True)]
    return NamedTable(other, joined(tables))
