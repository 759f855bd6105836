"""Where a file has a symbol of some name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from walkback.base.errors import WalkbackError
from walkback.elf import layout as elf_layout
from walkback.elf.file import ElfFile


def addresses_of(elf: ElfFile, name: str) -> Iterator[int]:
    """The file's own addresses of a symbol; no separate debug file is looked for, for a process has many files."""
    with contextlib.suppress(WalkbackError):
        for index in (*elf.sections_of_type(elf_layout.SHT_SYMTAB), *elf.sections_of_type(elf_layout.SHT_DYNSYM)):
            strtab = int(elf.sections["link"][index])
            # Most have no such name, and that is found more quickly than symbols are read.
            if name.encode() not in bytes(elf.section_data(strtab, keep=False)):
                continue
            symbols = elf.symbols(index)
            found = symbols[elf.find_string(strtab, symbols["name_offset"], name)]
            yield from found["value"][found["section"] != elf_layout.SHN_UNDEF].tolist()
