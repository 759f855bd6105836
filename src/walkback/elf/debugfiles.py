"""What was stripped from a file: the name of the debug file that has it, MiniDebugInfo, and symbols put back.

The name is that of the GDB manual, "Debugging Information in Separate Files"; where such files are, `elf/search` knows.
MiniDebugInfo ("Debugging information in a special section") is an ELF file with nothing but a symbol table, compressed
with xz, in the section `.gnu_debugdata`.
"""

from __future__ import annotations

import os

import numpy as np

from walkback.base.dataclass import dataclass
from walkback.base.errors import ElfError, UnreadableError
from walkback.elf import layout
from walkback.elf.compressed import decompress_xz, limit_of
from walkback.elf.file import ElfFile
from walkback.elf.write import HEADER_SIZE, Headers, align

_NO_FILE_NAMES = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class DebugLink:
    """What `.gnu_debuglink` says of the separate debug file."""

    name: str
    crc: int
    """The CRC-32 of the whole file."""


def debug_link(elf: ElfFile) -> DebugLink | None:
    """The contents of `.gnu_debuglink`: a file name, its NUL, up to 3 bytes of padding, and the CRC."""
    for index in elf.sections_named(".gnu_debuglink"):
        contents = bytes(elf.section_data(index))
        name, _, _ = contents.partition(b"\0")
        crc = (len(name) + 4) & ~3
        if crc + 4 > len(contents):
            raise ElfError(".gnu_debuglink ends before its checksum", file=elf.name)
        text = os.fsdecode(name)
        if "/" in text or text in _NO_FILE_NAMES:
            raise ElfError(".gnu_debuglink holds something that is not a file name", file=elf.name)
        return DebugLink(text, int.from_bytes(contents[crc : crc + 4], elf.byteorder))
    return None


def debug_data(elf: ElfFile) -> ElfFile | None:
    """The ELF file in `.gnu_debugdata`, or None if there is none."""
    for index in elf.sections_named(".gnu_debugdata"):
        limit = limit_of(len(elf.data))
        try:
            contents = decompress_xz(elf.section_data(index), limit)
        except UnreadableError as error:
            raise error.within(file=elf.name, section=".gnu_debugdata") from None
        return ElfFile(contents, f"{elf.name}(.gnu_debugdata)", limit=limit - len(contents))
    return None


def with_symbols(elf: ElfFile, symbols: bytes, strings: bytes) -> ElfFile:
    """A debug file of this one that has the same sections without their contents, and this symbol table."""
    headers = Headers(elf)
    count = max(len(headers.sections), 1)
    own = np.zeros(count + 2, layout.SECTION_HEADER[elf.byteorder])
    own[: len(headers.sections)] = headers.sections
    own["type"] = np.where(np.arange(len(own)) > 0, layout.SHT_NOBITS, layout.SHT_NULL)
    own["name_offset"] = 0
    table, names = own[count:]
    table["type"], table["offset"], table["size"], table["entsize"] = layout.SHT_SYMTAB, HEADER_SIZE, len(symbols), 24
    table["link"], table["addralign"] = count + 1, 8
    names["type"], names["offset"], names["size"] = layout.SHT_STRTAB, HEADER_SIZE + len(symbols), len(strings)
    headers.segments, headers.sections, headers.names = headers.segments[:0], own, layout.SHN_UNDEF
    end = align(HEADER_SIZE + len(symbols) + len(strings), 8)
    headers.place(0, end)
    parts = [headers.header_bytes(), symbols, strings]
    contents = b"".join(parts).ljust(end, b"\0") + headers.section_bytes()
    return ElfFile(contents, f"{elf.name}(.symtab)")
