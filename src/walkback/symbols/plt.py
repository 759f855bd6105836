"""Names of procedure linkage table entries, as `write@plt`, which no symbol table has.

Each entry jumps to where a word of the global offset table points, and a relocation of that word says whose address
goes there. Which word it is stands in the instructions of the entry, so that the order of entries plays no part.
"""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from walkback.base.arrays import I64, U64, are_among, is_one_of
from walkback.base.errors import WalkbackError
from walkback.elf import layout
from walkback.elf.sectionless import with_sections
from walkback.elf.stubs import SLOT_KINDS, stubs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from walkback.elf import ElfFile

_SECTIONS = (".plt", ".plt.sec", ".plt.got", ".iplt")
_GLOB_DAT, _JUMP_SLOT, _IRELATIVE = range(3)
_ENTRY = 16
"""The most bytes of an entry; a longer function describes a table of them."""


class PltNames:
    """The entries of one file; read when first asked for."""

    def __init__(self, elf: ElfFile) -> None:
        self._given = elf

    @cached_property
    def _elf(self) -> ElfFile:
        return with_sections(self._given)

    def locate(self, addresses: U64) -> tuple[list[str | None], U64]:
        """Of each address the name of the entry that holds it, and where that begins; None and 0 if there is none."""
        start, end, names = self._entries
        if not len(start):
            return [None] * len(addresses), np.zeros(len(addresses), np.uint64)
        rows = np.searchsorted(start, addresses, "right") - 1
        inside = (rows >= 0) & (addresses < end[rows])
        found = [names[row] if here else None for row, here in zip(rows.tolist(), inside.tolist(), strict=True)]
        named = np.array([name is not None for name in found], np.bool_)
        return found, np.where(named, start[rows], np.uint64(0))

    def entries(self) -> tuple[list[int], list[int], list[str | None]]:
        """Where each entry begins and ends, and its name."""
        start, end, names = self._entries
        return start.tolist(), end.tolist(), names

    def names_in(self, words: Iterable[int]) -> dict[int, str]:
        """The functions, as `write@plt`, whose addresses the loader puts into these words of the file."""
        if self._elf.machine in SLOT_KINDS:
            with contextlib.suppress(WalkbackError):
                return self._targets(np.array([word for word in words if 0 <= word < 1 << 64], np.uint64))
        return {}

    def words(self) -> Iterator[tuple[U64, list[str], U64]]:
        """By table the words where the loader puts addresses of functions, their names, and the addresses, or 0."""
        elf = self._elf
        with contextlib.suppress(WalkbackError):
            for symtab, table, types in self._relocations():
                symbols, numbers = elf.symbols(symtab), (table["info"] >> np.uint64(32)).astype(np.int64)
                chosen = is_one_of(types, *SLOT_KINDS[elf.machine][:_IRELATIVE]) & (numbers > 0)
                chosen &= numbers < len(symbols)
                its = symbols[numbers[chosen]]
                names = elf.strings(int(elf.sections["link"][symtab]), its["name_offset"].tolist())
                own = np.where(its["section"] == layout.SHN_UNDEF, np.uint64(0), its["value"].astype(np.uint64))
                yield table["offset"][chosen], names, own

    def lookup(self, name: str) -> list[int]:
        """Where the entries of this name, as `write@plt`, begin."""
        start, _, names = self._entries
        return [address for address, known in zip(start.tolist(), names, strict=True) if known == name]

    def names_of(self, starts: U64, sizes: npt.NDArray[np.unsignedinteger[Any]]) -> list[str | None]:
        """The names of functions by their addresses: of an entry, or of the section where one describes more of it."""
        found: list[str | None] = [None] * len(starts)
        for section, low, size in self.tables():
            for number in np.flatnonzero(starts - low < size).tolist():
                (entry,), begin = self.locate(starts[number : number + 1])
                alone = begin[0] == starts[number] and sizes[number] <= _ENTRY
                found[number] = entry if alone and entry else section
        return found

    def tables(self) -> Iterator[tuple[str, np.uint64, np.uint64]]:
        """The sections of procedure linkage tables: name, address and size."""
        sections = self._elf.sections
        for number, name in enumerate(self._elf.section_names()):
            if name.startswith((".plt", ".iplt")):
                yield name, sections["addr"][number], sections["size"][number]

    @cached_property
    def _entries(self) -> tuple[U64, U64, list[str | None]]:
        nothing = np.zeros(0, np.uint64)
        if self._elf.machine not in SLOT_KINDS:
            return nothing, nothing, []
        # A table of entries is a help and nothing more: a damaged one has no names.
        with contextlib.suppress(WalkbackError):
            parts = list(self._sections())
            if parts:
                start, end, slot = (np.concatenate(column) for column in zip(*parts, strict=True))
                order = np.argsort(start, kind="stable")
                wanted = self._targets(slot)
                return start[order], end[order], [wanted.get(word) for word in slot[order].tolist()]
        return nothing, nothing, []

    def _sections(self) -> Iterator[tuple[U64, U64, U64]]:
        """Beginning, end and word of the entries of each section."""
        elf = self._elf
        for name in _SECTIONS:
            for index in elf.sections_named(name):
                contents = np.frombuffer(elf.section_data(index), np.uint8)
                address, entry_size = (int(elf.sections[field][index]) for field in ("addr", "entsize"))
                found = stubs_of(elf.machine, contents, address, entry_size)
                ends = np.append(found.start[1:], np.uint64((address + len(contents)) & (2**64 - 1)))
                yield found.start, ends, found.slot

    def _relocations(self) -> Iterator[tuple[int, npt.NDArray[Any], U64]]:
        """The tables of what the loader relocates: the symbol table of each, its rows, and their types."""
        elf = self._elf
        for index in elf.sections_of_type(layout.SHT_RELA) if elf.machine in SLOT_KINDS else ():
            if int(elf.sections["flags"][index]) & layout.SHF_ALLOC:
                table = elf.entries(index, layout.RELA, keep=False)
                yield int(elf.sections["link"][index]), table, table["info"] & np.uint64(0xFFFFFFFF)

    def _targets(self, slots: U64) -> dict[int, str]:
        """The name for each of these words that a relocation fills with the address of a function."""
        kinds = SLOT_KINDS[self._elf.machine]
        found: dict[int, str] = {}
        for symtab, rows, all_types in self._relocations():
            chosen = are_among(rows["offset"], slots)
            table, types = rows[chosen], all_types[chosen]
            numbers = (table["info"] >> np.uint64(32)).astype(np.int64)
            for row in np.flatnonzero(types == kinds[_IRELATIVE]).tolist():
                resolver = int(table["addend"][row]) % 2**64
                found[int(table["offset"][row])] = f"*ABS*+{resolver:#x}@plt"
            named = is_one_of(types, kinds[_GLOB_DAT], kinds[_JUMP_SLOT]) & (numbers > 0)
            found.update(self._named(symtab, table["offset"][named], numbers[named]))
        return found

    def _named(self, symtab: int, offsets: U64, numbers: I64) -> Iterable[tuple[int, str]]:
        if not len(numbers):
            return ()
        symbols = self._elf.symbols(symtab)
        known = numbers < len(symbols)
        name_offsets = symbols["name_offset"][numbers[known]].tolist()
        names = self._elf.strings(int(self._elf.sections["link"][symtab]), name_offsets)
        return zip(offsets[known].tolist(), [f"{name}@plt" for name in names], strict=True)
