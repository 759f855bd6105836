"""Reading ELF files and archives."""

from walkback.elf.archive import Member, is_archive, members
from walkback.elf.file import SYMBOL_TABLE, ElfFile, is_elf, map_file
from walkback.elf.relocations import RELOCATION_TABLE, Relocations, relocations_for

__all__ = [
    "RELOCATION_TABLE",
    "SYMBOL_TABLE",
    "ElfFile",
    "Member",
    "Relocations",
    "is_archive",
    "is_elf",
    "map_file",
    "members",
    "relocations_for",
]
