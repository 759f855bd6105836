"""The source lines of code, and the calls that compilers inlined there, from debugging information.

Where an address is, the innermost entry around it says which function the code was written in, and the line number
program from which line; each entry says where the function one level out called it.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import NamedTuple

import numpy as np

from walkback.base.arrays import I64, U64, distinct, first_of_each, ranked
from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.debuginfo._entries import scopes
from walkback.debuginfo._lines import LineProgram
from walkback.debuginfo.entrynames import EntryNames
from walkback.debuginfo.files import DebugFile, DebugSource, debug_source
from walkback.debuginfo.split import SplitUnits
from walkback.elf import DEBUG_ROOTS, ElfFile, FileSearch
from walkback.elf import layout as elf_layout
from walkback.symbols.holders import LastAbove
from walkback.symbols.sourceline import SourceLine

_TIMES = 8
_MORE = 1 << 20
"""How often each byte of the line number programs may be read, on average, and how many more."""
_LARGEST = (1 << 31) - 1
"""The number of a line."""


class DebugLines:
    """Those of one file.

    >>> lines = DebugLines(walkback.ElfFile("hello"))
    """

    def __init__(self, elf: ElfFile, search: FileSearch | None = None) -> None:
        self._elf = elf
        self._search = search or FileSearch(debug_roots=DEBUG_ROOTS)
        self._refused: str | None = None
        self._missing: dict[str, str] = {}
        """Names of files, and why they do not count."""
        self._names = EntryNames()
        self._programs: dict[int, _Program] = {}
        self._bytes_left = 0
        """Of line number programs: many may claim to be the same bytes."""

    @cached_property
    def source(self) -> DebugFile | None:
        """The file that has them, which is not read yet."""
        try:
            return debug_source(self._elf, self._search)
        except WalkbackError as error:
            self._refused = error.message
            return None

    @cached_property
    def _file(self) -> DebugFile | None:
        """The same, read."""
        try:
            self._bytes_left = _TIMES * len(self.source.sections.line) + _MORE if self.source is not None else 0
        except WalkbackError as error:
            self._refused = error.message
            return None
        return self.source

    @cached_property
    def _splits(self) -> SplitUnits | None:
        return SplitUnits(self._file, self._missing) if self._file is not None else None

    @property
    def is_split(self) -> bool:
        """Whether some of it is in files beside."""
        return self._file is not None and bool(self._file.units.split_name.any())

    @property
    def missing(self) -> list[str]:
        """Files of split units, and of what dwz moved, that were looked for in vain."""
        return list(self._missing)

    @property
    def trouble(self) -> str | None:
        """Why lines or inlined calls are not all there, once some were asked for; None if they are."""
        if self._refused is None and self.missing:
            (first, why), more = next(iter(self._missing.items())), len(self._missing) - 1
            return f"no inlined calls: {first} {why}" + (f", and {more} more such files" if more else "")
        return self._refused

    def find(self, addresses: U64) -> list[tuple[SourceLine, ...]]:
        """For each address its line, behind those of the calls that are inlined there, innermost first."""
        file = self._file
        nothing: list[tuple[SourceLine, ...]] = [()] * len(addresses)
        if file is None or not len(addresses):
            return nothing
        self._refused = self._refused or file.damage
        if file.lacks is not None:
            self._missing[file.lacks] = "is not there"
        wanted, number = ranked(np.asarray(addresses, np.uint64))
        owner = _owners(file.code, wanted, self._lowest)
        order = np.argsort(owner, kind="stable")
        order = order[owner[order] >= 0]
        chosen, first = first_of_each(owner[order])
        found: list[tuple[SourceLine, ...]] = [()] * len(wanted)
        groups = np.split(order, first[1:])[: len(chosen)]
        asked = [self._ask(file, unit, wanted[rows], rows) for unit, rows in zip(chosen.tolist(), groups, strict=True)]
        places: dict[DebugSource, set[int]] = {}
        for one in asked:
            places.setdefault(one.source, set()).update(one.places)
        for source, its in places.items():
            self._names.find(source, its)
        for one in asked:
            for row, lines in zip(one.rows.tolist(), self._answers(one), strict=True):
                found[row] = _with_names(lines)
        return [found[place] for place in number.tolist()]

    @cached_property
    def _lowest(self) -> int:
        """The lowest address of code: what the linker dropped is said to be below it."""
        wanted = np.uint64(elf_layout.SHF_ALLOC | elf_layout.SHF_EXECINSTR)
        sections = self._elf.sections
        code = sections["addr"][(sections["flags"] & wanted == wanted) & (sections["size"] > 0)]
        start = code if len(code) else self._elf.executable_ranges()[0]
        return int(start.min()) if len(start) else 0

    def _ask(self, file: DebugFile, unit: int, addresses: U64, rows: I64) -> _Asked:
        """What one unit says of addresses."""
        source, start = file.source, int(file.units.start[unit])
        split = self._splits.find(unit) if file.units.split_name[unit] and self._splits is not None else None
        if split is not None:
            source, start = split, int(split.starts[0])
        calls, unreadable = scopes(source.unit, start, addresses, self._lowest)
        if unreadable >= 0:
            self._refused = self._refused or f"the entry at {unreadable:#x} of .debug_info cannot be read"
        program = self._program(file, unit)
        return _Asked(source, rows, calls, program, *program.program.find(addresses, self._lowest))

    def _program(self, file: DebugFile, unit: int) -> _Program:
        """The line number program of a unit."""
        at = int(file.units.program[unit])
        if at not in self._programs:
            place = at if at <= len(file.sections.line) and self._bytes_left > 0 else -1
            program = LineProgram(file.sections.line, file.big, place)
            self._bytes_left -= max(program.end - at, 0)
            if place >= 0 and not program.is_known and len(file.sections.line):
                message = f"the line number program at {at:#x} of .debug_line cannot be read"
                self._refused = self._refused or message
            self._programs[at] = _Program(program, file.source, file.source.text(int(file.units.folder[unit])))
        return self._programs[at]

    def _answers(self, asked: _Asked) -> list[tuple[SourceLine, ...]]:
        """The lines of each address, innermost first."""
        path = asked.program.path
        calls = asked.calls[np.argsort(asked.calls[:, 0], kind="stable")]
        ends = np.searchsorted(calls[:, 0], np.arange(len(asked.rows) + 1)).tolist()
        places = calls[:, 1].tolist()
        # Many addresses are in the same calls.
        around: dict[tuple[int, ...], tuple[str | None, list[SourceLine]]] = {}
        answers: list[tuple[SourceLine, ...]] = []
        for begin, end, file, line in zip(ends, ends[1:], asked.file.tolist(), asked.line.tolist(), strict=False):
            entries = tuple(places[begin:end])
            if entries not in around:
                around[entries] = self._around(asked, calls[begin:end])
            name, outer = around[entries]
            known = (SourceLine(path(file) if line else None, line, name),) if entries or line else ()
            answers.append((*known, *outer))
        return answers

    def _around(self, asked: _Asked, calls: U64) -> tuple[str | None, list[SourceLine]]:
        """The name of the innermost function, and the lines of the others, innermost first."""
        names, lines = self._names.of(asked.source), []
        name: str | None = None
        at: tuple[str | None, int] | None = None
        for _, place, file, line, _ in calls[::-1].tolist():
            if at is None:
                name = names[place]
            else:
                lines.append(SourceLine(*at, names[place]))
            at = asked.program.path(file), line if line <= _LARGEST else 0
        return name, lines


class _Asked(NamedTuple):
    """The answers of one unit."""

    source: DebugSource
    rows: I64
    calls: U64
    program: _Program
    file: np.ndarray
    line: np.ndarray

    @property
    def places(self) -> list[int]:
        """Of the entries around the addresses."""
        places: list[int] = distinct(self.calls[:, 1]).tolist()
        return places


@dataclass(eq=False)
class _Program:
    """A line number program, and the names of its files."""

    program: LineProgram
    source: DebugSource
    folder: str | None

    def __post_init__(self) -> None:
        self._folders, self._files = self.program.tables()
        self._paths: dict[int, str | None] = {}

    def path(self, number: int) -> str | None:
        """The path of a file by its number."""
        if number not in self._paths:
            self._paths[number] = self._path(number)
        return self._paths[number]

    def _path(self, number: int) -> str | None:
        if number >= len(self._files):
            return None
        folder, text = self._files[number].tolist()
        name = self.source.text(text)
        if name is None:
            return None
        its = self.source.text(int(self._folders[folder])) if folder < len(self._folders) else None
        return os.path.join(self.folder or "", its or "", name)


def _with_names(lines: tuple[SourceLine, ...]) -> tuple[SourceLine, ...]:
    """Without the inlined calls whose names are in a missing file; the function around them is named elsewhere."""
    return (*(one for one in lines[:-1] if one.function), *lines[-1:])


def _owners(code: U64, addresses: U64, lowest: int) -> I64:
    """The unit of each address, of several the first of those whose code begins last; -1 where there is none."""
    code = code[code[:, 0] >= np.uint64(lowest)][::-1]
    code = code[np.argsort(code[:, 0], kind="stable")]
    if not len(code):
        return np.full(len(addresses), -1, np.int64)
    begin, behind, unit = (column.copy() for column in code.T)
    # What begins before may reach further.
    place = LastAbove(behind).find(np.searchsorted(begin, addresses, "right") - 1, addresses)
    return np.where(place >= 0, unit[place].astype(np.int64), -1)
