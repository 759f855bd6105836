"""One ELF file for people to look into: each function with its rows, what they cost, and what cannot be said.

The functions are those of its call frame information, put in order for SFrame to say them, or where it has none those
of its SFrame. Their numbers are the numbers that `walkback size`, `coverage` and `compare` have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from walkback.base.arrays import I64, U64, Bools, distinct
from walkback.base.dataclass import dataclass
from walkback.base.errors import MissingError, UnreadableError, WalkbackError
from walkback.dwarf.frames import Fdes
from walkback.elf import ElfFile, FileSearch
from walkback.reports.codeline import CodeLine, code_line
from walkback.reports.saved import Saved, saved_registers
from walkback.sections.derive import Derived
from walkback.sections.pairs import NamedTable, sframe_table
from walkback.sections.reading import ReadTables, Tables, missing_words, source_words
from walkback.sections.size import Sizes, existing_size, measure_frames
from walkback.sections.size.parts import RowLengths
from walkback.symbols import SymbolIndex
from walkback.symbols.demangle import demangle
from walkback.symbols.plt import PltNames
from walkback.table.comparing import Comparison, compare
from walkback.table.rule import Rule
from walkback.table.settle import settled
from walkback.table.source import Kind
from walkback.table.table import UnwindTable


@dataclass(slots=True)
class InVersion:
    """What a version of SFrame makes of each function."""

    bytes: I64
    """What the function takes in the section: its index entry and its rows."""
    reason: I64
    """Why the version cannot have it: a place in `reasons`, or 0 if it can."""
    reasons: list[tuple[str, str]]
    """The name of each reason, which does not change, and the words; the first stands for none."""


@dataclass
class ListedFunctions:
    """The functions of one file, sorted by section and address, and all numbers about them."""

    elf: ElfFile
    sizes: Sizes
    source: str
    """The section that they are from."""
    table: UnwindTable
    """Settled: ranges are disjoint, rows one after the other, and no row says what the one before it says."""
    read: ReadTables | None
    derived: dict[int, Derived]
    sframe: NamedTable | None
    """The SFrame that the file has, if it can be read."""
    unreadable: str | None
    """What is wrong with it if it cannot."""
    roots: Sequence[str] = field(repr=False)
    """The folders of separate debug files."""

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def kinds(self) -> list[Kind]:
        """The kinds of tables that they are from; of SFrame none."""
        return [] if self.read is None else list(self.read.by_kind())

    @cached_property
    def kind_of(self) -> I64:
        """The number of its kind for each function."""
        if self.read is None:
            return np.zeros(len(self), np.int64)
        numbers = np.array([self.kinds.index(its.kind) for its in self.read.shares()], np.int64)
        return numbers[self.read.sources_of(self.table.range_origin)]

    @cached_property
    def count(self) -> int:
        """How many functions there are; some are in several pieces, which `len` counts."""
        if self.read is not None:
            return self.read.functions
        return len(distinct(self.table.range_origin))

    @cached_property
    def comparison(self) -> Comparison | None:
        """What the SFrame of the file says against the call frame information, if it has both."""
        return None if self.read is None or self.sframe is None else compare(self.table, self.sframe.table)

    @cached_property
    def versions(self) -> dict[int, InVersion]:
        """By version what it makes of each function; versions that cannot be made at all are not there."""
        return {version: _in_version(made) for version, made in self.derived.items()}

    @cached_property
    def unplaced(self) -> list[tuple[int, str]]:
        """FDEs that cannot be read so far that their code is known, each with the reason."""
        made = next(iter(self.derived.values()), None)
        return [] if made is None else [(one.fde, one.reason) for one in made.uncovered if not one.size]

    @cached_property
    def saved(self) -> Saved | None:
        """The rules of other registers; None where there are none, or too many to be kept."""
        if self.read is None or not self.read.is_cfi:
            return None
        return saved_registers(self.elf, self.read.frame_sources, self.table)

    @cached_property
    def line(self) -> CodeLine:
        """All code on one line."""
        return code_line(self.elf, self.table.range_section, self.table.range_start, self.table.range_size)

    @cached_property
    def fde_place(self) -> tuple[I64, I64]:
        """Where each function's FDE begins in its section, and how many bytes it has there; 0 where it has none."""
        position = self._of_fdes([one.position for one in self._fdes])
        return position, self._of_fdes([one.end for one in self._fdes]) - position

    @cached_property
    def lsda(self) -> Bools:
        """Which functions have a language-specific data area, for exceptions."""
        has: Bools = self._of_fdes([one.lsda for one in self._fdes]) != 0
        return has

    @property
    def _fdes(self) -> list[Fdes]:
        return [] if self.read is None else [source.frames.fdes for source in self.read.frame_sources]

    def _of_fdes(self, columns: Sequence[U64 | I64]) -> I64:
        """What FDEs have of each function; 0 where a function is from another table."""
        every = np.concatenate([np.zeros(0, np.int64), *columns]).astype(np.int64)
        origin, found = self.table.range_origin, np.zeros(len(self), np.int64)
        of_fde = origin < len(every)
        found[of_fde] = every[origin[of_fde]]
        return found

    @cached_property
    def symbols(self) -> list[str]:
        """The symbol that each function has, with the distance behind it for a piece; empty where there is none."""
        index = SymbolIndex(self.elf, FileSearch(debug_roots=self.roots))
        start, section = self.table.range_start, self.table.range_section
        try:
            found = [name or "" for name in index.names_at(start, section)]
            if self.read is not None:
                own = self.read.own_names(np.arange(len(self)))
                found = [name or symbol for name, symbol in zip(own, found, strict=True)]
            missing = [number for number, name in enumerate(found) if not name]
            for number, name in zip(missing, self._behind(index, missing), strict=True):
                found[number] = name
        except UnreadableError:
            return [""] * len(self)
        return found

    def _behind(self, index: SymbolIndex, missing: list[int]) -> list[str]:
        """For functions at whose start there is no symbol the one that holds it."""
        start = self.table.range_start[missing]
        if self.elf.is_relocatable:
            sections = self.table.range_section[missing].tolist()
            return [index.describe(*place, sized=True) or "" for place in zip(start.tolist(), sections, strict=True)]
        rows = index.holders(start, sized=True)
        away = (start - index.starts(rows)).tolist()
        return [f"{name}+{by:#x}" if name else "" for name, by in zip(index.names_of(rows), away, strict=True)]

    @cached_property
    def names(self) -> list[str]:
        """The symbols as people write them; with parameters where names would be equal, and of linkage tables too."""
        symbols = [symbol or entry for symbol, entry in zip(self.symbols, self._entries, strict=True)]
        parts = [symbol.partition("+0x") for symbol in symbols]
        plain = demangle([base for base, _, _ in parts])
        bases: dict[str, set[str]] = {}
        for name, (base, _, _) in zip(plain, parts, strict=True):
            bases.setdefault(name, set()).add(base)
        several = [number for number, name in enumerate(plain) if len(bases[name]) > 1]
        whole = demangle([parts[number][0] for number in several], parameters=True)
        for number, name in zip(several, whole, strict=True):
            plain[number] = name
        return [name + plus + by for name, (_, plus, by) in zip(plain, parts, strict=True)]

    @cached_property
    def _entries(self) -> list[str]:
        """The name that each function has in a procedure linkage table; empty where it is in none."""
        if self.elf.is_relocatable:
            return [""] * len(self)
        try:
            found = PltNames(self.elf).names_of(self.table.range_start, self.table.range_size)
        except UnreadableError:
            return [""] * len(self)
        return [name or "" for name in found]

    @cached_property
    def inside(self) -> U64:
        """How many bytes of each function are in the file: a damaged FDE can go on behind its section."""
        line, text = self.line, self.line.text_of
        behind = self.table.range_start - line.start[text]
        return np.minimum(self.table.range_size, line.size[text] - behind)

    def tables_in_words(self) -> str:
        """The tables that they are from, for a person."""
        names = [self.source] if self.read is None else list(dict.fromkeys(map(source_words, self.read.sources)))
        *others, last = names
        return f"{', '.join(others)} and {last}" if others else last

    def table_names(self) -> list[str]:
        """The name of the table that each function is from."""
        if self.read is None:
            return [self.source] * len(self)
        names = [source.name for source in self.read.sources]
        return [names[number] for number in self.read.sources_of(self.table.range_origin).tolist()]

    def code_sections(self) -> list[str | None]:
        """The name of the section that each function is in."""
        names = [self.section_name(section) or None for section in self.line.section.tolist()]
        return [names[number] for number in self.line.text_of.tolist()]

    def section_name(self, section: int) -> str:
        """The name of a section of the file; empty for none."""
        return self.elf.section_name(section) if 0 < section < len(self.elf.sections) else ""


