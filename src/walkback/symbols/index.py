"""Names of code addresses, from the symbol tables of an ELF file (gABI, chapter "Symbol Table").

Which symbols name code: those of type STT_FUNC or STT_GNU_IFUNC, and untyped ones defined in an executable
section, but not AArch64's and RISC-V's mapping symbols (`$x`, `$d`) nor the assembler's local labels (`.L`).

Which of several at one address gives it its name: functions before untyped symbols; then sized before
unsized; then global, weak, local; then `.symtab` before `.dynsym`; then the first in its table.

In an object file an address is an offset into a section, so its key is (section, address); in every other
file the section plays no part and is -1.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from walkback.elf import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from walkback.elf.file import ElfFile, Table

_CODE_SYMBOLS = np.dtype(
    [
        ("section", "i8"),
        ("value", "u8"),
        ("size", "u8"),
        ("name_offset", "u4"),
        ("strtab", "u4"),
        ("defined_in", "u4"),
        ("rank", "u1"),
    ],
    align=True,
)

_BINDING_RANK = np.full(16, 2, np.uint8)
_BINDING_RANK[layout.STB_GLOBAL] = _BINDING_RANK[layout.STB_GNU_UNIQUE] = 0
_BINDING_RANK[layout.STB_WEAK] = 1

_HIGHEST = 2**64 - 1


class SymbolIndex:
    """The code symbols of one file; the tables are read when first asked for something."""

    def __init__(self, elf: ElfFile) -> None:
        self._elf = elf
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

    def describe(self, address: int, section: int = -1) -> str | None:
        """`name`, or `name+0x12` behind its beginning.

        The name is that of the symbol with a size that holds the address, the innermost if there are more;
        and if there is none, of the last symbol before it in its section, if that one has no size.
        """
        row = self._before(address, section)
        if row is None:
            return None
        if int(self._symbols["value"][row]) != address:
            inside = self._innermost(row, address, section)
            if inside is None and not self._continues_to(row, address):
                return None
            row = row if inside is None else inside
        offset = address - int(self._symbols["value"][row])
        return f"{self._name(row)}+{offset:#x}" if offset else self._name(row)

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
        used, numbers = np.unique(rows, return_inverse=True)
        self._decode(used[used >= 0])
        names = [self._names[row] if row >= 0 else None for row in used.tolist()]
        return [names[number] for number in numbers.tolist()]

    def lookup(self, name: str) -> list[tuple[int, int]]:
        """(section, address) of every definition of code with this name, with or without `@VERSION`."""
        symbols = self._all
        found: set[tuple[int, int]] = set()
        for strtab in np.unique(symbols["strtab"]).tolist():
            ours = symbols[symbols["strtab"] == strtab]
            rows = self._elf.find_string(strtab, ours["name_offset"], name, b"\0@")
            found.update(zip(ours["section"][rows].tolist(), ours["value"][rows].tolist(), strict=True))
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
        rows = np.searchsorted(column, wanted).clip(max=len(column) - 1)
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
        if symbol["size"] or number >= len(self._elf.sections):
            return False
        section = self._elf.sections[number]
        start = 0 if self._by_section else int(section["addr"])
        return address < start + int(section["size"])

    @cached_property
    def _ends(self) -> npt.NDArray[np.uint64]:
        """The first address behind each symbol; what runs over the end of the address space stops there."""
        values = self._symbols["value"]
        ends: npt.NDArray[np.uint64] = values + np.minimum(self._symbols["size"], np.uint64(_HIGHEST) - values)
        return ends

    @cached_property
    def _keys(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        sections, section_number = np.unique(self._symbols["section"], return_inverse=True)
        values, value_number = np.unique(self._symbols["value"], return_inverse=True)
        return sections, values, section_number * len(values) + value_number

    # Names

    def _name(self, row: int) -> str:
        name = self._names.get(row)
        if name is None:
            symbol = self._symbols[row]
            name = self._names[row] = self._elf.string(int(symbol["strtab"]), int(symbol["name_offset"]))
        return name

    def _decode(self, rows: npt.NDArray[np.intp]) -> None:
        """Read the names of these rows that have not been read before."""
        new = np.array([row for row in rows.tolist() if row not in self._names], np.intp)
        for strtab in np.unique(self._symbols["strtab"][new]).tolist():
            ours = new[self._symbols["strtab"][new] == strtab]
            names = self._elf.strings(strtab, self._symbols["name_offset"][ours].tolist())
            self._names.update(zip(ours.tolist(), names, strict=True))

    # Building

    @cached_property
    def _symbols(self) -> Table:
        """One symbol for each address, by section and address."""
        symbols = self._all[np.lexsort((self._all["rank"], self._all["value"], self._all["section"]))]
        if len(symbols) < 2:
            return symbols
        first = np.ones(len(symbols), np.bool_)
        first[1:] = symbols["section"][1:] != symbols["section"][:-1]
        first[1:] |= symbols["value"][1:] != symbols["value"][:-1]
        return symbols[first]

    @cached_property
    def _all(self) -> Table:
        """All code symbols in the order of their tables."""
        tables = list(self._tables())
        return np.concatenate(tables) if tables else np.zeros(0, _CODE_SYMBOLS)

    def _tables(self) -> Iterator[Table]:
        for kind in (layout.SHT_SYMTAB, layout.SHT_DYNSYM):
            for index in self._elf.sections_of_type(kind)[:1]:  # the specification allows one of each
                yield self._code_symbols(index)

    def _code_symbols(self, index: int) -> Table:
        symbols = self._elf.symbols(index)
        strtab = int(self._elf.sections["link"][index])
        kinds, bindings = symbols["info"] & 15, symbols["info"] >> 4
        functions = (kinds == layout.STT_FUNC) | (kinds == layout.STT_GNU_IFUNC)
        defined = symbols["section"] != layout.SHN_UNDEF
        defined &= symbols["section"] != np.uint32(layout.SECTION_COMMON)
        if self._by_section:
            defined &= symbols["section"] < len(self._elf.sections)
        labels = (kinds == layout.STT_NOTYPE) & self._in_code(symbols["section"])
        chosen = np.flatnonzero(defined & (functions | labels))
        chosen = chosen[self._is_name(strtab, symbols["name_offset"][chosen], functions[chosen])]
        code = np.zeros(len(chosen), _CODE_SYMBOLS)
        for field in ("value", "size", "name_offset"):
            code[field] = symbols[field][chosen]
        code["defined_in"] = symbols["section"][chosen]
        code["section"] = code["defined_in"] if self._by_section else -1
        code["strtab"] = strtab
        code["rank"] = 6 * ~functions[chosen] + 3 * (code["size"] == 0) + _BINDING_RANK[bindings[chosen]]
        return code

    def _in_code(self, numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        executable = (self._elf.sections["flags"] & np.uint64(layout.SHF_EXECINSTR)) != 0
        known = numbers < len(executable)
        in_code: npt.NDArray[np.bool_] = known & executable[np.where(known, numbers, 0)]
        return in_code

    def _is_name(
        self, strtab: int, offsets: npt.NDArray[np.uint32], functions: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Which of these name code; one that lies outside its table passes until somebody reads it."""
        contents = np.frombuffer(self._elf.section_data(strtab), np.uint8)
        inside = offsets.astype(np.int64) + 1 < len(contents)
        places = np.where(inside, offsets, 0).astype(np.int64)
        if not inside.any():
            return np.ones(len(offsets), np.bool_)
        first, second = contents[places], contents[places + 1]
        hidden = (first == ord(".")) & (second == ord("L"))
        if self._elf.machine in {layout.EM_AARCH64, layout.EM_RISCV}:
            hidden |= (first == ord("$")) & ((second == ord("x")) | (second == ord("d")))
        unnamed = first == 0
        named: npt.NDArray[np.bool_] = ~(inside & (unnamed | (hidden & ~functions)))
        return named
