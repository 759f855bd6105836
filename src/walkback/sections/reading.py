"""What the unwind tables of a file say, put in order for SFrame of any version to say it.

They are its call frame information, the table of functions of a Go program, and the ORC table of the Linux kernel; and
for code that none of them describes, the code itself.
Functions are sorted. Where FDEs overlap the one that starts last holds, of those with one start the last in the file.
FDEs of code that is not in the file (left over from what the linker dropped) are left out and counted.

Most files have call frame information and no other table, so what reads those is imported for a file that has one, and
the proof where the code is to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from walkback.base.arrays import I64, U8, U64, Bools, distinct, ends_of, marked, runs, sums
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, MissingError, WalkbackError
from walkback.base.oneline import OneLine
from walkback.base.text import printable
from walkback.dwarf import layout
from walkback.dwarf.files import FrameSource, frame_sources, in_code
from walkback.dwarf.rules import to_table
from walkback.elf import ElfFile
from walkback.elf.golang import FUNCTIONS, is_go
from walkback.elf.kernel import ENTRIES
from walkback.sections.shares import Share
from walkback.symbols.named import FileNames
from walkback.table.rule import UNCHANGED, PartKind, Reason, RuleArray, of_kind
from walkback.table.settle import settled
from walkback.table.source import Kind, TableSource
from walkback.table.table import UnwindTable, joined

Tables = Kind | Literal["auto"]
"""What of a file is read: one of them, or all."""
_TABLES = ("auto", *get_args(Kind))
_WITHOUT_FRAMES = frozenset({"go", "orc", "code"})
"""Of these the ones that leave call frame information unread."""
_NAMES = {"go": "table of Go's functions", "orc": f"{ENTRIES} section", "code": "code"}
"""What is read by each of them, in words."""
_OWN_SECTIONS: dict[str, Kind] = {**dict.fromkeys(FUNCTIONS, "go"), ENTRIES: "orc"}
_WORTHWHILE = 1 << 12
"""Bytes of code without a table for which `auto` looks at the code."""


@dataclass(slots=True, repr=False)
class ReadTables(OneLine):
    """What the tables of a file say."""

    sources: list[TableSource]
    """Where they stand. Of code that several describe, the first one holds."""
    first: I64
    """For each source the number of its first function, and behind the last how many there are."""
    table: UnwindTable
    """What is to be said."""
    as_written: bool
    """Whether its rows and functions are as an assembler would have written them."""
    dead: int
    """How many functions have no code in the file."""
    empty: int
    """How many describe no code."""
    shadowed: int
    """How many have all their code described by others that hold there."""
    unplaced: I64
    """Functions that cannot be read so far that their code is known."""
    faults: U8
    """What is wrong with each function; 0 if nothing is."""
    functions: int
    """How many functions there are to be said."""
    lost_pointers: int
    """How many functions of Go lose the frame pointer, which is said to be unchanged."""
    names: FileNames
    """Names of the code, read when they are wanted."""

    @property
    def elf(self) -> ElfFile:
        """The file."""
        return self.sources[0].elf

    @property
    def frame_sources(self) -> list[FrameSource]:
        """Those of call frame information."""
        return [source for source in self.sources if isinstance(source, FrameSource)]

    @property
    def source_name(self) -> str:
        """The name of what is read: of a Go program's or a kernel's own table where it has one."""
        last = ([one for one in self.sources if one.kind != "code"] or self.sources)[-1]
        return FUNCTIONS[0] if last.kind == "go" else last.name

    @property
    def is_cfi(self) -> bool:
        """Whether all is call frame information."""
        return len(self.frame_sources) == len(self.sources)

    def sources_of(self, functions: I64) -> I64:
        """The number of the source of each function."""
        return np.searchsorted(self.first, functions, "right") - 1

    def source_of(self, number: int) -> TableSource:
        """Where a function stands."""
        return self.sources[int(self.sources_of(np.array([number]))[0])]

    def shares(self) -> list[Share]:
        """What each source gives, in their order."""
        there = np.concatenate((distinct(self.table.range_origin), self.unplaced))
        functions = np.bincount(self.sources_of(there), minlength=len(self.sources)).tolist()
        sizes = sums(self.sources_of(self.table.range_origin), self.table.range_size, len(self.sources)).tolist()
        return [Share(*one) for one in zip(self.sources, functions, sizes, strict=True)]

    def by_kind(self) -> dict[Kind, list[Share]]:
        """The same by kind."""
        found: dict[Kind, list[Share]] = {}
        for its in self.shares():
            found.setdefault(its.kind, []).append(its)
        return found

    def ruled_from_code(self) -> int:
        """Of the code from which a table is made the bytes that have a rule."""
        made = [number for number, source in enumerate(self.sources) if source.kind == "code"]
        ranges = np.isin(self.sources_of(self.table.range_origin), made)
        return int(_ruled_bytes(self.table)[ranges].sum())

    def left_out(self) -> Iterator[str]:
        """What is not to be said, in words."""
        for count, words in (
            (self.dead, "describe code that is not in the file"),
            (self.empty, "describe no code"),
            (self.shadowed, "describe code for which others hold"),
        ):
            if count:
                yield f"left out: {count} {'FDEs' if self.is_cfi else 'functions'} {words}"

    def names_of(self, ranges: I64) -> Iterator[str | None]:
        """The symbols of ranges, or the names that Go's table has."""
        table = self.table
        symbols = self.names.at(table.range_start[ranges], table.range_section[ranges])
        return (own or symbol for own, symbol in zip(self.own_names(ranges), symbols, strict=True))

    def own_names(self, ranges: I64) -> list[str | None]:
        """The names that Go's table has for ranges that are from it."""
        names: list[str | None] = [None] * len(ranges)
        origin = self.table.range_origin[ranges]
        for source, first, end in zip(self.sources, self.first, self.first[1:], strict=False):
            if source.kind == "go":
                for place in np.flatnonzero((origin >= first) & (origin < end)).tolist():
                    names[place] = source.name_of(int(origin[place] - first))
        return names


