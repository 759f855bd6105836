"""ELF files that no linker made: code from the memory of a process, with the names of its functions."""

from __future__ import annotations

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.elf import layout
from walkback.elf.write import HEADER_SIZE, SEGMENT_SIZE, align

BEGIN = align(HEADER_SIZE + SEGMENT_SIZE, 16)
"""The place of the code, in the file and as an address."""


def made_file(
    machine: int, byteorder: ByteOrder, code: bytes, symbols: np.ndarray, names: bytes, *, described: bool = False
) -> bytes:
    """A file with this code from `BEGIN` on, for the machine of this number.

    Of the symbols the section is 1, and `names` is their string table. If the code is `described`, it is `.eh_frame` as
    well.
    """
    section_name = ["", ".text", ".strtab", ".symtab", ".shstrtab", *([".eh_frame"] if described else [])]
    section_names = b"\0".join(name.encode() for name in section_name) + b"\0"
    header = np.zeros(1, layout.ELF_HEADER[byteorder])
    segment = np.zeros(1, layout.PROGRAM_HEADER[byteorder])
    sections = np.zeros(len(section_name), layout.SECTION_HEADER[byteorder])
    contents = [code, names, symbols.tobytes(), section_names]
    offsets = [BEGIN, *(BEGIN + np.cumsum([len(part) for part in contents])).tolist()]
    order = next(number for number, name in layout.BYTE_ORDERS.items() if name == byteorder)
    header["ident"] = (layout.ELF_MAGIC + bytes((layout.ELFCLASS64, order, 1))).ljust(16, b"\0")
    header["type"], header["machine"], header["version"] = layout.ET_DYN, machine, 1
    header["ehsize"], header["phentsize"], header["shentsize"] = HEADER_SIZE, SEGMENT_SIZE, sections.itemsize
    header["phoff"], header["phnum"] = HEADER_SIZE, 1
    header["shoff"], header["shnum"], header["shstrndx"] = offsets[4], len(sections), 4
    segment["type"], segment["flags"] = layout.PT_LOAD, layout.PF_R | layout.PF_X
    segment["offset"] = segment["vaddr"] = BEGIN
    segment["filesz"] = segment["memsz"] = len(code)
    sections["name_offset"] = [0, *np.cumsum([len(name) + 1 for name in section_name])[:-1]]
    sections["type"][1:5] = layout.SHT_PROGBITS, layout.SHT_STRTAB, layout.SHT_SYMTAB, layout.SHT_STRTAB
    sections["flags"][1], sections["addr"][1] = layout.SHF_ALLOC | layout.SHF_EXECINSTR, BEGIN
    sections["offset"][1:5], sections["size"][1:5] = offsets[:4], [len(part) for part in contents]
    sections["link"][3], sections["info"][3], sections["entsize"][3] = 2, 1, symbols.itemsize
    if described:
        sections[5:] = sections[1]
        sections["name_offset"][5:], sections["flags"][5:] = section_names.index(b".eh_frame"), layout.SHF_ALLOC
    before = header.tobytes() + segment.tobytes()
    return b"".join((before.ljust(BEGIN, b"\0"), *contents, sections.tobytes()))


def function_symbols(byteorder: ByteOrder, name: np.ndarray, start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The symbol table of functions with these places of names."""
    symbols = np.zeros(len(start) + 1, layout.SYMBOL[byteorder])
    symbols["name_offset"][1:] = name
    symbols["info"][1:] = layout.STB_GLOBAL << 4 | layout.STT_FUNC
    symbols["shndx"][1:], symbols["value"][1:], symbols["size"][1:] = 1, start, size
    return symbols
