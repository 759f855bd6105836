"""Where ORC tables are found: in the kernel's own file and in its modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

import numpy as np

from walkback.base.arch import AMD64
from walkback.base.arrays import I32
from walkback.base.dataclass import dataclass
from walkback.base.errors import OrcError, WalkbackError
from walkback.elf import ElfFile, Input, relocated
from walkback.elf import layout as elf_layout
from walkback.elf.inputs import each_of
from walkback.elf.kernel import ENTRIES, HEADER, PLACES
from walkback.orc.decoding import OrcTable, decode
from walkback.orc.layout import HASHES, PLACE, Layout, layout_of_release
from walkback.orc.rules import to_table
from walkback.symbols import SymbolIndex
from walkback.table.source import Kind, TableSource
from walkback.table.table import UnwindTable

_RELEASE = {
    ".modinfo": re.compile(rb"(?:\A|\0)vermagic=([^ \0]+)"),
    ".rodata": re.compile(rb"Linux version ([^ \0]+) \("),
}
"""What names the release of the kernel: in a module, and in the kernel."""


@dataclass(repr=False)
class OrcSource(TableSource):
    """The ORC table of one file.

    >>> [source] = walkback.orc.read("module.ko")
    >>> source.name, source.layout.name, len(source.table)
    ('.orc_unwind', 'LINUX_6_4', 1)
    """

    kind: ClassVar[Kind] = "orc"

    @property
    def bytes(self) -> int:
        """How many bytes the entries take, and their places."""
        return len(self.data) + len(self.places)

    @cached_property
    def layout(self) -> Layout:
        """The layout of its entries, by `.orc_header` or by the release of the kernel."""
        for number in self.elf.sections_named(HEADER):
            found = HASHES.get(bytes(self.elf.section_data(number)))
            if found is None:
                raise self._error("it names a layout that is not known", HEADER)
            return found
        release = self.release
        if release is None:
            raise self._error("nothing names the layout of the entries: no .orc_header, and no kernel release")
        found = layout_of_release(release)
        if found is None:
            raise self._error(f"nothing names the layout of the entries: {release!r} is no kernel from 4.14 to 6.3")
        return found

    @cached_property
    def release(self) -> str | None:
        """The release of the kernel, as `uname -r` prints it."""
        for name, pattern in _RELEASE.items():
            for number in self.elf.sections_named(name):
                if self.elf.sections["type"][number] != elf_layout.SHT_NOBITS:
                    match = pattern.search(self.elf.section_data(number))
                    if match is not None:
                        return match[1].decode(errors="backslashreplace")
        return None

    def _error(self, message: str, section: str = ENTRIES) -> OrcError:
        return OrcError(message, file=self.file, section=section, rule="orc-layout")

    @cached_property
    def places(self) -> memoryview:
        """The contents of `.orc_unwind_ip`, in an object relocated."""
        return self._places[0]

    @cached_property
    def _places(self) -> tuple[memoryview, int, I32 | None]:
        """The same, its address, and in an object the section of each entry's code."""
        [number, *_] = self.elf.sections_named(PLACES)
        if not self.elf.is_relocatable:
            return self.elf.section_data(number), int(self.elf.sections["addr"][number]), None
        moved = relocated(self.elf, number)
        fields = np.arange(0, len(moved.data), PLACE.itemsize)
        return moved.data, 0, moved.section_at(fields)

    @cached_property
    def entries(self) -> OrcTable:
        """What the table says."""
        layout = self.layout
        places, address, section = self._places
        try:
            found = decode(self.data, places, layout, address=address, section=section)
            if section is not None:
                self._check_places(found)
            return found
        except WalkbackError as error:
            raise error.within(file=self.file, section=self.name) from None

    def _check_places(self, found: OrcTable) -> None:
        """Refuse an object whose entries are not all in its sections, or behind the last byte of one."""
        if (found.section == 0).any():
            number = int(np.argmax(found.section == 0))
            raise OrcError(f"no relocation gives the place of entry {number}", offset=0, rule="orc-place")
        sizes = self.elf.sections["size"]
        is_there = (found.section > 0) & (found.section < len(sizes))
        is_there[is_there] = found.address[is_there] <= sizes[found.section[is_there]]
        if not is_there.all():
            number = int(np.argmin(is_there))
            raise OrcError(f"the place of entry {number} is in no section", offset=0, rule="orc-place")

    @cached_property
    def table(self) -> UnwindTable:
        """The neutral table; functions begin where symbols say so."""
        sections, starts = SymbolIndex(self.elf).functions()
        return to_table(self.entries, starts, sections if self.elf.is_relocatable else None)


def read(source: Input) -> Iterator[OrcSource]:
    """The ORC tables of a file: of the kernel, of a module, or of each member of an archive.

    >>> [source] = walkback.orc.read("module.ko")
    >>> source.entries.columns()["sp_offset"].tolist()
    [8, 16, 8, 0]
    """
    return each_of(source, orc_source, f"there is no {ENTRIES} section")


def orc_source(elf: ElfFile) -> OrcSource | None:
    """The table of a file, if it has one."""
    if elf.machine != AMD64.elf_machine or not elf.sections_named(PLACES):
        return None
    for number in elf.sections_named(ENTRIES):
        header = elf.sections[number]
        if header["type"] != elf_layout.SHT_NOBITS and header["size"]:
            return OrcSource(elf, ENTRIES, elf.section_data(number), int(header["addr"]))
    return None