def _ruled_bytes(table: UnwindTable) -> U64:
    """How many bytes of each range have a rule."""
    number = np.repeat(np.arange(len(table.range_start)), table.range_rows)
    rows = runs(table.range_first_row, table.range_rows)
    begin = table.row_offset[rows].astype(np.uint64)
    end = table.range_size[number].astype(np.uint64)
    goes_on = np.flatnonzero(number[1:] == number[:-1])
    end[goes_on] = begin[goes_on + 1]
    has_rule = table.rules["cfa"]["kind"][table.row_rule[rows]] != PartKind.INEXPRESSIBLE
    return sums(number[has_rule], (end - begin)[has_rule], len(table.range_start))


def read_tables(
    elf: ElfFile,
    *,
    tables: Tables = "auto",
    as_written: bool = False,
    section: str | None = None,
    frames: Sequence[FrameSource] | None = None,
    fills: bool = False,
) -> ReadTables:
    """Read what is to be said; `frames` is the call frame information of the file, if that is known.

    With `fills`, code that no table describes gets the rules that its instructions show.
    `section` chooses call frame information by the name of its section; without one it is `.eh_frame`, or where there
    is none `.debug_frame`. It may also be that of Go's table of functions, or of the ORC table.
    """
    check_tables(tables)
    named = _OWN_SECTIONS.get(section) if section is not None else None
    if named is not None and tables in {"auto", named}:
        tables, section = named, None
    elif named is not None and tables == "cfi":
        raise ArgumentError(f"{section} is no call frame information", file=elf.name)
    if tables in _WITHOUT_FRAMES and section is not None:
        raise ArgumentError(f"{section} is not read where only the {_NAMES[tables]} is wanted", file=elf.name)
    sources = _sources(elf, tables, section, frames)
    if tables == "code" or (fills and tables == "auto" and section is None and not as_written):
        sources += _code(elf, sources, is_wanted=tables == "code")
    if not sources:
        raise MissingError(missing_words(tables, section), file=elf.name)
    found, faults = zip(*(_said(source, as_written) for source in sources), strict=True)
    first = np.cumsum([0, *map(len, faults)])
    table = joined(found)
    table.range_origin += np.repeat(first[:-1], [len(one) for one in found])
    faults_of_all = np.concatenate(faults)
    unplaced = (faults_of_all[table.range_origin] > 0) & (table.range_size == 0)
    live, some = in_code(elf, table) | unplaced, table.range_size > 0
    wanted = live & (some | as_written)
    numbers = np.cumsum([0, *(len(one) for one in found)])
    for source, begin, end in zip(sources, numbers, numbers[1:], strict=False):
        if source.kind == "code":  # which is made of the rest, and of what others cannot say
            wanted &= ~_said_worse(table, begin)
        elif source.name != sources[0].name:
            wanted[begin:end] &= ~_overlap(table, begin, end, wanted)
    kept = table.chosen(np.flatnonzero(wanted))
    said = kept if as_written else settled(kept, merge=True)
    there = marked(said.range_origin, len(faults_of_all))
    return ReadTables(
        sources=sources,
        first=first,
        table=said,
        as_written=as_written,
        dead=int((~live).sum()),
        empty=int((live & ~some & ~unplaced).sum()),
        shadowed=int((marked(table.range_origin[live & some], len(faults_of_all)) & ~there).sum()),
        unplaced=table.range_origin[unplaced],
        faults=faults_of_all,
        functions=int(there.sum()) + int(unplaced.sum()),
        lost_pointers=sum(
            int((source.table.rows_where(_loses_pointer(source.table.rules)) > 0).sum())
            for source in sources
            if source.kind == "go"
        ),
        names=FileNames(elf),
    )


