"""A dump as one ELF file, in which each piece of code has an address of its own, whatever was where it was before.

What stands behind a piece of code in its `.eh_frame` counts from there, so it keeps its place. All of them together are
one `.eh_frame`, in which each piece of code is hidden in an entry that nothing refers to.
"""

from __future__ import annotations

import struct

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I64, U64
from walkback.elf import layout as elf_layout
from walkback.elf.write import HEADER_SIZE, SEGMENT_SIZE, align
from walkback.jitdump.decoding import JitDump
from walkback.jitdump.layout import CODE_TO_FRAMES

_BEGIN = align(HEADER_SIZE + SEGMENT_SIZE, 16)
_HIDING = 16
"""Bytes before the code of the entry that hides it."""
_NAMES = ("", ".text", ".eh_frame", ".strtab", ".symtab", ".shstrtab")


def image_of(dump: JitDump, machine: Machine) -> tuple[bytes, U64]:
    """The file, for the machine that the code ran on, and where each piece of code is in it.

    What the dump says of the machine is not read: that of Python 3.13.0 says nothing.
    """
    parts: list[bytes] = []
    starts = []
    place = _BEGIN
    hiding = struct.Struct(dump.prefix + "IIB7x")
    for code, end, frames, frames_end in np.hstack((dump.loads.code, dump.loads.frames)).tolist():
        room = align(end - code, CODE_TO_FRAMES)
        entries = _entries(dump, frames, frames_end)
        starts.append(place + _HIDING)
        # The identifier of a CIE, and a version that nobody has.
        parts += (hiding.pack(_HIDING - 4 + room, 0, 0), dump.data[code:end], bytes(room - (end - code)), entries)
        place += _HIDING + room + len(entries)
    start = np.array(starts, np.uint64)
    names, name_offset = _names(dump)
    symbols = np.zeros(len(start) + 1, elf_layout.SYMBOL[dump.byteorder])
    symbols["name_offset"][1:] = name_offset
    symbols["info"][1:] = elf_layout.STB_GLOBAL << 4 | elf_layout.STT_FUNC
    symbols["shndx"][1:], symbols["value"][1:], symbols["size"][1:] = 1, start, dump.size()
    return _file(dump, machine, b"".join(parts), names, symbols.tobytes()), start


def _entries(dump: JitDump, place: int, end: int) -> bytes:
    """The entries of an `.eh_frame`, as far as they are whole and leave what follows aligned."""
    begin = place
    while place + 8 <= end:
        (length,) = struct.unpack_from(dump.prefix + "I", dump.data, place)
        if not length or length % 4 or length > end - place - 4:
            break
        place += 4 + length
    return dump.data[begin:place]


def _names(dump: JitDump) -> tuple[bytes, I64]:
    """A string table, and where in it the name of each piece is."""
    names = [b"", *(dump.data[begin:end] for begin, end in dump.loads.name.tolist())]
    ends = np.cumsum([len(name) + 1 for name in names])
    return b"\0".join(names) + b"\0", ends[:-1]


def _file(dump: JitDump, machine: Machine, code: bytes, names: bytes, symbols: bytes) -> bytes:
    section_names = b"\0".join(name.encode() for name in _NAMES) + b"\0"
    header = np.zeros(1, elf_layout.ELF_HEADER[dump.byteorder])
    segment = np.zeros(1, elf_layout.PROGRAM_HEADER[dump.byteorder])
    sections = np.zeros(len(_NAMES), elf_layout.SECTION_HEADER[dump.byteorder])
    offsets = np.cumsum((_BEGIN, len(code), len(names), len(symbols), len(section_names)))
    text, strtab, symtab, shstrtab, end = offsets.tolist()
    order = next(number for number, name in elf_layout.BYTE_ORDERS.items() if name == dump.byteorder)
    header["ident"] = (elf_layout.ELF_MAGIC + bytes((elf_layout.ELFCLASS64, order, 1))).ljust(16, b"\0")
    header["type"], header["machine"], header["version"] = elf_layout.ET_DYN, machine.elf_machine, 1
    header["ehsize"], header["phentsize"], header["shentsize"] = HEADER_SIZE, SEGMENT_SIZE, sections.itemsize
    header["phoff"], header["phnum"] = HEADER_SIZE, 1
    header["shoff"], header["shnum"], header["shstrndx"] = end, len(_NAMES), _NAMES.index(".shstrtab")
    segment["type"], segment["flags"] = elf_layout.PT_LOAD, elf_layout.PF_R | elf_layout.PF_X
    segment["offset"] = segment["vaddr"] = text
    segment["filesz"] = segment["memsz"] = len(code)
    sections["name_offset"] = [0, *np.cumsum([len(name) + 1 for name in _NAMES])[:-1]]
    progbits, strings = elf_layout.SHT_PROGBITS, elf_layout.SHT_STRTAB
    sections["type"] = (0, progbits, progbits, strings, elf_layout.SHT_SYMTAB, strings)
    sections["flags"] = (0, elf_layout.SHF_ALLOC | elf_layout.SHF_EXECINSTR, elf_layout.SHF_ALLOC, 0, 0, 0)
    sections["addr"][1:3] = sections["offset"][1:3] = text
    sections["offset"][3:] = strtab, symtab, shstrtab
    sections["size"][1:] = len(code), len(code), len(names), len(symbols), len(section_names)
    sections["link"][4], sections["info"][4] = 3, 1
    sections["entsize"][4] = elf_layout.SYMBOL[dump.byteorder].itemsize
    parts = (header.tobytes(), segment.tobytes(), code, names, symbols, section_names, sections.tobytes())
    return b"".join((*parts[:2], bytes(_BEGIN - HEADER_SIZE - SEGMENT_SIZE), *parts[2:]))
