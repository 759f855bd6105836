"""What the dumps print: a section, and the functions chosen from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from walkback.arrays import I64, U64
from walkback.sframe import layout
from walkback.sframe.files import Piece, Source
from walkback.sframe.rules import shape_rules
from walkback.sframe.section import Section
from walkback.table import Rule


@dataclass
class View:
    """One piece of a source, with the functions to print."""

    source: Source
    piece: Piece
    chosen: I64
    """Numbers of the functions to print."""

    @classmethod
    def of(cls, source: Source, piece: Piece) -> View:
        """All functions."""
        return cls(source, piece, np.arange(len(piece.section.functions)))

    @property
    def section(self) -> Section:
        """What is printed."""
        return self.piece.section

    @cached_property
    def names(self) -> list[str | None]:
        """The symbol of every function of the section."""
        return self.source.function_names(self.section)

    @cached_property
    def rules(self) -> list[Rule] | None:
        """The rule of every shape; None where an unknown ABI gives the words no meaning."""
        machine = self.section.machine
        if machine is None:
            return None
        return [Rule.from_record(record) for record in shape_rules(self.section, machine)]

    def row_addresses(self, start: U64) -> U64:
        """Each row's address, from its function's `start`; in repeating blocks its offset in the block."""
        functions = self.section.functions
        base = np.where(functions.pc_type == layout.PC_TYPE_MASK, np.uint64(0), start)
        addresses: U64 = np.repeat(base, functions.rows) + self.section.row_start.astype(np.uint64)
        return addresses

    def shape_words(self, shape: int) -> list[int]:
        """The data words of a shape."""
        shapes = self.section.shapes
        words: list[int] = shapes.words[shapes.first_word[shape] : shapes.first_word[shape + 1]].tolist()
        return words

    def place(self, function: int) -> str:
        """Where a function starts, for a person: an address, or text section and offset."""
        return place_text(self.source, self.section, function)


def place_text(source: Source, section: Section, function: int) -> str:
    """Where a function starts, for a person: an address, or text section and offset."""
    address = int(section.code_address[function])
    if section.code_section is None:
        return f"{address:#x}"
    index = int(section.code_section[function])
    if source.elf is None or index <= 0:
        return f"(not relocated)+{address:#x}"
    return f"{source.elf.section_name(index)}+{address:#x}"
