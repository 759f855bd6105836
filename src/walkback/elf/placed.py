"""Object files whose section headers have addresses, as if they had been linked.

JIT compilers that link in memory give debuggers a copy of the object file in which only the addresses are new: values
of symbols and of debugging information still count from their sections.
"""

from __future__ import annotations

import numpy as np

from walkback.elf import layout
from walkback.elf.file import ElfFile
from walkback.elf.relocated import relocated
from walkback.elf.write import align

_MOST_SEGMENTS = layout.PN_XNUM - 1


def placed(elf: ElfFile) -> ElfFile:
    """The file as an executable one; if it is no object file, itself. Its code stays as it is."""
    if not elf.is_relocatable:
        return elf
    image = bytearray(elf.data[:])
    skipped = np.uint64(layout.SHF_EXECINSTR | layout.SHF_COMPRESSED)
    for index in elf.relocation_sections:
        if 0 < index < len(elf.sections) and not elf.sections["flags"][index] & skipped:
            offset, size = elf.section_range(index)
            image[offset : offset + size] = relocated(elf, index, placed=True).data[:size]
    for index in elf.sections_of_type(layout.SHT_SYMTAB):
        _place_symbols(elf, image, index)
    _add_segments(elf, image)
    return ElfFile(image, elf.name)


def _place_symbols(elf: ElfFile, image: bytearray, index: int) -> None:
    symbols = elf.symbols(index)
    stored = np.frombuffer(image, layout.SYMBOL[elf.byteorder], len(symbols), elf.section_range(index)[0])
    known = np.where(symbols["section"] < len(elf.sections), symbols["section"], 0)
    stored["value"] = symbols["value"] + np.where(known > 0, elf.sections["addr"][known], 0)


def _add_segments(elf: ElfFile, image: bytearray) -> None:
    """Make program headers for the sections that are in memory, behind the file."""
    sections = elf.sections
    loaded = (sections["flags"] & np.uint64(layout.SHF_ALLOC) != 0) & (sections["addr"] > 0) & (sections["size"] > 0)
    chosen = sections[loaded][:_MOST_SEGMENTS]
    segments = np.zeros(len(chosen), layout.PROGRAM_HEADER[elf.byteorder])
    executable = chosen["flags"] & np.uint64(layout.SHF_EXECINSTR) != 0
    segments["type"] = layout.PT_LOAD
    segments["flags"] = layout.PF_R | np.where(executable, layout.PF_X, 0)
    segments["offset"], segments["vaddr"], segments["memsz"] = chosen["offset"], chosen["addr"], chosen["size"]
    segments["filesz"] = np.where(chosen["type"] == layout.SHT_NOBITS, 0, chosen["size"])
    image += bytes(align(len(image), 8) - len(image))
    place = len(image)
    image += segments.tobytes()
    header = np.frombuffer(image, layout.ELF_HEADER[elf.byteorder], 1)
    header["type"], header["phoff"], header["phnum"] = layout.ET_EXEC, place, len(segments)
    header["phentsize"] = segments.itemsize
