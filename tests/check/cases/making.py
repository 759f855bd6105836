"""How a case is made: an input that breaks a rule at a place, or one that just does not break it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from elfbuilder import ElfBuilder, Image
from sframebuilder import Row, SFrameBuilder, row
from sframefiles import SFRAME, SIZE, TEXT, linked, small

Content = bytes | ElfBuilder | Image


@dataclass
class Case:
    """An input, and where it breaks the rule; a `near` one does not break it."""

    content: Content
    offset: int | None = None
    function: int | None = None
    row: int | None = None
    near: bool = False


@dataclass
class Cases:
    """By code."""

    made: dict[str, list[Callable[..., Case]]] = field(default_factory=dict)

    def __call__(self, code: str, make: Callable[..., Case]) -> None:
        self.made.setdefault(code, []).append(make)

    def of(self, code: str) -> Callable[[Callable[..., Case]], None]:
        return lambda make: self(code, make)


def at(builder: SFrameBuilder, label: str, function: int | None = None, row: int | None = None, **options: Any) -> Case:
    """Broken at a labelled place of raw bytes."""
    data, labels = builder.assemble()
    return Case(data, labels[label], function, row)


def in_file(builder: SFrameBuilder, label: str, function: int | None = None, row: int | None = None) -> Case:
    """Broken at a labelled place of a linked file."""
    data, labels = builder.assemble()
    return Case(linked(data), labels[label], function, row)


def fine(content: Content | SFrameBuilder) -> Case:
    return Case(content.bytes() if isinstance(content, SFrameBuilder) else content, near=True)


def one(rows: list[Row], *, version: int = 3, size: int = SIZE, **options: Any) -> SFrameBuilder:
    """A section of one function with these rows; options are of the section, or else of the function."""
    of_section = {"abi", "order", "flags", "fixed_ra", "fixed_fp"}
    builder = SFrameBuilder(version, address=SFRAME, **{k: v for k, v in options.items() if k in of_section})
    builder.function(TEXT, size, rows, **{k: v for k, v in options.items() if k not in of_section})
    return builder


def changed(number: int, builder: SFrameBuilder | None = None, **overrides: Any) -> SFrameBuilder:
    """`small` with fields of one function set."""
    builder = builder or small()
    builder.functions[number].overrides |= overrides
    return builder


PUSHED = [row(0, 1, [8]), row(1, 1, [16, -16])]