def check_tables(tables: object) -> None:
    """Refuse what is not a word for tables."""
    if tables not in _TABLES:
        raise ArgumentError(f"there are no tables {tables!r}; known: {', '.join(_TABLES)}")


def source_words(source: TableSource) -> str:
    """A source, for a person."""
    if source.kind == "code":
        return "the code"
    return printable(source.name if source.bytes is not None else f"Go's table in {source.name}")


def _sources(
    elf: ElfFile, tables: Tables, section: str | None, frames: Sequence[FrameSource] | None
) -> list[TableSource]:
    """Where the tables stand.

    Go's and the kernel's take the place of `.debug_frame`. Go's is made from the same and right where functions change
    the stack; the kernel's has what is written in assembly, too.
    """
    found: list[TableSource] = []
    if tables not in _WITHOUT_FRAMES:
        every = list(frame_sources(elf, section=section)) if frames is None else frames
        found += [one for one in every if one.name == every[0].name]
    own: TableSource | None = None
    if section is None and tables in {"auto", "go"}:
        own = _own(_go, elf, is_needed=not found)
    if section is None and tables in {"auto", "orc"} and own is None:
        own = _own(_orc, elf, is_needed=not found)
    if own is None:
        return found
    return [*(one for one in found if one.name != layout.DEBUG_FRAME), own]


def _own(read: Callable[[ElfFile], TableSource | None], elf: ElfFile, *, is_needed: bool) -> TableSource | None:
    """A table of another kind; one that cannot be read is passed over where there is call frame information."""
    try:
        return read(elf)
    except WalkbackError:
        if is_needed:
            raise
        return None


def _go(elf: ElfFile) -> TableSource | None:
    if not is_go(elf):
        return None
    from walkback.gopclntab.files import go_source

    found = go_source(elf)
    return found if found is not None and len(found.functions) else None


def _orc(elf: ElfFile) -> TableSource | None:
    if not elf.sections_named(ENTRIES):
        return None
    from walkback.orc.files import orc_source

    found = orc_source(elf)
    return found if found is not None and len(found.entries) else None


