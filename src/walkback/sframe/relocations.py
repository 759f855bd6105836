"""What the linker of an object is to write into a section: the starts of its functions."""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, Records
from walkback.elf import SECTION_RELOCATION, ElfFile
from walkback.elf import layout as elf_layout
from walkback.sframe.section import Section


def section_relocations(section: Section, elf: ElfFile, field: I64 | None = None) -> Records:
    """For each start field a relocation, as a table of `SECTION_RELOCATION`; `field` is where they are."""
    assert section.code_section is not None
    count = len(section.functions)
    table = np.zeros(count, SECTION_RELOCATION)
    table["offset"] = section.fde_start + np.arange(count) * section.fde_size if field is None else field
    table["addend"] = section.code_address.view(np.int64)
    table["section"] = section.code_section
    wanted = (elf.machine, 8 if section.version == 3 else 4)
    table["type"] = next(kind for (em, kind), size in elf_layout.PC_RELATIVE.items() if (em, size) == wanted)
    return table
