"""Where the SFrame of an ELF file stands, whatever it says."""

from __future__ import annotations

from walkback.elf import layout
from walkback.elf.file import ElfFile

SECTION_NAME = ".sframe"


def sframe_sections(elf: ElfFile, *, empty: bool = False) -> list[int]:
    """By type, or by name: binutils before 2.45 called it PROGBITS.

    With `empty` also those that have nothing but a header, as in a debug file.
    """
    found = sorted({*elf.sections_of_type(layout.SHT_GNU_SFRAME), *elf.sections_named(SECTION_NAME)})
    return [index for index in found if empty or elf.sections["type"][index] != layout.SHT_NOBITS]


def has_sframe(elf: ElfFile) -> bool:
    """Whether there is some; by the program headers where section headers are gone."""
    if not len(elf.sections):
        return bool((elf.segments["type"] == layout.PT_GNU_SFRAME).any())
    return bool(sframe_sections(elf))
