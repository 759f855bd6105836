"""Where a file has a symbol of some name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from walkback.base.errors import WalkbackError
from walkback.elf import layout as elf_layout
from walkback.elf.file import ElfFile

PYTHON, LUA, REGISTERED_CODE = "_PyRuntime", "lua_ident", "__jit_debug_descriptor"
"""Names that every file of a process is asked for: the first of them has the others looked for as well."""
_SOUGHT = tuple(name.encode() for name in (PYTHON, LUA, REGISTERED_CODE))
_ABSENT: WeakKeyDictionary[ElfFile, dict[int, frozenset[bytes]]] = WeakKeyDictionary()
"""Which of these the strings of a file's symbol tables do not have."""


def addresses_of(elf: ElfFile, name: str) -> Iterator[int]:
    """The file's own addresses of a symbol; no separate debug file is looked for, for a process has many files."""
    with contextlib.suppress(WalkbackError):
        for index in (*elf.sections_of_type(elf_layout.SHT_SYMTAB), *elf.sections_of_type(elf_layout.SHT_DYNSYM)):
            strtab = int(elf.sections["link"][index])
            # Most have no such name, and that is found more quickly than symbols are read.
            if not _has(elf, strtab, name.encode()):
                continue
            symbols = elf.symbols(index)
            found = symbols[elf.find_string(strtab, symbols["name_offset"], name)]
            yield from found["value"][found["section"] != elf_layout.SHN_UNDEF].tolist()


def _has(elf: ElfFile, strtab: int, name: bytes) -> bool:
    absent = _ABSENT.setdefault(elf, {})
    if name not in absent.get(strtab, ()):
        strings = bytes(elf.section_data(strtab, keep=False))
        absent[strtab] = frozenset(one for one in _SOUGHT if one not in strings)
        return name in strings
    return False
