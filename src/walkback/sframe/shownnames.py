"""Names of functions as people read them: demangled, and with those of procedure linkage tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walkback.sframe.files import Source
from walkback.sframe.lookup import Match
from walkback.sframe.section import Section
from walkback.symbols.demangle import Demangle, shown
from walkback.symbols.plt import PltNames

_ENTRY = 16
"""The most bytes of an entry of a procedure linkage table; a longer function describes a table of them."""


def shown_names(source: Source, section: Section, how: Demangle) -> list[str | None]:
    """The name of each function of a section."""
    names = source.function_names(section)
    known = [number for number, name in enumerate(names) if name is not None]
    for number, name in zip(known, shown([names[number] or "" for number in known], how, parameters=True), strict=True):
        names[number] = name
    if source.plt is not None:
        _name_tables(source, source.plt, section, names, how)
    return names


def _name_tables(source: Source, plt: PltNames, section: Section, names: list[str | None], how: Demangle) -> None:
    """Name functions without symbols in procedure linkage tables: by their entry, or by the section of a table."""
    starts = section.code_address
    for name, low, size in _tables(source):
        for number in np.flatnonzero(starts - low < size).tolist():
            if names[number] is None:
                (entry,), begin = plt.locate(starts[number : number + 1])
                alone = begin[0] == starts[number] and section.functions.size[number] <= _ENTRY
                names[number] = shown([entry], how, parameters=True)[0] if alone and entry else name


def _tables(source: Source) -> Iterator[tuple[str, np.uint64, np.uint64]]:
    """The sections of procedure linkage tables: name, address and size."""
    elf = source.elf
    for number, name in enumerate(elf.section_names() if elf is not None else []):
        if elf is not None and name.startswith((".plt", ".iplt")):
            yield name, elf.sections["addr"][number], elf.sections["size"][number]


def shown_place(match: Match, how: Demangle) -> str:
    """The name of what covers a place, and how far the place is into it."""
    name, start = match.name, match.found.start
    if name is not None:
        (name,) = shown([name], how, parameters=True)
    elif match.source.plt is not None:
        (entry,), begin = match.source.plt.locate(np.array([match.place.address], np.uint64))
        if entry is not None:
            (name,), start = shown([entry], how, parameters=True), int(begin[0])
        else:
            inside = (name for name, low, size in _tables(match.source) if int(low) <= start < int(low) + int(size))
            name = next(inside, None)
    return f"{name or f'function {match.found.range}'}+{match.place.address - start:#x}"
