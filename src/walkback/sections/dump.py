"""What the tables of a file say, whatever their format: each function, the table that it is from, and its rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Literal, TypedDict

import numpy as np

from walkback.base.arrays import I64, U64, distinct, runs
from walkback.base.dataclass import dataclass
from walkback.base.errors import MissingError, WalkbackError
from walkback.base.render import LineForm, render
from walkback.base.text import counted, encoded, printable
from walkback.dwarf.layout import EntryFault
from walkback.elf import Input
from walkback.elf.inputs import raise_first
from walkback.packages.found import found_elf_files, input_name
from walkback.sections.reading import ReadTables, Tables, read_tables, source_words
from walkback.sections.shares import ShareObject
from walkback.sframe.dump.json import DescribedObject, RowObject, rule_object
from walkback.sframe.dump.readable import function_title, padding, rule_lines
from walkback.sframe.lookup import covering
from walkback.symbols.demangle import Demangle
from walkback.symbols.named import shown_names
from walkback.table.rule import Rule
from walkback.table.table import UnwindTable


def read_all(source: Input, *, tables: Tables, section: str | None = None) -> Iterator[ReadTables]:
    """The tables of a file, or of each ELF file in an archive or a package that has some."""
    errors: list[WalkbackError] = []
    missing: MissingError | None = None
    some = False
    for elf in found_elf_files(source, errors):
        try:
            yield read_tables(elf, tables=tables, section=section, fills=True)
            some = True
        except MissingError as error:
            missing = missing or error
        except WalkbackError as error:
            errors.append(error.within(file=elf.name))
    raise_first(errors, "files")
    if not some:
        raise MissingError(missing.message if missing else "there is no ELF file", file=input_name(source))


@dataclass
class TableView:
    """The tables of one file, with the functions to print."""

    read: ReadTables
    chosen: I64
    """Numbers of the ranges to print."""
    how: Demangle = False
    """How functions are named."""

    @classmethod
    def of(cls, read: ReadTables, targets: tuple[str, ...], how: Demangle = False) -> tuple[TableView, set[str]]:
        """The functions that targets name or that cover them, and the targets that chose any; without targets all."""
        table = read.table
        if not targets:
            return cls(read, np.arange(len(table)), how), set()
        sections = table.range_section if read.names.relocatable else None
        chosen, used = covering(read.names, targets, sections, table.range_start, table.range_size)
        others = set(targets) - used
        if others:  # as Go calls functions in its own table
            names = list(read.names_of(np.arange(len(table))))
            more = np.array([number for number, name in enumerate(names) if name in others], np.int64)
            chosen = distinct(np.append(chosen, more))
            used |= others.intersection(names)
        return cls(read, chosen, how), used

    @property
    def faults(self) -> int:
        """How many of the functions cannot be read whole."""
        read, origin = self.read, self.read.table.range_origin
        bad = int((read.faults[distinct(origin[self.chosen])] != 0).sum())
        return bad + (len(read.unplaced) if len(self.chosen) == len(origin) else 0)

    @cached_property
    def _table(self) -> UnwindTable:
        return self.read.table.chosen(self.chosen)

    @cached_property
    def _functions(self) -> list[_Function]:
        table, read, names = self._table, self.read, list(self.read.names_of(self.chosen))
        if self.how:
            names = shown_names(names, read.names.plt, table.range_start, table.range_size, self.how)
        return [
            _Function(number, name, read.elf.section_name(section) if section >= 0 else None, *columns)
            for number, name, section, *columns in zip(
                self.chosen.tolist(),
                names,
                table.range_section.tolist(),
                table.range_start.tolist(),
                table.range_size.tolist(),
                table.range_block.tolist(),
                table.range_signal.tolist(),
                table.range_pauth_key.tolist(),
                read.sources_of(table.range_origin).tolist(),
                read.faults[table.range_origin].tolist(),
                strict=True,
            )
        ]

    def text(self, *, colour: bool = False) -> Iterator[bytes | memoryview]:
        """For people; `colour` is for terminals."""
        yield encoded("\n".join(_facts(self.read)) + "\n")
        table = self._table
        row = runs(table.range_first_row, table.range_rows)
        block = np.repeat(table.range_block > 0, table.range_rows)
        addresses: U64 = np.where(block, np.uint64(0), np.repeat(table.range_start, table.range_rows))
        addresses += table.row_offset[row]
        lines = LineForm(
            ([b"   0x", b"  +0x"], block),
            ("hex", addresses),
            padding(addresses),
            (rule_lines(_rules(table), table.machine), table.row_rule[row]),
        )
        yield from self._rendered(lambda one: _head(self.read, one, colour), lines, b"")

    def json(self) -> Iterator[bytes | memoryview]:
        """One object a line: first one for the file, then one for each function."""
        yield json.dumps(_object(self.read)).encode() + b"\n"
        table = self._table
        row = runs(table.range_first_row, table.range_rows)
        rules = [json.dumps(rule_object(rule, table.machine))[1:].encode() for rule in _rules(table)]
        lines = LineForm(b'{"offset": ', ("unsigned", table.row_offset[row]), b", ", (rules, table.row_rule[row]))
        yield from self._rendered(
            lambda one: json.dumps(_function_object(self.read, one))[:-1] + ', "rows": [', lines, b"]}\n", b", "
        )

    def _rendered(
        self, head: Callable[[_Function], str], lines: LineForm, foot: bytes, between: bytes = b""
    ) -> Iterator[memoryview]:
        rows = self._table.range_rows
        heads = [encoded(head(one)) for one in self._functions]
        form = LineForm((heads, np.arange(len(heads))))
        yield from render(form, lines, LineForm(foot), np.cumsum(rows) - rows, rows, between)


class TableObject(TypedDict):
    """The tables of a file, as JSON."""

    type: Literal["table"]
    """The type of the object."""
    file: str
    """The file."""
    machine: str
    """`AMD64`, `AArch64` or `s390x`."""
    sources: list[ShareObject]
    """The tables that were read."""
    functions: int
    """The number of functions."""
    dead: int
    """The number of functions left out because their code is not in the file."""
    empty: int
    """The number left out because they cover no code."""
    shadowed: int
    """The number left out because others describe their code."""


class HeadObject(DescribedObject):
    """A function of a file without its rows, as JSON."""

    source: str
    """The table that it is from."""


class FunctionObject(HeadObject):
    """A function of a file, as JSON."""

    rows: list[RowObject]
    """Its rows."""


@dataclass(frozen=True, slots=True)
class _Function:
    number: int
    name: str | None
    section: str | None
    start: int
    size: int
    block: int
    signal: bool
    pauth_key: int
    source: int
    fault: int


def _rules(table: UnwindTable) -> list[Rule]:
    return [Rule.from_record(record) for record in table.rules]


def _facts(read: ReadTables) -> Iterator[str]:
    functions, rows = counted(read.functions, "function"), counted(len(read.table.row_offset), "row")
    yield f"{printable(read.elf.name)}: {read.table.machine.name}, {functions}, {rows}"
    for its in read.shares():
        size = counted(its.code_bytes, "byte")
        yield f"  from {source_words(its.source)}: {counted(its.functions, 'function')}, {size} of code"
    yield from (f"  {line}" for line in read.left_out())


def _head(read: ReadTables, one: _Function, colour: bool) -> str:
    """Name, extent and properties of a function."""
    place = f"{one.start:#x}" if one.section is None else printable(f"{one.section}+{one.start:#x}")
    words = [f"{place}, {counted(one.size, 'byte')}"]
    words += [f"repeating blocks of {one.block}"] if one.block else []
    words += ["signal frame"] if one.signal else []
    words += ["key B"] if one.pauth_key else []
    words.append(f"from {source_words(read.sources[one.source])}")
    fault = f"  ! {EntryFault(one.fault).words}\n" if one.fault else ""
    return f"\n{function_title(one.name, one.number, colour)}  {', '.join(words)}\n{fault}"


def _object(read: ReadTables) -> TableObject:
    return {
        "type": "table",
        "file": read.elf.name,
        "machine": read.table.machine.name,
        "sources": [its.as_object() for its in read.shares()],
        "functions": read.functions,
        "dead": read.dead,
        "empty": read.empty,
        "shadowed": read.shadowed,
    }


def _function_object(read: ReadTables, one: _Function) -> HeadObject:
    return {
        "type": "function",
        "index": one.number,
        "name": one.name,
        "code_section": one.section,
        "start": one.start,
        "size": one.size,
        "block_size": one.block,
        "signal": one.signal,
        "pauth_key": "AB"[one.pauth_key],
        "source": read.sources[one.source].name,
        "fault": EntryFault(one.fault).words or None,
    }
