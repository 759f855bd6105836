"""All names of the code of one file: its symbols, and the entries of its procedure linkage table."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.symbols.demangle import Demangle, shown
from walkback.symbols.index import SymbolIndex
from walkback.symbols.plt import PltNames

if TYPE_CHECKING:
    from walkback.base.arrays import I32, U64, Numbers
    from walkback.elf import ElfFile


@dataclass
class FileNames:
    """They are read when they are first asked for."""

    elf: ElfFile

    @property
    def relocatable(self) -> bool:
        """Whether places are offsets in sections."""
        return self.elf.is_relocatable

    @cached_property
    def symbols(self) -> SymbolIndex:
        """The symbols of code."""
        return SymbolIndex(self.elf)

    @cached_property
    def plt(self) -> PltNames | None:
        """The procedure linkage table of a linked file."""
        return None if self.relocatable else PltNames(self.elf)

    def at(self, starts: U64, sections: I32 | None) -> list[str | None]:
        """The symbol at each place; symbols that cannot be read name nothing."""
        try:
            return self.symbols.names_at(starts, sections)
        except UnreadableError:
            return [None] * len(starts)


def shown_names(
    names: list[str | None], plt: PltNames | None, starts: U64, sizes: Numbers, how: Demangle
) -> list[str | None]:
    """Names of functions as people read them: demangled, and with those of procedure linkage tables."""
    found = list(names)
    known = [number for number, name in enumerate(names) if name is not None]
    for number, name in zip(known, shown([names[number] or "" for number in known], how, parameters=True), strict=True):
        found[number] = name
    if plt is not None:
        entries = plt.names_of(starts, sizes)
        missing = [number for number, name in enumerate(names) if name is None and entries[number] is not None]
        others = shown([entries[number] or "" for number in missing], how, parameters=True)
        for number, name in zip(missing, others, strict=True):
            found[number] = name
    return found
