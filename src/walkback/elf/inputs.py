"""What a path stands for: an ELF file or the members of an archive, or raw bytes at an address."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from walkback.elf import layout
from walkback.elf.archive import is_archive, members
from walkback.elf.file import ElfFile, is_elf
from walkback.elf.opened import Contents
from walkback.errors import ArgumentError, WalkbackError

if TYPE_CHECKING:
    from collections.abc import Iterator


def elf_files(data: Contents, name: str) -> Iterator[ElfFile]:
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


def split_address(text: str) -> tuple[str, int | None]:
    """A path and the address behind its `@`, if there is one and no file of the whole name.

    Raises ArgumentError for an address that is none.
    """
    path, at, number = text.rpartition("@")
    if not at or os.path.lexists(text):
        return text, None
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,19}|0", number) is None or int(number, 0) >= 2**64:
        message = f"{number!r} is not an address; examples: 4096, 0x1000"
        raise ArgumentError(message)
    return path, int(number, 0)
