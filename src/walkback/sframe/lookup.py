"""Which rule holds at an address or symbol of a file.

for match in lookup("a.out", "main+4"):
    print(match.rule)
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import Protocol

import numpy as np

from walkback.base.arrays import I32, I64, U64, Numbers
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.base.oneline import OneLine
from walkback.elf import ElfFile, Input
from walkback.sframe import layout
from walkback.sframe.files import SFrameSection, Source, read
from walkback.symbols import SymbolIndex
from walkback.symbols.plt import PltNames
from walkback.table.table import Found


@dataclass(frozen=True, slots=True)
class Place:
    """An address; in relocatable files an offset in a text section."""

    address: int
    section: int = -1


@dataclass(frozen=True, slots=True, repr=False)
class Match(OneLine):
    """What a section says of one place."""

    target: str
    """What was asked for."""
    place: Place
    source: Source
    piece: SFrameSection
    found: Found
    row_offset: int | None
    """Position of the row in the ELF section; None where the function has no row for the place."""
    row_bytes: bytes

    @property
    def row(self) -> int | None:
        """Number of the row in its function."""
        if self.found.row is None:
            return None
        return self.found.row - int(self.piece.section.functions.first_row[self.found.range])

    @property
    def name(self) -> str | None:
        """The symbol of the function."""
        if self.source.symbols is None:
            return None
        try:
            return self.source.symbols.name_at(self.found.start, self.place.section)
        except UnreadableError:
            return None


def find(source: Input, *targets: str | int, section: str | None = None, address: int = 0) -> Iterator[Match]:
    """Look up addresses (0x401136, also as text), functions (`main`, `main+4`) and offsets in sections (`.text+0x10`).

    A function is named by its symbol, or as people write it: `run(int)`, `run`, `puts@plt`.

    A target that several sections or symbols answer gives several matches, one that none answers none. The matches come
    section by section, as they are read, and of one section in the order of the targets.

    >>> [match] = walkback.find("a.out", "main+4")
    >>> match.name, match.found.rule.text(match.piece.table.machine)
    ('main', 'CFA = rbp+16, RA = *(CFA-8), FP = *(CFA-16)')
    """
    texts = [target if isinstance(target, str) else f"{index(target):#x}" for target in targets]
    for its in read(source, section=section, address=address):
        places = {text: resolve(its, text) for text in texts}
        for piece in its.pieces(faults=True):
            for target, meant in places.items():
                for place in meant:
                    match = find_in(its, piece, target, place)
                    if match is not None:
                        yield match


class Named(Protocol):
    """What names places in code."""

    @property
    def elf(self) -> ElfFile | None:
        """The file."""

    @property
    def relocatable(self) -> bool:
        """Whether places are offsets in sections."""

    @property
    def symbols(self) -> SymbolIndex | None:
        """The symbols of code."""

    @property
    def plt(self) -> PltNames | None:
        """The procedure linkage table."""


def resolve(source: Named, target: str) -> list[Place]:
    """The places that a target means in one source; none if it is a name that the source does not know."""
    named = _named(source, target, 0)
    if named:
        return named
    number = _number(target)
    if number is not None:
        if not source.relocatable or source.elf is None:
            return [Place(number)]
        return [Place(number, index) for index in range(1, len(source.elf.sections))]
    name, _, away = target.rpartition("+")
    offset = _number(away.strip())
    if name and offset is not None:
        return _named(source, name.strip(), offset) or _shown(source, name, offset)
    return _shown(source, target, 0)


def _shown(source: Named, name: str, offset: int) -> list[Place]:
    """By demangled symbol."""
    if source.symbols is None:
        return []
    try:
        named = source.symbols.lookup_shown(name)
    except UnreadableError:
        return []
    return [Place((address + offset) % 2**64, section) for section, address in named]


def _number(text: str) -> int | None:
    try:
        number = int(text, 0)
    except ValueError:
        return None
    return number if 0 <= number < 2**64 else None


def _named(source: Named, name: str, offset: int) -> list[Place]:
    """By symbol, or by section."""
    if source.symbols is None or source.elf is None:
        return []
    try:
        named = source.symbols.lookup(name)
        if not named and source.plt is not None:
            named = [(-1, address) for address in source.plt.lookup(name)]
        places = [Place((address + offset) % 2**64, section) for section, address in named]
        if not places:
            addresses = source.elf.sections["addr"]
            for index in source.elf.sections_named(name):
                away = (int(addresses[index]) + offset) % 2**64
                places.append(Place(offset, index) if source.relocatable else Place(away))
    except UnreadableError:
        return []
    return list(dict.fromkeys(places))


def find_in(source: Source, piece: SFrameSection, target: str, place: Place) -> Match | None:
    """The function and row of one piece that cover a place."""
    section = piece.section
    found = piece.table.find(place.address, section=place.section)
    if found is None:
        return None
    if found.row is None:
        return Match(target, place, source, piece, found, None, b"")
    offset = piece.position + section.row_offset(found.range, found.row)
    width = layout.FRE_START_SIZES[int(section.functions.fre_type[found.range])]
    length = width + int(section.shapes.length[section.row_shape[found.row]])
    return Match(target, place, source, piece, found, offset, bytes(source.data[offset : offset + length]))


def choose(source: Source, piece: SFrameSection, targets: tuple[str, ...]) -> tuple[I64, set[str]]:
    """The functions of a piece that targets name or that cover them, and the targets that chose any."""
    section = piece.section
    return covering(source, targets, section.code_section, section.code_address, section.functions.size)


def covering(
    source: Named, targets: tuple[str, ...], sections: I32 | None, start: U64, size: Numbers
) -> tuple[I64, set[str]]:
    """Which of some ranges of code targets name or cover, and the targets that chose any."""
    chosen = np.zeros(len(start), np.bool_)
    used = set()
    for target in targets:
        for place in resolve(source, target):
            here = np.ones(len(start), np.bool_)
            if sections is not None:
                here = sections == place.section
            pc = np.uint64(place.address)
            covering = here & ((pc == start) | ((pc > start) & (pc - start < size)))
            if covering.any():
                used.add(target)
            chosen |= covering
    return np.flatnonzero(chosen), used
