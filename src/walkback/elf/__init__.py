"""Reading ELF files and archives, and finding the debug files of stripped ones."""

from walkback.elf.archive import Member, is_archive, members
from walkback.elf.debugfiles import DebugLink, debug_data, debug_link
from walkback.elf.file import ElfFile, is_elf
from walkback.elf.inputs import Input, contents_of, elf_files, one_elf
from walkback.elf.loaded import LoadedAddresses, loaded_addresses
from walkback.elf.machines import machine_of
from walkback.elf.notes import Note
from walkback.elf.opened import IN_MEMORY, Contents, OpenFile, in_pieces, is_stored, opened_file, read_file, whole
from walkback.elf.relocated import Relocated, relocated
from walkback.elf.relocations import (
    RELOCATION_TABLE,
    RELOCATION_TARGET,
    SECTION_RELOCATION,
    Relocations,
    relocations_for,
)
from walkback.elf.search import DEBUG_ROOTS, FileSearch, debug_file
from walkback.elf.symboltable import SYMBOL_TABLE

__all__ = [
    "DEBUG_ROOTS",
    "IN_MEMORY",
    "RELOCATION_TABLE",
    "RELOCATION_TARGET",
    "SECTION_RELOCATION",
    "SYMBOL_TABLE",
    "Contents",
    "DebugLink",
    "ElfFile",
    "FileSearch",
    "Input",
    "LoadedAddresses",
    "Member",
    "Note",
    "OpenFile",
    "Relocated",
    "Relocations",
    "contents_of",
    "debug_data",
    "debug_file",
    "debug_link",
    "elf_files",
    "in_pieces",
    "is_archive",
    "is_elf",
    "is_stored",
    "loaded_addresses",
    "machine_of",
    "members",
    "one_elf",
    "opened_file",
    "read_file",
    "relocated",
    "relocations_for",
    "whole",
]
