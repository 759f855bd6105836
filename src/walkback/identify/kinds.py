"""What an ELF file is for, as people would say it."""

from __future__ import annotations

from walkback.base.errors import ElfError
from walkback.elf import ElfFile, layout
from walkback.elf.dynamic import dynamic_entries


def kind_of(elf: ElfFile) -> str:
    """The kind of what is no core file: `program`, `library`, `object`, `module` (for the kernel) or `other`."""
    if elf.type == layout.ET_EXEC:
        return "program"
    if elf.type == layout.ET_REL:
        return "module" if elf.sections_named(".modinfo") else "object"
    if elf.type != layout.ET_DYN:
        return "other"
    entries = _dynamic(elf)
    started = bool((elf.segments["type"] == layout.PT_INTERP).any())
    # Linkers before 2016 do not mark programs that can be moved, and the C library has an interpreter.
    is_program = entries.get(layout.DT_FLAGS_1, 0) & layout.DF_1_PIE or (started and layout.DT_SONAME not in entries)
    return "program" if is_program else "library"


def _dynamic(elf: ElfFile) -> dict[int, int]:
    try:
        entries = dynamic_entries(elf)[1]
    except ElfError:  # a separate debug file has the header without the contents
        return {}
    return dict(zip(entries["tag"].tolist(), entries["value"].tolist(), strict=True))
