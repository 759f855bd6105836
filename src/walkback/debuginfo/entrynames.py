"""What entries are called: the names of functions, for entries that are instances of others, perhaps in other files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from walkback.base.arrays import U64
from walkback.debuginfo._entries import names, parents
from walkback.debuginfo.files import DebugSource
from walkback.debuginfo.values import Kind

_MOST_STEPS = 16
"""From an entry to the one that has its name."""
_UNNAMED, _UNNAMED_TYPE, _UNKNOWN = "(anonymous namespace)", "{unnamed}", "?"
"""As demanglers call them. Closures are types without a name, too."""

Key = tuple[int, int]
"""An entry: the number of its source, and its place there."""


class _Waiting(NamedTuple):
    """An entry that is looked at, and those whose name it has."""

    source: DebugSource
    keys: list[Key]


class EntryNames:
    """The names of entries, each found once: the name of the symbol, or that in the source with what it is in."""

    def __init__(self) -> None:
        self._found: dict[Key, str | None] = {}

    def of(self, source: DebugSource, place: int) -> str | None:
        """The name of an entry that was found before; None for none."""
        return self._found.get((id(source), place))

    def find(self, source: DebugSource, places: Iterable[int]) -> None:
        """Find those of entries, all at once."""
        keys = [(id(source), place) for place in places]
        waiting = {key: _Waiting(source, [key]) for key in keys if key not in self._found}
        self._found.update(dict.fromkeys(waiting))
        unqualified: dict[Key, _Waiting] = {}
        for _ in range(_MOST_STEPS):
            if not waiting:
                break
            following: dict[Key, _Waiting] = {}
            for its in _sources(waiting):
                self._look_at(its, waiting, following, unqualified)
            waiting = following
        for its in _sources(unqualified):
            self._qualify(its, unqualified)

    def _look_at(
        self,
        source: DebugSource,
        waiting: dict[Key, _Waiting],
        following: dict[Key, _Waiting],
        unqualified: dict[Key, _Waiting],
    ) -> None:
        """Take the names that entries of a source have; `following` are entries that others are instances of."""
        places = _places(source, waiting)
        rows = names(source.unit, source.starts_of(places), places).tolist()
        for place, (linkage, name, origin, kind) in zip(places.tolist(), rows, strict=True):
            keys = waiting[id(source), place].keys
            symbol = source.text(linkage) if linkage else None
            there = source.alternate if kind == Kind.ALTERNATE_ENTRY else source
            if symbol is not None or name:
                self._found.update(dict.fromkeys(keys, symbol or source.text(name)))
            if symbol is None and kind != Kind.NOTHING and there is not None:
                following.setdefault((id(there), origin), _Waiting(there, [])).keys.extend(keys)
            elif symbol is None and name:
                unqualified[id(source), place] = _Waiting(source, keys)

    def _qualify(self, source: DebugSource, entries: dict[Key, _Waiting]) -> None:
        """Put namespaces and types in front of names that are not those of symbols."""
        places = _places(source, entries)
        starts = source.starts_of(places)
        for start in np.unique(starts).tolist():
            own = places[starts == start]
            around: dict[int, list[str]] = {}
            for number, text, is_namespace in parents(source.unit, start, own).tolist():
                unnamed = _UNNAMED if is_namespace else _UNNAMED_TYPE
                around.setdefault(number, []).append((source.text(text) if text else unnamed) or _UNKNOWN)
            for number, scope in around.items():
                for key in entries[id(source), int(own[number])].keys:
                    if name := self._found[key]:
                        self._found[key] = "::".join((*scope, name))


def _sources(entries: dict[Key, _Waiting]) -> list[DebugSource]:
    """The sources of entries."""
    return list({id(one.source): one.source for one in entries.values()}.values())


def _places(source: DebugSource, entries: dict[Key, _Waiting]) -> U64:
    """The places of those of a source, which rise."""
    return np.array(sorted(place for its, place in entries if its == id(source)), np.uint64)
