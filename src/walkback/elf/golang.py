"""Whether a file is a Go program, as its sections say."""

from __future__ import annotations

from walkback.elf.file import ElfFile

FUNCTIONS = (".gopclntab", ".data.rel.ro.gopclntab")
"""The section of the table of functions; the second is that of programs that can be loaded anywhere."""
_OTHERS = (".go.buildinfo", ".note.go.buildid")


def is_go(elf: ElfFile) -> bool:
    """Whether anything says that this is a Go program, or nothing says what it is."""
    return not len(elf.sections) or any(elf.sections_named(name) for name in (*FUNCTIONS, *_OTHERS))
