"""Names of functions as people read them: demangled, and with those of procedure linkage tables."""

from __future__ import annotations

import numpy as np

from walkback.sframe.files import Source
from walkback.sframe.lookup import Match
from walkback.sframe.section import Section
from walkback.symbols.demangle import Demangle, shown


def shown_names(source: Source, section: Section, how: Demangle) -> list[str | None]:
    """The name of each function of a section."""
    names = source.function_names(section)
    known = [number for number, name in enumerate(names) if name is not None]
    for number, name in zip(known, shown([names[number] or "" for number in known], how, parameters=True), strict=True):
        names[number] = name
    if source.plt is not None:
        entries = source.plt.names_of(section.code_address, section.functions.size)
        missing = [number for number, name in enumerate(names) if name is None and entries[number] is not None]
        found = shown([entries[number] or "" for number in missing], how, parameters=True)
        for number, name in zip(missing, found, strict=True):
            names[number] = name
    return names


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
            inside = (name for name, low, size in match.source.plt.tables() if int(low) <= start < int(low) + int(size))
            name = next(inside, None)
    return f"{name or f'function {match.found.range}'}+{match.place.address - start:#x}"
