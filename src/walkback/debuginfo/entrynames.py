"""What entries are called: the names of functions, for entries that are instances of others, perhaps in other files."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from walkback.base.arrays import distinct
from walkback.debuginfo._entries import names, parents
from walkback.debuginfo.files import DebugSource
from walkback.debuginfo.sections import LONGEST
from walkback.debuginfo.values import Kind

_MOST_STEPS = 16
"""From an entry to the one that has its name."""
_UNNAMED, _UNNAMED_TYPE, _CLOSURE, _UNKNOWN = "(anonymous namespace)", "{unnamed}", "{lambda}", "?"
"""As demanglers call them; a closure is a type without a name that can be called."""

Key = tuple[DebugSource, int]
"""An entry: its source, and its place there."""


class EntryNames:
    """The names of entries, each found once: the name of the symbol, or that in the source with what it is in."""

    def __init__(self) -> None:
        self._found: dict[DebugSource, dict[int, str | None]] = {}

    def of(self, source: DebugSource) -> dict[int, str | None]:
        """The names of all entries of a source that were found so far; None for none."""
        return self._found.setdefault(source, {})

    def find(self, source: DebugSource, places: Iterable[int]) -> None:
        """Find those of entries, all at once."""
        known = self.of(source)
        wanted = [place for place in places if place not in known]
        chains = _Chains(source, wanted)
        ends = {place: chains.follow(source, place) for place in wanted}
        scopes = _scopes({end for _, end in ends.values() if end is not None})
        for place, (name, end) in ends.items():
            known[place] = _within(scopes[end], name) if name and end is not None and end in scopes else name


class _Chains:
    """Entries, and those that they are instances of, which may have their names."""

    def __init__(self, source: DebugSource, places: list[int]) -> None:
        self._rows: dict[DebugSource, dict[int, list[int]]] = {}
        waiting = {source: set(places)}
        for _ in range(_MOST_STEPS):
            following: dict[DebugSource, set[int]] = {}
            for its, wanted in waiting.items():
                self._read(its, wanted, following)
            waiting = following

    def _read(self, source: DebugSource, places: set[int], following: dict[DebugSource, set[int]]) -> None:
        """Read entries of a source; `following` are those that they are instances of."""
        rows = self._rows.setdefault(source, {})
        wanted = np.array(sorted(places.difference(rows)), np.uint64)
        read = names(source.unit, source.starts_of(wanted), wanted)
        rows.update(zip(wanted.tolist(), read.tolist(), strict=True))
        linkage, _, origin, kind = read.T
        for there, kinds in ((source, Kind.ENTRY), (source.alternate, Kind.ALTERNATE_ENTRY)):
            origins = distinct(origin[(linkage == 0) & (kind == kinds)])
            if there is not None and len(origins):
                following.setdefault(there, set()).update(origins.tolist())

    def follow(self, source: DebugSource, place: int) -> tuple[str | None, Key | None]:
        """The name of an entry, and the entry that it is from, if that is not the name of a symbol."""
        name = None
        for _ in range(_MOST_STEPS):
            linkage, text, origin, kind = self._rows[source][place]
            if linkage or text:
                name = (source.text(linkage) if linkage else None) or source.text(text)
            there = source.alternate if kind == Kind.ALTERNATE_ENTRY else source
            if linkage:
                return name, None
            if kind == Kind.NOTHING or there is None:
                return name, (source, place) if text else None
            source, place = there, origin
        return name, None


def _within(scope: str, name: str) -> str:
    """A name with what it is in, or the beginning of that."""
    if name == "operator()" and scope.endswith(_UNNAMED_TYPE):
        scope = scope.removesuffix(_UNNAMED_TYPE) + _CLOSURE
    return f"{scope}::{name}"[:LONGEST]


def _scopes(ends: set[Key]) -> dict[Key, str]:
    """The namespaces and types that entries are in, of those that are in some."""
    found: dict[Key, str] = {}
    places: dict[DebugSource, list[int]] = {}
    for source, place in ends:
        places.setdefault(source, []).append(place)
    for source, its in places.items():
        wanted = np.array(sorted(its), np.uint64)
        starts = source.starts_of(wanted)
        for start in distinct(starts).tolist():
            own = wanted[starts == start]
            around: dict[int, list[str]] = {}
            for number, text, is_namespace in parents(source.unit, start, own).tolist():
                unnamed = _UNNAMED if is_namespace else _UNNAMED_TYPE
                around.setdefault(number, []).append((source.text(text) if text else unnamed) or _UNKNOWN)
            joined = {scope: "::".join(scope)[:LONGEST] for scope in set(map(tuple, around.values()))}
            for number, scope in around.items():
                found[source, int(own[number])] = joined[tuple(scope)]
    return found
