"""Names of code addresses, from the symbol tables of an ELF file (gABI, chapter "Symbol Table").

Which symbols name code: those of type STT_FUNC or STT_GNU_IFUNC, and untyped ones defined in an executable
section, but not AArch64's and RISC-V's mapping symbols (`$x`, `$d`) nor the assembler's local labels (`.L`).

Which of several at one address gives it its name: functions before untyped symbols; then sized before
unsized; then global, weak, local; then `.symtab` before `.dynsym`; then the first in its table.

A file without `.symtab` has its names from `.dynsym` and from the `.symtab` of its separate debug file or, if that
is not found, of its `.gnu_debugdata`; these are looked for when the first name is asked for, and rank as if they were
the file's own. Where they are missing or broken they are not used. Object files have none.

In an object file an address is an offset into a section, so its key is (section, address); in every other
file the section plays no part and is -1.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from walkback.base.arrays import distinct, ends_of, ranked
from walkback.elf import DEBUG_ROOTS, FileSearch
from walkback.elf.sectionless import with_sections
from walkback.symbols.demangle import demangle, is_called, is_mangled, spelled_out
from walkback.symbols.holders import LastAbove
from walkback.symbols.tables import CODE_SYMBOLS, LABEL_RANK, code_symbols, symbol_tables

if TYPE_CHECKING:
    import numpy.typing as npt

    from walkback.base.arrays import I32, I64, U64
    from walkback.elf.file import ElfFile, Table
    from walkback.symbols.tables import SymbolTable

_HIGHEST = 2**64 - 1


class SymbolIndex:
    """The code symbols of one file; the tables are read when first asked for something."""

    def __init__(self, elf: ElfFile, search: FileSearch | None = None) -> None:
        """Separate debug files are searched for in the folders of distributions, unless there is another `search`."""
        self._elf = elf
        self._search = search or FileSearch(debug_roots=DEBUG_ROOTS)
        self._by_section = elf.is_relocatable
        self._names: dict[int, str] = {}
        self._spans: dict[int, tuple[int, int]] = {}
        self._reach: dict[int, npt.NDArray[np.uint64]] = {}

    def name_at(self, address: int, section: int = -1) -> str | None:
        """The symbol that begins exactly there."""
        row = self._before(address, section)
        if row is None or int(self._symbols["value"][row]) != address:
            return None
        return self._name(row)

    def describe(self, address: int, section: int = -1, *, sized: bool = False) -> str | None:
        """`name`, or `name+0x12` behind its beginning.

        The name is that of the symbol with a size that holds the address, the innermost if there are more;
        and if there is none, of the last symbol before it in its section, if that one has no size. With `sized` not
        of that: what is known to be a function of its own is no part of one whose end nobody knows.
        """
        row = self._before(address, section)
        if row is None:
            return None
        if int(self._symbols["value"][row]) != address:
            inside = self._innermost(row, address, section)
            if inside is None and (sized or not self._continues_to(row, address)):
                return None
            row = row if inside is None else inside
        offset = address - int(self._symbols["value"][row])
        return f"{self._name(row)}+{offset:#x}" if offset else self._name(row)

    def size_at(self, address: int, section: int = -1) -> int:
        """The bytes of the symbol that begins exactly there; 0 if there is none."""
        row = self._before(address, section)
        if row is None or int(self._symbols["value"][row]) != address:
            return 0
        return int(self._symbols["size"][row])

    def names_at(
        self, addresses: npt.NDArray[np.integer], sections: npt.NDArray[np.integer] | None = None
    ) -> list[str | None]:
        """`name_at` of many addresses at once."""
        wanted = np.asarray(addresses).astype(np.uint64)
        if not len(self._symbols):
            return [None] * len(wanted)
        if not self._by_section:
            rows = self._rows_of(self._symbols["value"], wanted)
        elif sections is None:
            return [None] * len(wanted)
        else:
            rows = self._rows_in_sections(wanted, np.asarray(sections).astype(np.int64))
        return self.names_of(rows)

    def holders(self, addresses: npt.NDArray[np.integer], *, sized: bool = False) -> I64:
        """For each address of a linked file the number of the symbol that `describe` names; -1 if there is none."""
        wanted = np.asarray(addresses).astype(np.uint64)
        values = self._symbols["value"]
        if self._by_section or not len(values):
            return np.full(len(wanted), -1, np.int64)
        rows = np.searchsorted(values, wanted, "right").astype(np.int64) - 1
        exact = (rows >= 0) & (values[rows] == wanted)
        doubtful = np.flatnonzero(~exact & ((rows < 0) | (wanted >= self._ends[rows])))
        before, where = rows[doubtful], wanted[doubtful]
        inside = self._last_above.find(before, where)
        if not sized:
            lost = np.flatnonzero((inside < 0) & (before >= 0))
            goes_on = where[lost] < self._section_ends(before[lost])
            inside[lost[goes_on]] = before[lost[goes_on]]
        rows[doubtful] = inside
        return rows

    def functions(self) -> tuple[I32, U64]:
        """The section and the start of every symbol whose type is that of a function, in no order."""
        found = self._all[self._all["rank"] < LABEL_RANK]
        return found["section"].astype(np.int32), found["value"].astype(np.uint64)

    def function_sizes(self) -> U64:
        """The size of each of these, 0 where it is not known."""
        return self._all["size"][self._all["rank"] < LABEL_RANK].astype(np.uint64)

    def starts(self, rows: I64) -> U64:
        """Where symbols that `holders` gave begin; 0 for -1."""
        if not len(self._symbols):
            return np.zeros(len(rows), np.uint64)
        return np.where(rows >= 0, self._symbols["value"][rows], np.uint64(0))

    def names_of(self, rows: I64) -> list[str | None]:
        """The names of symbols that `holders` gave; None for -1."""
        used, numbers = ranked(rows)
        self._decode(used[used >= 0])
        names = [self._names[row] if row >= 0 else None for row in used.tolist()]
        return [names[number] for number in numbers.tolist()]

    def all_names(self) -> list[str]:
        """The name of every definition of code."""
        return [
            name for elf, strtab, ours in self._by_table for name in elf.strings(strtab, ours["name_offset"].tolist())
        ]

    def lookup(self, *names: str) -> list[tuple[int, int]]:
        """(section, address) of every definition of code with one of these names, with or without `@VERSION`."""
        found: set[tuple[int, int]] = set()
        for elf, strtab, ours in self._by_table:
            rows = elf.find_string(strtab, ours["name_offset"], *names, ends=b"\0@")
            found.update(zip(ours["section"][rows].tolist(), ours["value"][rows].tolist(), strict=True))
        return sorted(found)

    def lookup_shown(self, shown: str) -> list[tuple[int, int]]:
        """The same by a demangled name, `run(int)`, or by one without parameters, `run`, or without arguments."""
        wanted, part = shown.replace(" ", ""), spelled_out(shown)
        found: set[tuple[int, int]] = set()
        for elf, strtab, ours in self._by_table:
            names = elf.strings(strtab, ours["name_offset"].tolist())
            rows = [row for row, name in enumerate(names) if part in name and is_mangled(name)]
            for row, name in zip(rows, demangle([names[row] for row in rows], parameters=True), strict=True):
                if is_called(name, wanted):
                    found.add((int(ours["section"][row]), int(ours["value"][row])))
        return sorted(found)

    # Searching

    def _before(self, address: int, section: int) -> int | None:
        """The row of the last symbol at or before the address."""
        if not 0 <= address <= _HIGHEST:
            return None
        first, end = self._span(section)
        row = first + int(np.searchsorted(self._symbols["value"][first:end], np.uint64(address), "right"))
        return row - 1 if row > first else None

    def _span(self, section: int) -> tuple[int, int]:
        """The rows of a section."""
        section = section if self._by_section else -1
        span = self._spans.get(section)
        if span is None:
            first, end = np.searchsorted(self._symbols["section"], (section, section + 1)).tolist()
            span = self._spans[section] = (first, end)
        return span

    @staticmethod
    def _rows_of(column: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """Where in the ordered column each value is, or -1."""
        rows = np.minimum(column.searchsorted(wanted), len(column) - 1)
        return np.where(column[rows] == wanted, rows, -1)

    def _rows_in_sections(self, wanted: npt.NDArray[np.uint64], places: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """The row of each (section, address); the pairs become single numbers that are ordered alike."""
        sections, values, keys = self._keys
        section_number = self._rows_of(sections, places)
        value_number = self._rows_of(values, wanted)
        rows = self._rows_of(keys, section_number * len(values) + value_number)
        return np.where((section_number >= 0) & (value_number >= 0), rows, -1)

    def _innermost(self, row: int, address: int, section: int) -> int | None:
        """The row of the symbol that begins last among those at or before `row` that hold the address."""
        if address < int(self._ends[row]):
            return row
        first, end = self._span(section)
        reach = self._reach.get(first)
        if reach is None:
            reach = self._reach[first] = np.maximum.accumulate(self._ends[first:end])
        outermost = first + int(np.searchsorted(reach[: row - first + 1], np.uint64(address), "right"))
        holding = np.flatnonzero(self._ends[outermost : row + 1] > np.uint64(address))
        return outermost + int(holding[-1]) if len(holding) else None

    def _continues_to(self, row: int, address: int) -> bool:
        """Whether the symbol has no size and its section goes on to this address."""
        symbol = self._symbols[row]
        number = int(symbol["defined_in"])
        sections = self._tables[int(symbol["table"])][0].sections
        if symbol["size"] or number >= len(sections):
            return False
        section = sections[number]
        start = 0 if self._by_section else int(section["addr"])
        return address < start + int(section["size"])

    def _section_ends(self, rows: I64) -> U64:
        """For each symbol without size where its section ends; 0 for others."""
        ends = np.zeros(len(rows), np.uint64)
        chosen = self._symbols[rows]
        for number in distinct(chosen["table"]).tolist():
            sections = self._tables[number][0].sections
            known = (chosen["size"] == 0) & (chosen["table"] == number) & (chosen["defined_in"] < len(sections))
            ours = sections[chosen["defined_in"][known]]
            ends[known] = ends_of(ours["addr"], ours["size"])
        return ends

    @cached_property
    def _last_above(self) -> LastAbove:
        return LastAbove(self._ends)

    @cached_property
    def _ends(self) -> npt.NDArray[np.uint64]:
        """The first address behind each symbol."""
        return ends_of(self._symbols["value"], self._symbols["size"])

    @cached_property
    def _keys(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        sections, section_number = ranked(self._symbols["section"])
        values, value_number = ranked(self._symbols["value"])
        return sections, values, section_number * len(values) + value_number

    # Names

    def _name(self, row: int) -> str:
        name = self._names.get(row)
        if name is None:
            symbol = self._symbols[row]
            elf, _, strtab = self._tables[int(symbol["table"])]
            name = self._names[row] = elf.string(strtab, int(symbol["name_offset"]))
        return name

    def _decode(self, rows: npt.NDArray[np.intp]) -> None:
        """Read the names of these rows that have not been read before."""
        new = np.array([row for row in rows.tolist() if row not in self._names], np.intp)
        for number, (elf, _, strtab) in enumerate(self._tables):
            ours = new[self._symbols["table"][new] == number]
            names = elf.strings(strtab, self._symbols["name_offset"][ours].tolist())
            self._names.update(zip(ours.tolist(), names, strict=True))

    # Building

    @cached_property
    def _symbols(self) -> Table:
        """One symbol for each address, by section and address."""
        symbols = self._all
        if len(symbols) < 2:
            return symbols
        if self._by_section:
            symbols = symbols[np.lexsort((symbols["rank"], symbols["value"], symbols["section"]))]
            first = np.ones(len(symbols), np.bool_)
            first[1:] = symbols["section"][1:] != symbols["section"][:-1]
            first[1:] |= symbols["value"][1:] != symbols["value"][:-1]
            return symbols[first]
        # One key is sorted several times as quickly as three; of equal ones the best is chosen afterwards.
        value = np.ascontiguousarray(symbols["value"])
        order = np.argsort(value)
        value = value[order]
        start = np.flatnonzero(np.concatenate(([True], value[1:] != value[:-1])))
        key = (symbols["rank"].astype(np.int64) << 32) | np.arange(len(symbols))
        # `take` copies whole entries, which indexing does field by field.
        return symbols.take(np.minimum.reduceat(key[order], start) & 0xFFFFFFFF)

    @cached_property
    def _all(self) -> Table:
        """All code symbols in the order of their tables."""
        tables = [code_symbols(table, number) for number, table in enumerate(self._tables)]
        # Bytes are joined several times as quickly as entries with fields.
        return np.frombuffer(b"".join(table.data for table in tables), CODE_SYMBOLS)

    @cached_property
    def _by_table(self) -> list[tuple[ElfFile, int, Table]]:
        """The file of each table, its strings, and its code symbols."""
        first = np.searchsorted(self._all["table"], np.arange(len(self._tables) + 1)).tolist()
        tables = zip(self._tables, pairwise(first), strict=True)
        return [(elf, strtab, self._all[begin:end]) for (elf, _, strtab), (begin, end) in tables]

    @cached_property
    def _tables(self) -> list[SymbolTable]:
        return symbol_tables(with_sections(self._elf), self._search)