def functions_of(elf: ElfFile, roots: Sequence[str], tables: Tables | None = None) -> ListedFunctions:
    """Read a file; raises `MissingError` if it has no unwind table, or not what `tables` chooses."""
    measured = measure_frames(elf, tables=tables)
    if tables is not None and measured.read is None:
        raise MissingError(missing_words(tables), file=elf.name)
    sframe = unreadable = None
    try:
        measured.sizes.sframe = existing_size(elf)
        sframe = sframe_table(elf)
    except WalkbackError as error:
        if measured.read is None:
            raise
        error.file = None
        unreadable = str(error)
    if measured.read is not None:
        source, table = measured.read.sources[0].name, measured.read.table
    elif sframe is not None:
        source, table = sframe.name, settled(sframe.table, merge=True)
    else:
        raise MissingError("there is no .eh_frame, .debug_frame or .sframe section", file=elf.name)
    return ListedFunctions(
        elf, measured.sizes, source, table, measured.read, measured.derived, sframe, unreadable, roots
    )


def _in_version(made: Derived) -> InVersion:
    section, count = made.section, len(made.table)
    body: U64 | I64 = RowLengths.of(section).body + section.fde_size
    size = np.bincount(made.built.ranges, body, count).astype(np.int64)
    places = {(one.section, one.start): (one.code, one.reason) for one in made.uncovered if one.size}
    numbers: dict[tuple[str, str], int] = {("", ""): 0}
    reason = np.zeros(count, np.int64)
    for refused in made.built.refused:
        where = (int(made.table.range_section[refused.range]), int(made.table.range_start[refused.range]))
        reason[refused.range] = numbers.setdefault(places[where], len(numbers))
    return InVersion(size, reason, list(numbers))


def rules_of(table: UnwindTable) -> list[list[Any]]:
    """Each rule as text, and as kind, register and offset of CFA, return address and frame pointer."""
    found = []
    for record in table.rules:
        rule = Rule.from_record(record)
        parts = (rule.cfa, rule.ra, rule.fp)
        texts = [part.text(table.machine) for part in parts]
        found.append([*texts, *([int(part.kind), part.register, part.offset] for part in parts), int(rule.ra_signed)])
    return found
