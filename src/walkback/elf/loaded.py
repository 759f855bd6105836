"""What the loader writes into a file that is loaded at address 0: addresses in tables that are data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from walkback.base.errors import WalkbackError
from walkback.elf import layout
from walkback.elf.file import ElfFile
from walkback.elf.sectionless import with_sections

_RELATIVE = {layout.EM_X86_64: 8, layout.EM_AARCH64: 1027, layout.EM_S390: 12}
"""The relocation that adds the address at which a file is loaded."""

_LAST = 2**64 - 1


class LoadedAddresses(NamedTuple):
    """The words that the loader writes, by address."""

    place: npt.NDArray[np.uint64]
    value: npt.NDArray[np.uint64]

    def write(self, data: npt.NDArray[np.uint8], address: int, byteorder: str) -> None:
        """Write them into bytes that are loaded at an address."""
        if len(data) < 8:
            return
        behind = min(address + len(data) - 7, _LAST)
        first, end = np.searchsorted(self.place, np.array((address, behind), np.uint64)).tolist()
        if first == end:
            return
        place = (self.place[first:end] - np.uint64(address)).astype(np.int64)
        values = (
            self.value[first:end].astype(f"{'<' if byteorder == 'little' else '>'}u8").view(np.uint8).reshape(-1, 8)
        )
        for i in range(8):
            data[place + i] = values[:, i]


def loaded_addresses(elf: ElfFile) -> LoadedAddresses:
    """The words that hold an address in the file; a table of them that cannot be read is passed over."""
    elf, kind, found = with_sections(elf), _RELATIVE.get(elf.machine), []
    for number in elf.sections_of_type(layout.SHT_RELA):
        if not elf.sections["flags"][number] & layout.SHF_ALLOC:
            continue
        try:
            table = elf.entries(number, layout.RELA, keep=False)
        except WalkbackError:
            continue
        chosen = table["info"] & np.uint64(0xFFFFFFFF) == kind
        found.append((table["offset"][chosen].astype(np.uint64), table["addend"][chosen].astype(np.uint64)))
    nothing = np.zeros(0, np.uint64)
    place, value = (np.concatenate([nothing, *(one[i] for one in found)]) for i in range(2))
    by_place = np.argsort(place, kind="stable")
    return LoadedAddresses(place[by_place], value[by_place])
