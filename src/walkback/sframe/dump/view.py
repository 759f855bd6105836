"""What the dumps print: a section, and the functions chosen from it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from walkback.base.arrays import I64, U64, Numbers, ranked
from walkback.base.dataclass import dataclass
from walkback.base.render import LineForm, render
from walkback.sframe import layout
from walkback.sframe.files import SFrameSection, Source
from walkback.sframe.rules import shape_rules
from walkback.sframe.section import RowFault, Section
from walkback.symbols.demangle import Demangle
from walkback.symbols.named import shown_names
from walkback.table.rule import Rule, RuleArray


class Entry(NamedTuple):
    """What stands in the index for one function."""

    number: int
    name: str | None
    place: str
    """For a person: an address, or text section and offset."""
    code_section: str | None
    start: int
    size: int
    block_size: int
    """Of the repeating block; 0 for ordinary code."""
    masked: bool
    signal: bool
    fde_type: int
    pauth_key: int
    fre_type: int
    fre_offset: int
    num_fres: int
    rows: int
    fault: RowFault
    fault_offset: int


_PART = 1 << 14
"""Functions, and rows where nearly every one has a shape of its own, that are made into text at a time."""


@dataclass
class View:
    """One piece of a source, with the functions to print."""

    source: Source
    piece: SFrameSection
    chosen: I64
    """Numbers of the functions to print."""
    how: Demangle = False
    """How functions are named."""

    @classmethod
    def of(cls, source: Source, piece: SFrameSection, how: Demangle = False) -> View:
        """All functions."""
        return cls(source, piece, np.arange(len(piece.section.functions)), how)

    @property
    def section(self) -> Section:
        """What is printed."""
        return self.piece.section

    @cached_property
    def names(self) -> list[str | None]:
        """The name of every function of the section."""
        section, names = self.section, self.source.function_names(self.section)
        if not self.how:
            return names
        return shown_names(names, self.source.plt, section.code_address, section.functions.size, self.how)

    @cached_property
    def _rules(self) -> RuleArray | None:
        machine = self.section.machine
        return None if machine is None else shape_rules(self.section, machine)

    def rule(self, shape: int) -> Rule | None:
        """The rule of a shape; None where an unknown ABI gives the words no meaning."""
        return None if self._rules is None else Rule.from_record(self._rules[shape])

    def row_addresses(self, start: U64) -> U64:
        """Each row's address, from its function's `start`; in repeating blocks its offset in the block."""
        functions = self.section.functions
        base = np.where(functions.pc_type == layout.PC_TYPE_MASK, np.uint64(0), start)
        addresses: U64 = np.repeat(base, functions.rows)
        addresses += self.section.row_start
        return addresses

    def render(
        self,
        head: Callable[[I64], LineForm],
        row: Callable[[slice, list[bytes], Numbers], LineForm],
        text: Callable[[list[int]], list[bytes]],
        foot: LineForm,
        between: bytes = b"",
    ) -> Iterator[memoryview]:
        """The text of the chosen functions.

        `head` makes the line of some functions; `row` the line of some rows, from what `text` makes of their shapes
        and the choice of each row. Where there are very many of either, they are made a part at a time.
        """
        section = self.section
        functions = section.functions
        step = len(section.row_start) if len(section.shapes) <= _PART else _PART

        def rows_from(first: int) -> LineForm:
            rows = slice(first - first % max(step, 1), first - first % max(step, 1) + step)
            if step == len(section.row_start):
                return row(rows, text(list(range(len(section.shapes)))), section.row_shape)
            used, choice = ranked(section.row_shape[rows])
            return row(rows, text(used.tolist()), choice)

        lines = functools.lru_cache(1)(rows_from)
        for first in range(0, len(self.chosen), _PART):
            part = self.chosen[first : first + _PART]
            yield from render(head(part), lines, foot, functions.first_row[part], functions.rows[part], between)

    def shape_words(self, shape: int) -> list[int]:
        """The data words of a shape."""
        shapes = self.section.shapes
        words: list[int] = shapes.words[shapes.first_word[shape] : shapes.first_word[shape + 1]].tolist()
        return words

    def entries(self, numbers: I64) -> Iterator[Entry]:
        """The index entries of some functions."""
        section = self.section
        functions = section.functions
        columns = (
            section.code_address,
            np.full(len(functions), -1, np.int32) if section.code_section is None else section.code_section,
            functions.size,
            section.block_size,
            functions.pc_type == layout.PC_TYPE_MASK,
            section.signal,
            functions.fde_type,
            functions.pauth_key,
            functions.fre_type,
            functions.fre_offset,
            functions.num_fres,
            functions.rows,
            functions.fault,
            functions.fault_offset,
        )
        for number, start, code_section, *rest, fault, fault_offset in zip(
            numbers.tolist(), *(column[numbers].tolist() for column in columns), strict=True
        ):
            place = self.source.place(code_section, start)
            name = self.source.code_section_name(code_section)
            yield Entry._make((number, self.names[number], place, name, start, *rest, RowFault(fault), fault_offset))
