"""The layout of `.gopclntab`, as Go's linker writes it.

Facts are those of Go's own readers: `runtime/symtab.go`, `internal/abi/symtab.go` and `debug/gosym/pclntab.go`.

The table begins with a head of eight bytes: a number that says the layout and the byte order, two bytes of 0, the least
length of an instruction, and the size of a pointer. Words of that size follow. The list of functions has for each
where it begins and where its entry is; an entry is a few numbers, and places of tables of values by program counter.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from walkback.base.dataclass import dataclass

HEAD: Final = 8
"""Bytes before the words."""


class Layout(IntEnum):
    """The number that a table begins with.

    >>> [layout.name for layout in walkback.gopclntab.Layout]
    ['GO_1_2', 'GO_1_16', 'GO_1_18', 'GO_1_20']
    """

    GO_1_2 = 0xFFFFFFFB
    GO_1_16 = 0xFFFFFFFA
    GO_1_18 = 0xFFFFFFF0
    GO_1_20 = 0xFFFFFFF1


HEADER_WORDS: Final = {
    Layout.GO_1_2: ("functions",),
    Layout.GO_1_16: ("functions", "files", "names", "units", "file_names", "values", "entries"),
    Layout.GO_1_18: ("functions", "files", "text", "names", "units", "file_names", "values", "entries"),
    Layout.GO_1_20: ("functions", "files", "text", "names", "units", "file_names", "values", "entries"),
}
"""The words of the header: counts, where the code begins, and places in the table. Since Go 1.26 `text` is 0."""


class Flag(IntEnum):
    """What is said of a function, since Go 1.17."""

    TOP_FRAME = 1
    """It has no caller."""
    SP_WRITE = 2
    """It sets the stack pointer to another value than a number more or less."""
    ASSEMBLY = 4


@dataclass(frozen=True, slots=True)
class EntryShape:
    """Where the fields of an entry are, in bytes behind where its function begins."""

    flag: int | None
    size: int
    """Without the tables behind it."""
    name: int = 0
    depths: int = 12
    """The place of the table of stack depths."""


@dataclass(frozen=True, slots=True)
class CallShape:
    """An inlined call in a list."""

    size: int
    name: int
    parent: int
    """Where the call would be in the function one level out."""


INLINED_CALLS: Final = {
    Layout.GO_1_18: CallShape(size=20, name=12, parent=16),
    Layout.GO_1_20: CallShape(size=16, name=4, parent=8),
}
"""Before, lists are named by addresses, and not read here."""
MODULE_CALLS: Final = {Layout.GO_1_18: 38, Layout.GO_1_20: 40}
"""Which word of the module's data says from where lists are counted.

Since Go 1.26 that is a place in the table, and the next word is the table's end.
"""
MODULE_CALLS_LAST: Final = 43
"""Which one it is in Go 1.27."""
MODULE_TEXT: Final = 22
"""Which one says where the code begins; the first has the address of the table."""


ENTRY_SHAPES: Final = {
    Layout.GO_1_2: EntryShape(flag=None, size=32),
    Layout.GO_1_16: EntryShape(flag=33, size=36),
    Layout.GO_1_18: EntryShape(flag=33, size=36),
    Layout.GO_1_20: EntryShape(flag=37, size=40),
}
