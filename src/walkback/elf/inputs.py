"""The ELF files that a path stands for: the file itself, or the members of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walkback.elf import layout
from walkback.elf.archive import is_archive, members
from walkback.elf.file import ElfFile, is_elf
from walkback.errors import WalkbackError

if TYPE_CHECKING:
    from collections.abc import Iterator


def elf_files(data: memoryview, name: str) -> Iterator[ElfFile]:
    """The file, or each member of an archive that is an ELF file, named `archive(member)`.

    What is wrong with one member does not hide those after it: the first error is raised at the end.
    """
    if not is_archive(data):
        yield ElfFile(data, name)
        return
    brackets = "[]" if bytes(data[:8]) == layout.ARMAG_THIN else "()"
    errors: list[WalkbackError] = []
    for member in members(data, name):
        if is_elf(member.data):
            try:
                yield ElfFile(member.data, f"{name}{brackets[0]}{member.name}{brackets[1]}")
            except WalkbackError as error:
                errors.append(error)
    raise_first(errors, "members")


def raise_first(errors: list[WalkbackError], what: str) -> None:
    """Raise what was kept back so that the others could be read; the first stands for all."""
    if len(errors) > 1:
        errors[0].message += f" (and {len(errors) - 1} {what} more cannot be read)"
    if errors:
        raise errors[0]
