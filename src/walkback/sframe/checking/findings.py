"""What `check` found: each breach with its place, counted without bound and listed within one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from walkback.base.arrays import Bools, Numbers
from walkback.base.dataclass import dataclass
from walkback.sframe.checking.codes import CODES, Severity
from walkback.sframe.section import Section

LISTED = 20
"""Breaches of one rule that are listed by default; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of a rule."""

    code: str
    message: str
    offset: int | None = None
    """In the ELF section, or the raw bytes."""
    function: int | None = None
    symbol: str | None = None
    row: int | None = None
    """Within the function."""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return CODES[self.code].severity


class Findings:
    """Collects the findings of one section."""

    def __init__(self, listed: int = LISTED, ignored: frozenset[str] = frozenset()) -> None:
        self.broken: set[str] = set()
        """Rules that are broken, the ignored ones too: consumers do not ignore them."""
        self.counts: Counter[str] = Counter()
        self._found: list[Finding] = []
        self._listed = listed
        self._ignored = ignored
        self.broken_first: set[str] = set()
        """Those that were broken when the first piece had been looked at: consumers see no other."""
        self.base = 0
        """Position of the piece looked at; offsets are given from its start."""
        self.names: list[str | None] = []
        """Symbols of its functions."""

    def at(self, base: int, names: list[str | None]) -> None:
        """Go on with the piece that begins there; offsets are given from its start."""
        self.base, self.names = base, names

    def add(
        self,
        code: str,
        message: str,
        *,
        offset: int | None = None,
        function: int | None = None,
        row: int | None = None,
    ) -> None:
        """Note one breach."""
        self.broken.add(code)
        if code in self._ignored:
            return
        self.counts[code] += 1
        if self.counts[code] <= self._listed:
            symbol = self.names[function] if function is not None and function < len(self.names) else None
            place = None if offset is None else self.base + offset
            self._found.append(Finding(code, message, place, function, symbol, row))

    def add_all(self, code: str, breaches: Numbers, note: Callable[[int], None]) -> None:
        """Note a breach for each number, calling `note` (which calls `add`) only for those that are listed."""
        if not len(breaches):
            return
        self.broken.add(code)
        if code in self._ignored:
            return
        room = max(0, self._listed - self.counts[code])
        for number in breaches[:room].tolist():
            note(number)
        self.counts[code] += max(0, len(breaches) - room)

    def add_functions(
        self,
        code: str,
        section: Section,
        breaches: Bools | Numbers,
        message: Callable[[int], str],
        place: Callable[[int], int] | None = None,
    ) -> None:
        """Note a breach for each of the functions, given as marks or numbers; `place` is where, else its start field.

        The message is made only for those that are listed.
        """
        numbers = np.flatnonzero(breaches) if breaches.dtype == np.bool_ else breaches

        def note(function: int) -> None:
            offset = (place or section.field_offset)(function)
            self.add(code, message(function), offset=offset, function=function)

        self.add_all(code, numbers, note)

    def sorted(self) -> list[Finding]:
        """Worst first, then in order of the section."""
        return sorted(self._found, key=lambda one: (one.severity, one.offset if one.offset is not None else -1))

    def unlisted(self) -> dict[str, int]:
        """How many breaches of each rule are not listed."""
        shown = Counter(one.code for one in self._found)
        return {code: count - shown[code] for code, count in self.counts.items() if count > shown[code]}
