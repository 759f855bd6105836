"""Where the stacks of Go begin.

Go marks no frame as the outermost in its call frame information. Its runtime has two functions that nobody calls: a
goroutine returns to `goexit`, and `rt0_go` is where the program begins.
"""

from __future__ import annotations

import contextlib

from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile

_MARKS = (".go.buildinfo", ".note.go.buildid")
_NAMES = ("runtime.goexit", "runtime.rt0_go")


def outermost_functions(elf: ElfFile) -> list[tuple[int, int]]:
    """Begin and end of each function of Go's runtime that has no caller; nothing if the file is not Go's."""
    found: dict[int, int] = {}
    with contextlib.suppress(WalkbackError):
        if any(elf.sections_named(name) for name in _MARKS):
            from walkback.symbols.tables import code_symbols, symbol_tables  # few files are Go's

            for table in symbol_tables(elf, ()):
                symbols = code_symbols(table, 0)
                for name in _NAMES:
                    # Since Go 1.17 the name of the function's ABI may follow a dot.
                    for row in table.elf.find_string(table.strtab, symbols["name_offset"], name, b"\0.").tolist():
                        found[int(symbols["value"][row])] = int(symbols["size"][row])
    return sorted((start, start + size) for start, size in found.items() if size)
