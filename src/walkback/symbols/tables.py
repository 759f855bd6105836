"""The symbol tables that hold the names of a file's code, and which of their symbols do so.

gABI, chapter "Symbol Table"; where else than in the file the tables may be, `walkback.elf.debugfiles` says.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from walkback.base.arrays import record_type
from walkback.base.errors import UnreadableError
from walkback.elf import debug_data, layout

if TYPE_CHECKING:
    import numpy.typing as npt

    from walkback.elf import ElfFile, FileSearch
    from walkback.elf.file import Table

CODE_SYMBOLS = record_type(
    "section i8, value u8, size u8, name_offset u4, defined_in u4, table u1, rank u1", align=True
)
"""`section` is -1 outside of object files; `defined_in` is the section's number in the file of the table."""

LABEL_RANK = 6
"""Of two symbols at one place that with the lower rank counts; symbols without a type have at least this one."""
_BINDING_RANK = np.full(16, 2, np.uint8)
_BINDING_RANK[layout.STB_GLOBAL] = _BINDING_RANK[layout.STB_GNU_UNIQUE] = 0
_BINDING_RANK[layout.STB_WEAK] = 1


class SymbolTable(NamedTuple):
    """One symbol table: its file, its section there, and that of its strings."""

    elf: ElfFile
    section: int
    strtab: int


def symbol_tables(elf: ElfFile, search: FileSearch) -> list[SymbolTable]:
    """All tables with names for the code of a file, in the order of their rank."""
    own = _tables(elf, layout.SHT_SYMTAB)
    if not own and not elf.is_relocatable:
        own = _separate(elf, search)
    return own + _tables(elf, layout.SHT_DYNSYM)


def _tables(elf: ElfFile, kind: int) -> list[SymbolTable]:
    indices = elf.sections_of_type(kind)[:1]  # the specification allows one of each
    return [SymbolTable(elf, index, int(elf.sections["link"][index])) for index in indices]


def _separate(elf: ElfFile, search: FileSearch) -> list[SymbolTable]:
    """The table of a debug file that is here, or else of `.gnu_debugdata`, or else of one that is fetched.

    The first that can be read; none leads further.
    """
    for find in (
        partial(search.debug_file, elf, fetch=False),
        partial(debug_data, elf),
        partial(search.symbol_file, elf),
    ):
        with contextlib.suppress(UnreadableError):
            found = find()
            tables = [] if found is None else _tables(found, layout.SHT_SYMTAB)
            if tables and _is_sound(tables[0]):
                return tables
    return []


def _is_sound(table: SymbolTable) -> bool:
    """Whether every name can be read: what the file itself does not say may not make it unreadable."""
    offsets = table.elf.symbols(table.section)["name_offset"]
    strings = table.elf.section_data(table.strtab)
    return bool(len(offsets) and len(strings) and strings[-1] == 0 and offsets.max() < len(strings))


def code_symbols(table: SymbolTable, number: int) -> Table:
    """The symbols that name code as `CODE_SYMBOLS`, in their order; `number` is for the column `table`."""
    elf, section, strtab = table
    symbols = elf.symbols(section)
    kinds, bindings = symbols["info"] & 15, symbols["info"] >> 4
    functions = (kinds == layout.STT_FUNC) | (kinds == layout.STT_GNU_IFUNC)
    defined = symbols["section"] != layout.SHN_UNDEF
    defined &= symbols["section"] != np.uint32(layout.SECTION_COMMON)
    if elf.is_relocatable:
        defined &= symbols["section"] < len(elf.sections)
    labels = (kinds == layout.STT_NOTYPE) & _in_code(elf, symbols["section"])
    chosen = np.flatnonzero(defined & (functions | labels))
    chosen = chosen[_is_name(elf, strtab, symbols["name_offset"][chosen], functions[chosen])]
    code = np.zeros(len(chosen), CODE_SYMBOLS)
    for field in ("value", "size", "name_offset"):
        code[field] = symbols[field][chosen]
    code["defined_in"] = symbols["section"][chosen]
    code["section"] = code["defined_in"] if elf.is_relocatable else -1
    code["table"] = number
    code["rank"] = LABEL_RANK * ~functions[chosen] + 3 * (code["size"] == 0) + _BINDING_RANK[bindings[chosen]]
    return code


def _in_code(elf: ElfFile, numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    executable = (elf.sections["flags"] & np.uint64(layout.SHF_EXECINSTR)) != 0
    known = numbers < len(executable)
    in_code: npt.NDArray[np.bool_] = known & executable[np.where(known, numbers, 0)]
    return in_code


def _is_name(
    elf: ElfFile, strtab: int, offsets: npt.NDArray[np.uint32], functions: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Which of these name code; one that lies outside its table passes until somebody reads it."""
    contents = np.frombuffer(elf.section_data(strtab), np.uint8)
    inside = offsets.astype(np.int64) + 1 < len(contents)
    places = np.where(inside, offsets, 0).astype(np.int64)
    if not inside.any():
        return np.ones(len(offsets), np.bool_)
    first, second = contents[places], contents[places + 1]
    hidden = (first == ord(".")) & (second == ord("L"))
    if elf.machine in {layout.EM_AARCH64, layout.EM_RISCV}:
        hidden |= (first == ord("$")) & ((second == ord("x")) | (second == ord("d")))
    unnamed = first == 0
    named: npt.NDArray[np.bool_] = ~(inside & (unnamed | (hidden & ~functions)))
    return named