def _code(elf: ElfFile, sources: Sequence[TableSource], *, is_wanted: bool) -> list[TableSource]:
    """The code that none of these sources describes, if it is worthwhile or wanted.

    Code that cannot be read is passed over where there are other tables.
    """
    from walkback.proof.fromcode import CodeSource
    from walkback.proof.functions import undescribed_code
    from walkback.proof.prove import Prover

    prover = Prover(elf, [one for one in sources if isinstance(one, FrameSource)] or None)
    none = np.zeros(0, np.uint64)
    start, size, is_lost = [none], [none], [np.zeros(0, np.bool_)]
    try:
        for source in sources:
            start.append(prover.image.addresses(source.table.range_start, source.table.range_section))
            size.append(source.table.range_size)
            is_lost.append(_by_expressions(source.table) if isinstance(source, FrameSource) else size[-1] < 0)
        starts, sizes, lost = np.concatenate(start), np.concatenate(size), np.concatenate(is_lost)
        if not is_wanted and not lost.any() and undescribed_code(prover, starts, sizes).size < _WORTHWHILE:
            return []
        left = undescribed_code(prover, starts[~lost], sizes[~lost])
        found = CodeSource(prover, left, fills=bool(sources))
        return [found] if is_wanted or len(found.table) else []
    except WalkbackError:
        if is_wanted:
            raise
        return []


def _by_expressions(table: UnwindTable) -> Bools:
    """Which ranges have rules that the table cannot say, as they are DWARF expressions."""
    cfa = table.rules["cfa"]
    return table.rows_where(of_kind(cfa, PartKind.INEXPRESSIBLE) & (cfa["offset"] == Reason.EXPRESSION)) > 0


def _said_worse(table: UnwindTable, count: int) -> Bools:
    """Ranges for which others have rules for more of the code: of the first with expressions, or of the rest there."""
    found = np.zeros(len(table), np.bool_)
    lost, others = np.flatnonzero(_by_expressions(table)[:count]), table.chosen(np.arange(count, len(table)))
    ruled, by_others = _ruled_bytes(table.chosen(lost)), _ruled_bytes(others)
    for number, its in zip(lost.tolist(), ruled.tolist(), strict=True):
        within = others.range_start - table.range_start[number] < table.range_size[number]
        within &= others.range_section == table.range_section[number]
        if by_others[within].sum() > its:
            found[number] = True
        else:
            found[count:] |= within
    return found


def missing_words(tables: Tables, section: str | None = None) -> str:
    """What the file does not have."""
    if section is not None:
        return f"there is no {section} section"
    return f"there is no {_NAMES.get(tables, '.eh_frame or .debug_frame section')}"


def _said(source: TableSource, as_written: bool) -> tuple[UnwindTable, U8]:
    """What one of them says, and what is wrong with each of its functions."""
    if isinstance(source, FrameSource):
        return to_table(source.frames, as_written=as_written), source.frames.fdes.fault
    table = replace(source.table, rules=_with_pointers(source.table.rules))
    return table, np.zeros(int(table.range_origin.max(initial=-1)) + 1, np.uint8)


def _with_pointers(rules: RuleArray) -> RuleArray:
    """The rules, with a frame pointer that is unchanged where it is lost.

    SFrame cannot say that it is lost. Go on s390x uses the register for other things; no rule of Go needs it there,
    and code that is not Go's is reached only through functions that switch stacks, where a walk ends.
    """
    said = rules.copy()
    said["fp"][_loses_pointer(rules)] = UNCHANGED.record()
    return said


def _loses_pointer(rules: RuleArray) -> Bools:
    lost: Bools = of_kind(rules["fp"], PartKind.UNDEFINED) & ~of_kind(rules["ra"], PartKind.UNDEFINED)
    return lost


def _overlap(table: UnwindTable, begin: int, end: int, wanted: Bools) -> Bools:
    """Which ranges of one source describe code that a former one describes; the file is a linked one."""
    before = np.flatnonzero(wanted[:begin] & (table.range_size[:begin] > 0))
    before = before[np.argsort(table.range_start[before], kind="stable")]
    starts = table.range_start[before]
    reach = np.maximum.accumulate(ends_of(starts, table.range_size[before]))
    start, size = table.range_start[begin:end], table.range_size[begin:end]
    last = np.searchsorted(starts, ends_of(start, size), "left") - 1
    if not len(before):
        return last >= 0
    return np.asarray((last >= 0) & (reach[np.maximum(last, 0)] > start), np.bool_)
