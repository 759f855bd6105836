"""A relocatable object that is being changed, and the two ways to write it.

appended    the former file stays whole, what is longer or new comes behind it, and so does a record for `drop`;
compact     all is laid out anew in the order of section numbers, and nothing that no section holds is kept. Nothing
            names a place in the file of an object, which has no addresses.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import Records
from walkback.base.errors import ElfError, GraftError
from walkback.elf import ElfFile, layout
from walkback.elf.write import HEADER_SIZE, Draft, Headers, Part, Tail, align
from walkback.graft.numbering import check_apart
from walkback.graft.record import SECTION_ALIGNMENT, finish
from walkback.graft.room import NOT_STORED

_FEW_NAMES = 64
_MOST_PADDING = 1 << 24
"""So much more than the file is long may go into alignment; a claimed one must not fill the memory."""


class ChangedObject:
    """The headers as they will be, and what sections hold instead of what they held."""

    def __init__(self, elf: ElfFile) -> None:
        self.elf = elf
        self.headers = Headers(elf)
        self._contents: dict[int, bytes] = {}
        self._new: list[tuple[int, ...]] = []
        self._names = bytearray(elf.section_data(self.headers.names) if self.headers.names else b"")
        self._known_names: dict[str, int] = {}

    def change(self, index: int, contents: bytes) -> None:
        """Let a section hold this."""
        header = self.headers.sections[index]
        if header["flags"] & np.uint64(layout.SHF_COMPRESSED):
            raise GraftError(f"section {index} is compressed and would have to be changed")
        header["size"] = len(contents)
        self._contents[index] = contents

    def append(
        self, name: str, kind: int, contents: bytes, flags: int = 0, link: int = 0, info: int = 0, entry_size: int = 0
    ) -> int:
        """Put a section behind all others; returns its number."""
        number = len(self.elf.sections) + len(self._new)
        place = (0, 0, len(contents), link, info, SECTION_ALIGNMENT, entry_size)
        self._new.append((self.name(name), kind, flags, *place))
        self._contents[number] = contents
        return number

    def name(self, name: str) -> int:
        """Where a name stands among those of sections; it may be the end of another."""
        if name not in self._known_names:
            wanted = f"{name}\0".encode()
            # Looking for each of thousands of names would take longer than having them twice.
            place = self._names.find(wanted) if len(self._known_names) < _FEW_NAMES else -1
            if place < 0:
                place = len(self._names)
                self._names += wanted
            self._known_names[name] = place
        return self._known_names[name]

    def appended(self) -> tuple[list[Part], Records]:
        """The former file with the new places behind it, and the headers of all sections."""
        former, table = self.elf.sections, self._all_headers()
        draft, tail = Draft(self.elf.data), Tail(len(self.elf.data))
        names = self._contents.pop(self.headers.names, bytes(self._names))
        for index, contents in self._contents.items():
            if index < len(former) and len(contents) == former["size"][index]:
                draft.write(int(former["offset"][index]), contents)
            else:
                table["offset"][index] = tail.append(contents, SECTION_ALIGNMENT)
        finish(self.headers, draft, tail, names, self.headers.segments_offset)
        return [*draft.parts(), *tail.parts], table

    def compact(self) -> list[Part]:
        """All sections one after the other, and their headers."""
        if len(self.elf.segments):
            raise GraftError("this relocatable object has program headers")
        table, tail = self._all_headers(), Tail(HEADER_SIZE)
        stored = ~np.isin(table["type"], NOT_STORED)
        check_apart(self.elf, np.flatnonzero(stored[: len(self.elf.sections)]).tolist())
        padding = len(self.elf.data) + _MOST_PADDING
        for index in np.flatnonzero(stored).tolist():
            alignment = int(table["addralign"][index])
            padding -= align(tail.position, alignment) - tail.position
            if padding < 0:
                raise GraftError("the alignments of the sections ask for more room than the whole file takes")
            table["offset"][index] = tail.append(self._now(index), alignment)
        before = np.maximum.accumulate(np.where(stored, table["offset"] + table["size"], HEADER_SIZE))
        table["offset"] = np.where(stored, table["offset"], before)
        table["offset"][table["type"] == layout.SHT_NULL] = 0
        tail.skip_to(align(tail.position, SECTION_ALIGNMENT))
        self.headers.place(0, tail.position)
        return [self.headers.header_bytes(), *tail.parts, self.headers.section_bytes()]

    def _all_headers(self) -> Records:
        """The table of sections with the new ones in it, and with their names."""
        if self._known_names:
            self.change(self.headers.names, bytes(self._names))
        if self._new:
            table = self.headers.sections
            self.headers.sections = np.concatenate([table, np.array(self._new, table.dtype)])
        return self.headers.sections

    def _now(self, index: int) -> Part:
        changed = self._contents.get(index)
        if changed is not None:
            return changed
        start, size = int(self.elf.sections["offset"][index]), int(self.elf.sections["size"][index])
        if start + size > len(self.elf.data):
            raise ElfError(f"section {index} reaches beyond the end of the file", file=self.elf.name, offset=start)
        return self.elf.data[start : start + size]
